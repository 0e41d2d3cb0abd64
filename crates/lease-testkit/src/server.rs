//! A server for one test.

use crate::child;
use crate::network::Network;
use libtest_mimic::{Arguments, Trial};
use spanlock_lease::{Engine, Mode, Options, RangeLease, Request, Span};
use spanlock_testkit::watchdog::{HANG, watched};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// So long that nothing happens by it in a test.
pub const LONG: Duration = Duration::from_secs(60);

/// A server, which is gone when it is dropped.
pub trait Server: Sized + Sync + 'static {
    /// The engine over it.
    type Engine: Engine<Range = Span> + Send;

    /// By which people know it.
    const NAME: &'static str;

    /// A short ttl, which it grants.
    const TTL: Duration;

    /// Starts one.
    ///
    /// # Errors
    /// Why there is none.
    fn start() -> Result<Self, String>;

    /// How clients reach it.
    fn at(&self) -> &str;

    /// Where it listens.
    fn socket(&self) -> PathBuf;

    /// How clients reach it by a port of this machine.
    fn at_port(port: u16) -> String;

    /// An engine for the one resource of all tests.
    fn engine_at(at: &str) -> Self::Engine;

    /// Its processes are killed, and it starts again.
    fn crash(&self);

    /// How far a long test has got.
    fn steps(&self) -> &AtomicU64;

    /// An engine over it.
    fn engine(&self) -> Self::Engine {
        Self::engine_at(self.at())
    }

    /// A way to it that may fail.
    fn network(&self) -> Network {
        Network::new(self.socket())
    }

    /// A client that asks when it is told, and not from time to time.
    fn lease(&self) -> RangeLease {
        let mut options = Options::default();
        options.poll = LONG;
        let opened = RangeLease::open_with(self.engine(), options).wait();
        opened.expect("it opens")
    }

    /// A long test has got on.
    fn step(&self) {
        self.steps().fetch_add(1, Relaxed);
    }
}

/// A request with a name of its own: for a range, alone, for a long time.
///
/// # Panics
/// When the range is empty.
#[must_use]
pub fn request(range: Range<u64>) -> Request {
    Request {
        id: format!("{:x}", fastrand::u128(..))
            .parse()
            .expect("a number"),
        span: Span::of(range).expect("it is not empty"),
        mode: Mode::Exclusive,
        ttl: LONG,
        grow: None,
    }
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
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let mut command = Command::new(scripts.join(name));
    command.args(arguments);
    command
}

/// A test, and its name.
pub type Test<S> = (&'static str, fn(&S));

/// Runs tests, each with a server of its own. One that hangs is ended. Without a server they are left out. A process
/// that a test has started works instead.
pub fn run<S: Server>(tests: &[Test<S>]) {
    if child::is_asked_for() {
        return child::run::<S>();
    }
    let missing = S::start().err();
    if let Some(why) = &missing {
        println!(
            "skipped: the tests of leases over {}, because {why}",
            S::NAME
        );
    }
    let trial = |&(name, test): &Test<S>| {
        Trial::test(name, move || {
            let server = S::start()?;
            let steps = || server.steps().load(Relaxed);
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
    libtest_mimic::run(&Arguments::from_args(), tests.iter().map(trial).collect()).exit();
}

/// For futures of a test.
///
/// # Panics
/// When the system lacks what it needs.
#[must_use]
pub fn runtime() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("the system has what it needs")
}
