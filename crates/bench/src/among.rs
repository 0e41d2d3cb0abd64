//! How long a request waits among others that keep asking for what is in its way, and hold it for a moment each.
//!
//! The others never pause. With more threads than processors, some of them are always preempted while they hold their
//! ranges, and a request that wants all of these gets in only if those that run give way. A lock of the whole resource
//! shows what that takes at least.

use crate::peers::AnyLock;
use fastrand::Rng;
use spanlock::range::raw::Mode;
use spanlock_records::trial::run::Schedule;
use spanlock_records::trial::setting::{Resource, named};
use spanlock_records::trial::times::Times;
use spanlock_workbench::crew::{self, Phase, Signal, Timekeeper};
use spanlock_workbench::timed;
use std::fmt;
use std::hint::{black_box, spin_loop};
use std::ops::Range;
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two requests that are timed, so that the others are at their usual speed when the next one comes.
const PAUSE: Duration = Duration::from_millis(1);

/// What threads ask for.
#[derive(Debug, Clone, Copy)]
enum Asks {
    /// The whole resource.
    Everything,
    /// A random unit of the thread's own part.
    Part,
    /// A random one of [`BLOCKS`] blocks that the resource consists of: the range of W1 and W2 (P4 §4.3.1), of which
    /// some meet.
    Block,
}

/// Few, so that requests among eight threads meet now and then.
const BLOCKS: u64 = 16;

/// What threads do while they hold a range.
#[derive(Debug, Clone, Copy)]
enum Holds {
    /// They release it at once.
    Nothing,
    /// They run.
    Runs(Duration),
    /// They sleep.
    Sleeps(Duration),
}

/// Threads that do the same.
#[derive(Debug, Clone, Copy)]
struct Party {
    threads: usize,
    mode: Mode,
    asks: Asks,
    holds: Holds,
}

/// Who waits among whom.
#[derive(Debug)]
pub struct Case {
    name: &'static str,
    timed: Party,
    others: Party,
}

/// Threads that release at once.
const fn threads(threads: usize, mode: Mode, asks: Asks) -> Party {
    let holds = Holds::Nothing;
    Party {
        threads,
        mode,
        asks,
        holds,
    }
}

impl Party {
    const fn that(self, holds: Holds) -> Self {
        Self { holds, ..self }
    }
}

const RUN: Holds = Holds::Runs(Duration::from_micros(20));
const SLEEP: Holds = Holds::Sleeps(Duration::from_millis(1));

/// All cases. To add one, add a row.
#[rustfmt::skip] // A table.
pub static CASES: [Case; 10] = {
    use Asks::{Block, Everything, Part};
    use Mode::{Exclusive as Write, Shared as Read};
    [
        case("writer-of-all/4-readers", threads(1, Write, Everything), threads(4, Read, Part)),
        case("writer-of-all/12-readers-20us", threads(1, Write, Everything), threads(12, Read, Part).that(RUN)),
        case("writer-of-all/40-readers-asleep", threads(1, Write, Everything), threads(40, Read, Part).that(SLEEP)),
        case("reader-of-all/4-writers", threads(1, Read, Everything), threads(4, Write, Part)),
        case("reader-of-all/12-writers-20us", threads(1, Read, Everything), threads(12, Write, Part).that(RUN)),
        case("3-writers/3-readers-of-all", threads(3, Write, Part), threads(3, Read, Everything)),
        case("writer/6-readers-of-all-20us", threads(1, Write, Part), threads(6, Read, Everything).that(RUN)),
        case("reader/6-writers-of-all", threads(1, Read, Part), threads(6, Write, Everything)),
        case("writer-of-all/7-writers-of-all", threads(1, Write, Everything), threads(7, Write, Everything)),
        case("writer/7-writers-of-16-blocks", threads(1, Write, Block), threads(7, Write, Block)),
    ]
};

const fn case(name: &'static str, timed: Party, others: Party) -> Case {
    Case {
        name,
        timed,
        others,
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for &'static Case {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &CASES, |case| case.to_string())
    }
}

/// What came of a case.
#[derive(Debug)]
pub struct Waited {
    /// How long each request waited that was timed.
    pub times: Times,
    /// What the others were granted.
    pub others: u64,
    /// In which time.
    pub elapsed: Duration,
}

/// Runs a case on a lock of that resource.
pub fn run(lock: &dyn AnyLock, resource: Resource, case: &Case, schedule: Schedule) -> Waited {
    let Case { timed, others, .. } = case;
    let threads = timed.threads + others.threads;
    let run = crew::run(threads, schedule, &mut (), |thread, signal: &Signal| {
        let mut rng = Rng::with_seed(thread as u64);
        let is_timed = thread < timed.threads;
        let party = if is_timed { timed } else { others };
        let (mut times, mut count) = (Times::default(), 0);
        signal.until_stop(|phase| {
            let range = party.asks.draw(resource, thread, threads, &mut rng);
            let took = party.acquire(lock, range);
            if is_timed {
                if phase == Phase::Measured {
                    times.record(took);
                }
                sleep(PAUSE);
            } else {
                count += phase.counts();
            }
        });
        (times, count)
    });
    Waited {
        times: Times::sum(run.workers.iter().map(|(times, _)| times)),
        others: run.workers.iter().map(|(_, count)| count).sum(),
        elapsed: run.elapsed,
    }
}

impl Party {
    /// Acquires and releases a range. Returns how long it had to wait.
    fn acquire(&self, lock: &dyn AnyLock, range: Range<u64>) -> Duration {
        match self.mode {
            Mode::Shared => self.hold(timed(|| lock.read(range))),
            Mode::Exclusive => self.hold(timed(|| lock.write(range))),
        }
    }

    fn hold<G>(&self, (held, took): (G, Duration)) -> Duration {
        match self.holds {
            Holds::Nothing => {}
            Holds::Runs(time) => {
                let begun = Instant::now();
                while begun.elapsed() < time {
                    spin_loop();
                }
            }
            Holds::Sleeps(time) => sleep(time),
        }
        drop(black_box(held));
        took
    }
}

impl Asks {
    fn draw(self, resource: Resource, thread: usize, threads: usize, rng: &mut Rng) -> Range<u64> {
        let units = resource.units;
        match self {
            Self::Everything => 0..units,
            Self::Part => {
                let part = units / threads as u64;
                let start = thread as u64 * part + rng.u64(..part);
                start..start + 1
            }
            Self::Block => {
                let block = rng.u64(..BLOCKS);
                units * block / BLOCKS..units * (block + 1) / BLOCKS
            }
        }
    }
}
