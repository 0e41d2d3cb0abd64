//! A soak: random work on a lock for a long time, by many threads, checked all along.
//!
//! A lock lives through all its rounds; each round has threads of its own, which begin and end with it. Checked is that
//! - holders that exclude each other never meet (*exclusion*): each unit of the resource has its holders, and holds
//!   two numbers that writers raise one after the other by plain stores;
//! - every thread gets on (*liveness*): a watchdog ends the soak when one does not for too long;
//! - holders that do not exclude each other meet (*concurrency*): two of them wait for each other, inside;
//! - nothing is kept that piles up (*no leak*): what is allocated after later rounds is what was after the first.

mod oracle;
mod watch;
mod work;

pub use oracle::Slots;
pub use watch::Watch;
pub use work::Soaking;

use crate::memory::Allocated;
use crate::registry::Lock;
use crate::target::{GivesUp, Readers};
use derive_more::{Display, Error};
use spanlock_records::record::{Bytes, Meeting, Soak as Record};
use spanlock_records::trial::lock::WaitsFor;
use spanlock_records::trial::setting::Resource;
use std::time::Duration;

/// The resource, or the range of it, that is locked.
pub const RESOURCE: Resource = Resource {
    units: 256,
    grain: 1,
};

/// The most that may be allocated beyond what was after the first round: far less than a leak of a node in a thousand
/// acquisitions, or of a thread's pool of nodes in each round, comes to in ten minutes.
pub const MAX_GROWTH: Bytes = 256 * 1024;

/// How threads hold several ranges.
#[derive(Debug, Display, Clone, Copy, PartialEq, Eq)]
pub enum Several {
    /// They hold several ranges, and wait for each in ascending order.
    #[display("waiting")]
    Waiting,
    /// They hold several ranges, and only try for those after the first.
    #[display("trying")]
    Trying,
    /// They hold one, because of this.
    #[display("{_0}")]
    Never(&'static str),
}

/// The work of each round.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads: at least one.
    pub threads: usize,
    /// Whether a thread holds several ranges.
    pub several: Several,
    /// How long a thread may get nowhere.
    pub stall: Duration,
    /// What random numbers follow from.
    pub seed: u64,
}

/// The result of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ranges acquired.
    pub acquired: u64,
    /// Requests that gave up.
    pub gave_up: u64,
    /// The most ranges that a thread held at once.
    pub most_held: usize,
    /// The longest that a request waited that did not give up.
    pub longest_wait: Duration,
}

/// A promise that a lock broke.
#[derive(Debug, Display, Error, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Holders met that exclude each other.
    #[display("holders met that exclude each other: {_0}")]
    Met(#[error(not(source))] String),
    /// A thread got nowhere.
    #[display(
        "thread {thread} got nowhere for {:.1} s\n{}",
        time.as_secs_f64(),
        snapshot.as_deref().unwrap_or("the lock cannot tell who holds it")
    )]
    Stuck {
        /// Its number.
        thread: usize,
        /// For how long.
        time: Duration,
        /// The holders and the waiters, if the lock can name them.
        snapshot: Option<String>,
    },
    /// Holders that do not exclude each other were kept apart.
    #[display("{_0} were kept apart")]
    Apart(#[error(not(source))] Meeting),
    /// It kept more and more memory: so many bytes beyond what it had after the first round.
    #[display("{_0} bytes more are allocated than after the first round, and {MAX_GROWTH} may be")]
    Grown(#[error(not(source))] Bytes),
}

/// A lock that is soaked, whatever its type.
pub trait Soaked {
    /// The holders that can meet in it.
    fn meetings(&self) -> Vec<Meeting>;

    /// One round, of about so much time.
    ///
    /// # Errors
    /// The promise that the lock broke. A thread that is stuck is left behind.
    fn round(&mut self, number: u32, time: Duration) -> Result<Tally, Fault>;
}

/// The soak of one lock.
pub struct Soak {
    lock: &'static Lock,
    plan: Plan,
    soaked: Box<dyn Soaked>,
    grown: Bytes,
}

impl Soak {
    /// Of a fresh lock, by so many threads, of which none may get nowhere for longer than `stall`.
    #[must_use]
    pub fn new(lock: &'static Lock, threads: usize, stall: Duration, seed: u64) -> Self {
        let several = match (lock.holds_one_because(RESOURCE), lock.waits_for) {
            (Some(why), _) => Several::Never(why),
            (None, WaitsFor::Holders) => Several::Waiting,
            (None, WaitsFor::EarlierRequests) => Several::Trying,
        };
        let plan = Plan {
            threads,
            several,
            stall,
            seed,
        };
        Self {
            lock,
            plan,
            soaked: lock.measure.soak(lock.values, plan),
            grown: 0,
        }
    }

    /// The lock.
    #[must_use]
    pub fn lock(&self) -> &'static Lock {
        self.lock
    }

    /// Runs a round of about so much time. The first is number 0, and memory is compared with what it left.
    ///
    /// # Errors
    /// The promise that the lock broke.
    pub fn round(
        &mut self,
        number: u32,
        time: Duration,
        allocated: Allocated<'_>,
    ) -> Result<Record, Fault> {
        let before = allocated();
        let tally = self.soaked.round(number, time)?;
        if number > 0 {
            self.grown += allocated() - before;
        }
        if self.grown > MAX_GROWTH {
            return Err(Fault::Grown(self.grown));
        }
        Ok(self.record(number, &tally))
    }

    fn record(&self, round: u32, tally: &Tally) -> Record {
        Record {
            lock: self.lock.name.to_owned(),
            round,
            threads: self.plan.threads,
            seed: self.plan.seed,
            acquired: tally.acquired,
            gives_up: match self.lock.measure.gives_up() {
                GivesUp::Never => "never",
                GivesUp::AtOnce => "at once",
                GivesUp::InTime => "in time",
            }
            .to_owned(),
            gave_up: tally.gave_up,
            several: self.plan.several.to_string(),
            most_held: tally.most_held,
            meetings: self.soaked.meetings(),
            readers_share: self.lock.measure.readers() == Readers::Share,
            longest_wait_ms: tally.longest_wait.as_secs_f64() * 1e3,
            grown_bytes: self.grown,
        }
    }
}
