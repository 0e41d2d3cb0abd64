//! A range that is held, for as long as a program runs.

use super::descendants::{Descendants, Process};
use super::{Place, Server, Wanted, range, status};
use crate::failure::{Failure, Result};
use crate::parent::{self, code};
use rustix::process::Signal;
use spanlock_lease::{End, Listed, Lost, Mode, Pending, RangeLease, Refused, Span, State, Token};
use spanlock_lease_etcd::Etcd;
use spanlock_lease_postgres::Postgres;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, ExitCode};
use std::sync::Once;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// As `timeout` has it.
const NOT_IN_TIME: u8 = 124;
const LOST: u8 = 125;

/// After so long, those who wait are told for whom.
const SOON: Duration = Duration::from_secs(1);

/// How soon the program hears that its lease was not renewed: a small part of the shortest quarter that makes sense.
const LOOK: Duration = Duration::from_millis(50);

/// A lease.
pub(super) struct Held {
    token: Token,
}

impl Held {
    pub(super) fn release(self) -> Result {
        self.token.release().wait().map_err(lost)
    }
}

fn lost(_: Lost) -> Failure {
    Failure::Program {
        why: "the lease was lost, and others may have had the range meanwhile".to_owned(),
        code: LOST,
    }
}

/// Waits for the range, and says for whom if that takes long.
pub(super) fn acquire(server: &Server, wanted: &Wanted) -> Result<Held> {
    let span = range::parse(&wanted.range).map_err(Failure::Arguments)?;
    let mode = match wanted.shared {
        true => Mode::Shared,
        false => Mode::Exclusive,
    };
    let refused = |why: &dyn std::fmt::Display| Failure::Input(format!("the leases: {why}"));
    let place = server.place()?;
    let resource = &wanted.resource;
    let opening = parent::without_signals(|| match place {
        Place::Postgres { config, schema } => {
            RangeLease::open(Postgres::new(*config, resource).in_schema(schema))
        }
        Place::Etcd(config) => RangeLease::open(Etcd::new(config, resource)),
    });
    let lease = opening.wait().map_err(|error| refused(&error))?;
    let request = lease.acquire(span.start()..=span.last(), mode, wanted.ttl);
    let request = match wanted.within {
        Some(limit) => request.within(limit),
        None => request,
    };
    let answer = patiently(request.start(), whom(server, wanted, span, mode));
    match answer {
        Ok(token) => Ok(Held { token }),
        Err(why @ (Refused::TimedOut | Refused::NotAnswered)) => Err(Failure::Program {
            why: format!("{} of {}: {why}", wanted.range, wanted.resource),
            code: NOT_IN_TIME,
        }),
        Err(why) => Err(refused(&why)),
    }
}

/// Waits for an answer. If it does not come soon, people are told what it waits for, by a thread which the answer does
/// not wait for: a server that is slow to say who holds would delay what it has granted.
fn patiently<T>(answer: Pending<T>, whom: impl FnOnce() -> String + Send + 'static) -> T {
    let (waits, ended) = mpsc::channel::<()>();
    let is_waiting = move |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    let tells = move || {
        if is_waiting(SOON) {
            let whom = whom();
            if is_waiting(Duration::ZERO) {
                say(&format!("waiting for {whom}"));
            }
        }
    };
    // It may be asking still when the program runs, and the signals then are not for it.
    parent::without_signals(|| thread::spawn(tells));
    let answer = answer.wait();
    drop(waits);
    answer
}

/// Who is in the way, to be asked for later.
fn whom(
    server: &Server,
    wanted: &Wanted,
    span: Span,
    mode: Mode,
) -> impl FnOnce() -> String + use<> {
    let (server, resource, start) = (server.clone(), wanted.resource.clone(), Instant::now());
    move || {
        let Ok(listed) = status::list(&server) else {
            return "the server to answer".to_owned();
        };
        // Our own wish is not older than that.
        let waited = start.elapsed();
        let (listed, resource) = (&listed, &resource);
        let conflicting = |state| {
            listed.iter().filter(move |listed| {
                let is_in_the_way = mode.conflicts(listed.mode) && listed.span.overlaps(span);
                listed.resource == *resource && listed.state == state && is_in_the_way
            })
        };
        let holders: Vec<_> = conflicting(State::Held).map(described).collect();
        let earlier = conflicting(State::Awaited).filter(|awaited| awaited.age > waited);
        let earlier: Vec<_> = earlier.map(described).collect();
        let grace = conflicting(State::Grace).map(|grace| {
            let left = grace.left.as_secs_f64();
            format!(
                "a server that was restored or replaced, and grants nothing for {left:.0} s more"
            )
        });
        let grace: Vec<_> = grace.collect();
        match (&holders[..], &grace[..], &earlier[..]) {
            ([], [], []) => "its turn: nobody is in the way any more".to_owned(),
            ([], [], earlier) => format!("its turn, after {}", earlier.join(", ")),
            (holders, grace, _) => [holders, grace].concat().join(", "),
        }
    }
}

fn described(listed: &Listed) -> String {
    let (range, client) = (
        status::written(listed.span),
        status::in_one_line(&listed.client),
    );
    format!("{range} ({}) by {client}", status::mode(listed.mode))
}

/// Runs a program under a lease; its exit code.
pub(super) fn while_it_runs(
    server: &Server,
    wanted: &Wanted,
    program: &[OsString],
) -> Result<ExitCode> {
    let Held { token } = acquire(server, wanted)?;
    let (program, arguments) = program.split_first().expect("clap demands one");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("SPANLOCK_LEASE", token.id().to_string())
        .env("SPANLOCK_FENCE", token.fence().to_string());
    let descendants = Descendants::new()
        .map_err(|error| Failure::Input(format!("who runs on this system: {error}")))?;
    let ended = thread::scope(|scope| {
        let (ends, ended) = mpsc::channel::<()>();
        let (token, descendants) = (&token, &descendants);
        let guard = move || guard(token, descendants, &ended);
        parent::without_signals(|| scope.spawn(guard));
        let tells = Once::new();
        let status = parent::wait_for(command, || left(descendants, &tells));
        drop(ends);
        status
    });
    // What a token does when it is dropped, it does later: this process may have ended by then.
    let released = Held { token }.release();
    let (_, status) = ended.map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => 127,
            _ => 126,
        };
        let why = format!("cannot run {}: {error}", program.display());
        Failure::Program { why, code }
    })?;
    released?;
    Ok(code(status))
}

/// What runs when the program has ended. The first time, somebody who waits for this command is told.
fn left(descendants: &Descendants, tells: &Once) -> Vec<i32> {
    let running = descendants.running();
    let named = running
        .iter()
        .map(|it| format!("{}[{}]", status::in_one_line(&it.name), it.number()));
    let named: Vec<_> = named.collect();
    if !named.is_empty() {
        let named = named.join(", ");
        let what = format!("the range is held on for what the program has left: {named}");
        tells.call_once(|| say(&what));
    }
    running.iter().map(Process::number).collect()
}

/// Ends the program and all that it started when the lease ends, unless they end first.
fn guard(token: &Token, descendants: &Descendants, ended: &mpsc::Receiver<()>) {
    let is_running = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    while token.check().is_ok() {
        if !is_running(LOOK) {
            return;
        }
    }
    descendants.signal(Signal::TERM);
    say("the lease was not renewed in time: the program is asked to end");
    let mut lost = token.lost();
    while lost.try_wait() != Some(End::Lost) {
        if !is_running(LOOK) {
            return;
        }
    }
    descendants.signal(Signal::KILL);
    say("the lease is lost: the program is killed");
    // Again, since who is killed may have started others meanwhile.
    while is_running(LOOK) {
        descendants.signal(Signal::KILL);
    }
}

/// Tells people something, by a thread: whoever reads may have gone, or may not read for long, and nothing here waits
/// for that.
fn say(what: &str) {
    let line = format!("{what}\n");
    let writes = move || drop(io::stderr().write_all(line.as_bytes()));
    // Without a thread nothing is said.
    let _ = parent::without_signals(|| thread::Builder::new().spawn(writes));
}
