//! A server for one test.

use crate::network::Network;
use crate::{child, exact, failures, requests, storm, turns};
use libtest_mimic::{Arguments, Trial};
use spanlock_lease::{
    Engine, Extent, Listed, Memory, Mode, Options, RangeLease, Request, RequestId, Span,
};
use spanlock_testkit::watchdog::{HANG, watched};
use std::net::TcpListener;
use std::ops::{Deref, Range};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// So long that nothing happens by it in a test.
pub const LONG: Duration = Duration::from_secs(60);

/// What keeps leases for the clients of a test.
pub trait Engines: Sync {
    /// The engine of a client.
    type Engine: Engine<Range = Span> + Send;

    /// One for the one resource of all tests.
    fn engine(&self) -> Self::Engine;

    /// Waits until one that was opened is told what happens.
    fn hears(_engine: &Self::Engine) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// One that is told what happens.
    fn opened(&self) -> impl Future<Output = Self::Engine> {
        async {
            let engine = self.engine();
            engine.open().await.expect("it opens");
            Self::hears(&engine).await;
            engine
        }
    }

    /// A client that asks when it is told, and not from time to time.
    fn lease(&self) -> RangeLease {
        lease(self.engine())
    }
}

impl Engines for Memory {
    type Engine = Self;

    fn engine(&self) -> Self {
        self.clone()
    }
}

/// A client that asks when it is told, and not from time to time.
pub fn lease<R: Extent>(engine: impl Engine<Range = R> + Send) -> RangeLease<R> {
    let mut options = Options::default();
    options.poll = LONG;
    let opened = RangeLease::open_with(engine, options).wait();
    opened.expect("it opens")
}

/// A server that a script has started. It is gone when this is dropped.
pub struct Started {
    script: &'static str,
    /// How clients reach it.
    pub at: String,
    /// How far a long test has got.
    pub steps: AtomicU64,
}

impl Started {
    /// By the script of this name.
    ///
    /// # Errors
    /// Why there is none.
    pub fn new(script: &'static str, arguments: &[&str]) -> Result<Self, String> {
        let (at, steps) = (self::script(script, arguments)?, AtomicU64::default());
        Ok(Self { script, at, steps })
    }

    /// Where its sockets are.
    pub fn folder(&self) -> &str {
        let place = self.at.trim_start_matches("etcd://");
        let place = place.trim_start_matches("host=").split([' ', ',']).next();
        place.unwrap_or_default().trim_end_matches("/1:0")
    }

    /// Does what the script does, and returns what that prints.
    pub fn does(&self, what: &str, arguments: &[&str]) -> String {
        let arguments = [&[what, self.folder()], arguments].concat();
        script(self.script, &arguments).expect("it runs")
    }

    /// Lets it encrypt, at a port of this machine, by a certificate in its folder. What it prints, and the port.
    /// Without a program that makes certificates it does not, and says so.
    pub fn secure(&self) -> Option<(String, u16)> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("skipped: there is no openssl, which makes a certificate");
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        Some((self.does("secure", &[&port.to_string()]), port))
    }

    /// A long test has got on.
    pub fn step(&self) {
        self.steps.fetch_add(1, Relaxed);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have been stopped. What is left of it is in a temporary folder.
        let _ = script(self.script, &["stop", self.folder()]);
    }
}

/// A server for one test.
pub trait Server: Engines + Deref<Target = Started> + From<Started> + 'static {
    /// By which people know it.
    const NAME: &'static str;

    /// The script that starts it.
    const SCRIPT: &'static str;

    /// Where it listens, in its folder.
    const SOCKET: &'static str;

    /// A short ttl, which it grants.
    const TTL: Duration;

    /// How clients reach it by a port of this machine.
    fn at_port(port: u16) -> String;

    /// An engine for a resource.
    fn engine_of(at: &str, resource: &str) -> Self::Engine;

    /// An engine for the one resource of all tests.
    fn engine_at(at: &str) -> Self::Engine {
        Self::engine_of(at, "resource")
    }

    /// Who holds and who waits.
    fn listed(&self) -> Vec<Listed>;

    /// A way to it that may fail.
    fn network(&self) -> Network {
        Network::new(Path::new(self.folder()).join(Self::SOCKET))
    }

    /// Its processes are killed, and it starts again.
    fn crash(&self) {
        self.does("crash", &[]);
    }
}

/// A request with a name of its own: for a range, alone, for a long time.
#[must_use]
pub fn request(range: Range<u64>) -> Request {
    Request {
        id: random_id(),
        span: Span::of(range).expect("it is not empty"),
        mode: Mode::Exclusive,
        ttl: LONG,
        grow: None,
    }
}

/// The name of a request.
#[must_use]
pub fn random_id() -> RequestId {
    let number = format!("{:x}", fastrand::u128(..));
    number.parse().expect("it is a number")
}

/// Runs a script of this repository; what it prints.
///
/// # Errors
/// What it says when it fails.
pub fn script(name: &str, arguments: &[&str]) -> Result<String, String> {
    let output = script_as(name, arguments)
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// A script of this repository, to be run.
#[must_use]
pub fn script_as(name: &str, arguments: &[&str]) -> Command {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let mut command = Command::new(scripts.join(name));
    command.args(arguments);
    command
}

/// A test, and its name.
pub type Test<S> = (&'static str, fn(&S));

/// Tests by their paths, which are their names.
#[macro_export]
macro_rules! tests {
    ($($test:path),* $(,)?) => {
        &[$((stringify!($test), $test)),*]
    };
}

/// Runs these tests, and those of all engines, each with a server of its own. One that hangs is ended. Without a server
/// they are left out. A process that a test has started works instead.
pub fn run<S: Server>(tests: &[Test<S>]) {
    let of_all: &[Test<S>] = tests![
        exact::agrees_with_the_engine_in_memory,
        requests::a_repeated_request_is_granted_again,
        requests::a_resource_has_a_name,
        requests::who_holds_and_who_waits_is_listed,
        turns::who_came_first_is_served_first,
        turns::who_has_given_way_for_long_passes,
        turns::who_gave_way_is_told_that_the_other_gave_up,
        turns::who_is_granted_what_another_waits_for_is_told,
        turns::blocks_leave_out_what_is_wished_for,
        failures::a_release_wakes_who_waits,
        failures::a_lost_listener_loses_no_release,
        failures::a_dead_holder_is_waited_for,
        failures::leases_survive_a_crash,
        storm::a_late_write_is_refused,
        storm::a_late_write_without_fences_is_found,
        storm::no_update_is_lost,
    ];
    if child::is_asked_for() {
        return child::run::<S>();
    }
    let start = || Started::new(S::SCRIPT, &["start"]).map(S::from);
    let missing = start().err();
    if let Some(why) = &missing {
        println!(
            "skipped: the tests of leases over {}, because {why}",
            S::NAME
        );
    }
    let trial = |&(name, test): &Test<S>| {
        Trial::test(name, move || {
            let server = start()?;
            let steps = || server.steps.load(Relaxed);
            watched(
                2 * HANG,
                steps,
                |steps| format!("{name}, after step {steps}"),
                || test(&server),
            );
            Ok(())
        })
        .with_ignored_flag(missing.is_some())
    };
    let trials = tests.iter().chain(of_all).map(trial);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

/// For futures of a test.
#[must_use]
pub fn runtime() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("the system has what it needs")
}
