//! A lock that somebody else may have written passes the suite, and the suite finds a fault in it.

use spanlock::range::Span;
use spanlock::range::raw::{Ask, RawRangeMutex};
use spanlock_conformance::{Declared, Need, run};
use std::env;
use std::error::Error;
use std::marker::PhantomData;
use std::process::{Command, ExitCode};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Set in the process that tests the broken lock.
const BROKEN: &str = "SPANLOCK_TEST_BROKEN";

/// No system waits for longer at a time than it can count.
const A_WHILE: Duration = Duration::from_secs(3600);

/// A list of the ranges held, under a mutex. Who waits is woken by each release.
struct Listed {
    held: Mutex<Vec<Span>>,
    released: Condvar,
    conflict: fn(&Span, &Span) -> bool,
}

impl Listed {
    fn new() -> Self {
        Self::with(|a, b| a.overlaps(*b))
    }

    /// Ranges of which one ends where the other starts go for disjoint.
    fn broken() -> Self {
        Self::with(|a, b| a.start() < b.last() && b.start() < a.last() || a == b)
    }

    fn with(conflict: fn(&Span, &Span) -> bool) -> Self {
        Self {
            held: Mutex::default(),
            released: Condvar::new(),
            conflict,
        }
    }
}

/// A range that is held. It stays on its thread.
struct Held(Span, PhantomData<*mut ()>);

// SAFETY: a range is entered under the mutex, when none that is held conflicts with it.
unsafe impl RawRangeMutex for Listed {
    type Token = Held;

    fn lock_exclusive(&self, ask: Ask<'_, Held>) -> Option<Held> {
        let mut held = self.held.lock().expect("nothing panics under it");
        while held.iter().any(|other| (self.conflict)(other, &ask.span)) {
            if ask.wait.is_over() {
                return None;
            }
            let left = ask.wait.deadline().map_or(Duration::MAX, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            let waited = self.released.wait_timeout(held, left.min(A_WHILE));
            held = waited.expect("nothing panics under it").0;
        }
        held.push(ask.span);
        Some(Held(ask.span, PhantomData))
    }

    unsafe fn unlock(&self, token: Held) {
        let mut held = self.held.lock().expect("nothing panics under it");
        let place = held.iter().position(|span| *span == token.0);
        held.swap_remove(place.expect("it is held"));
        drop(held);
        self.released.notify_all();
    }
}

fn main() -> ExitCode {
    let lacks = [
        Need::Readers,
        Need::Listing,
        Need::EachHolder,
        Need::Fair,
        Need::GivingWay,
        Need::Queueing,
        Need::SelfCheck,
        Need::ThreadNumbers,
        Need::Owners,
    ];
    run(|suite| {
        if env::var_os(BROKEN).is_some() {
            suite.exclusive(Declared::new("broken", &lacks), Listed::broken);
        } else {
            suite.exclusive(Declared::new("listed", &lacks), Listed::new);
            suite.also("a_broken_lock_is_found", a_broken_lock_is_found);
        }
    })
}

fn a_broken_lock_is_found() -> Result<(), Box<dyn Error>> {
    let mut tests = Command::new(env::current_exe()?);
    let found = tests
        .arg("broken::sequential::exclusive")
        .env(BROKEN, "1")
        .output()?;
    let said = String::from_utf8(found.stdout)?;
    if found.status.success() || !said.contains("1 failed") {
        return Err(format!("the suite did not find the fault:\n{said}").into());
    }
    Ok(())
}
