//! Ranges that are held, for as long as a program runs.

use crate::descendants::{Descendants, Process};
use crate::failure::{Failure, Result};
use crate::range::Chosen;
use crate::server::{Places, Server, unusable};
use crate::{Wanted, status};
use rustix::process::Signal;
use spanlock_child::{code, without_signals};
use spanlock_lease::{
    End, Listed, Lost, Mode, Pending, Refused, State, Token, Trouble, client_name, client_name_of,
};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::path::Path;
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

/// Leases of one resource.
struct Held<R>(Vec<Token<R>>);

impl<R> Held<R> {
    /// Whether work may begin under all of them.
    fn is_open(&self) -> bool {
        self.0.iter().all(|token| token.check().is_ok())
    }

    fn release(mut self) -> Result {
        let ends: Vec<_> = self.releases().map(Pending::wait).collect();
        ends.into_iter().collect::<Result<_, _>>().map_err(lost)
    }

    /// All are released, before the first is waited for.
    fn releases(&mut self) -> impl Iterator<Item = Pending<Result<(), Lost>>> + use<R> {
        let tokens = mem::take(&mut self.0).into_iter();
        tokens.map(Token::release).collect::<Vec<_>>().into_iter()
    }

    /// Larger than what conflicting leases had before, of each range. A later lease of any of them will have a larger
    /// one, if none of these was lost before the last one was granted.
    fn fence(&self) -> Result<u64> {
        if !self.is_open() {
            return Err(lost(Lost));
        }
        let fence = self.0.iter().map(Token::fence).max();
        let fence = fence.expect("there is a range");
        fence.number().ok_or_else(|| {
            unusable(&format_args!(
                "the fence {fence} is too large to be written as a number"
            ))
        })
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|token| token.id().to_string()).collect();
        names.join(",")
    }
}

impl<R> Drop for Held<R> {
    /// What was granted, and is not to be used after all. A token that is dropped is released later, and this process
    /// may have ended by then.
    fn drop(&mut self) {
        let end = Instant::now() + SOON;
        for release in self.releases() {
            let _ = release.wait_within(end.saturating_duration_since(Instant::now()));
        }
    }
}

fn lost(_: Lost) -> Failure {
    Failure::Program {
        why: "the lease was lost, and others may have had the range meanwhile".to_owned(),
        code: LOST,
    }
}

/// Waits until the ranges could be had.
pub(crate) fn wait(server: &Server, wanted: &Wanted) -> Result {
    let client = client_name();
    match wanted.ranges.chosen() {
        Chosen::Positions(spans) => acquire(server, wanted, spans, &client)?.release(),
        Chosen::Keys(spans) => acquire(server, wanted, spans, &client)?.release(),
    }
}

/// Runs a program under leases; its exit code.
pub(crate) fn run(server: &Server, wanted: &Wanted, program: &[OsString]) -> Result<ExitCode> {
    let client = client_name_of(Path::new(&program[0]));
    match wanted.ranges.chosen() {
        Chosen::Positions(spans) => {
            while_it_runs(acquire(server, wanted, spans, &client)?, program)
        }
        Chosen::Keys(spans) => while_it_runs(acquire(server, wanted, spans, &client)?, program),
    }
}

/// Waits for the ranges, one after the other, and says for whom if that takes long.
fn acquire<R: Places>(
    server: &Server,
    wanted: &Wanted,
    spans: Vec<R>,
    client: &str,
) -> Result<Held<R>> {
    let mode = match wanted.shared {
        true => Mode::Shared,
        false => Mode::Exclusive,
    };
    let began = Instant::now();
    let left = || {
        wanted
            .within
            .map(|limit| limit.saturating_sub(began.elapsed()))
    };
    let late = |why: &dyn fmt::Display| Failure::Program {
        why: format!("{}: {why}", wanted.resource),
        code: NOT_IN_TIME,
    };
    let opening = without_signals(|| R::open(server, &wanted.resource, client))?;
    let opened = match left() {
        None => opening.wait(),
        Some(limit) => {
            let opened = opening.wait_within(limit);
            opened.map_err(|_late| late(&Refused::NotAnswered))?
        }
    };
    let lease = opened.map_err(|error| unusable(&error))?;
    let mut held = Held(Vec::new());
    for span in spans {
        let whom = whom(server, wanted, span.clone(), mode);
        let request = span.clone().acquire(&lease, mode, wanted.ttl);
        let request = match left() {
            Some(limit) => request.within(limit),
            None => request,
        };
        match patiently(request.start(), whom) {
            Ok(token) => held.0.push(token),
            Err(why @ (Refused::TimedOut | Refused::NotAnswered)) => {
                return Err(late(&format_args!("{}: {why}", span.written())));
            }
            Err(why @ Refused::Engine(Trouble::Unreachable(_))) => return Err(late(&why)),
            Err(why) => return Err(unusable(&why)),
        }
    }
    Ok(held)
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
    without_signals(|| thread::spawn(tells));
    let answer = answer.wait();
    drop(waits);
    answer
}

/// Who is in the way, to be asked for later.
fn whom<R: Places>(
    server: &Server,
    wanted: &Wanted,
    span: R,
    mode: Mode,
) -> impl FnOnce() -> String + Send + use<R> {
    let (server, resource, start) = (server.clone(), wanted.resource.clone(), Instant::now());
    move || {
        let Ok(listed) = R::list(&server) else {
            return "the server to answer".to_owned();
        };
        // Our own wish is not older than that.
        let waited = start.elapsed();
        let (listed, resource, span) = (&listed, &resource, &span);
        let conflicting = |state| {
            listed.iter().filter(move |listed| {
                let is_in_the_way = mode.conflicts(listed.mode) && listed.span.meets(span);
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

fn described<R: Places>(listed: &Listed<R>) -> String {
    let (range, client) = (listed.span.written(), status::in_one_line(&listed.client));
    format!("{range} ({}) by {client}", status::mode(listed.mode))
}

fn while_it_runs<R: Places>(held: Held<R>, program: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = program.split_first().expect("clap demands one");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("SPANLOCK_LEASE", held.names())
        .env("SPANLOCK_FENCE", held.fence()?.to_string());
    let descendants = Descendants::new()
        .map_err(|error| Failure::input(format_args!("who runs on this system: {error}")))?;
    let ended = thread::scope(|scope| {
        let (ends, ended) = mpsc::channel::<()>();
        let (held, descendants) = (&held, &descendants);
        let guard = move || guard(held, descendants, &ended);
        without_signals(|| scope.spawn(guard));
        let tells = Once::new();
        let status =
            spanlock_child::wait_for(command, || left(descendants, &tells, || held.is_open()));
        drop(ends);
        status
    });
    // What a token does when it is dropped, it does later: this process may have ended by then.
    let released = held.release();
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
fn left(descendants: &Descendants, tells: &Once, is_held: impl Fn() -> bool) -> Vec<i32> {
    let running = descendants.running();
    let named = running
        .iter()
        .map(|it| format!("{}[{}]", status::in_one_line(&it.name), it.number()));
    let named: Vec<_> = named.collect();
    // What is lost is not held on, and what is left then is ended.
    if !named.is_empty() && is_held() {
        let named = named.join(", ");
        let what = format!("the range is held on for what the program has left: {named}");
        tells.call_once(|| say(&what));
    }
    running.iter().map(Process::number).collect()
}

/// Ends the program and all that it started when the lease ends, unless they end first.
fn guard<R>(held: &Held<R>, descendants: &Descendants, ended: &mpsc::Receiver<()>) {
    let is_running = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    while held.is_open() {
        if !is_running(LOOK) {
            return;
        }
    }
    descendants.signal(Signal::TERM);
    say("the lease was not renewed in time: the program is asked to end");
    let mut ends: Vec<_> = held.0.iter().map(Token::lost).collect();
    while !ends.iter_mut().any(|end| end.try_wait() == Some(End::Lost)) {
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
    let _ = without_signals(|| thread::Builder::new().spawn(writes));
}
