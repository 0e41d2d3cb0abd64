//! Deadlocks: rings of threads and owners, each of which waits for what the next one holds.
//!
//! No lock looks for them unless it is told to: by its builder ([`Deadlocks`]), or by the environment variable
//! `SPANLOCK_DEADLOCKS` for all that are not told otherwise.
//!
//! ```text
//! SPANLOCK_DEADLOCKS=report        looks once a second while requests sleep, and reports what it finds
//! SPANLOCK_DEADLOCKS=report:250    looks each 250 milliseconds
//! SPANLOCK_DEADLOCKS=off           does not look, as without it
//! ```
//!
//! Anything else is ignored, and a line on the standard error output says so when the first request sleeps.
//!
//! A report goes to the standard error output, or to [`on_report`]'s function. An owner's request may be
//! [refused](Deadlocks::refuse) instead, so that its transaction can be rolled back and tried again.
//!
//! ```
//! use spanlock::deadlock::Deadlocks;
//! use spanlock::range::{Owner, RangeLock, Refusal};
//! use std::sync::Barrier;
//! use std::time::Duration;
//!
//! let often = Deadlocks::refuse().every(Duration::from_millis(10));
//! let rows = RangeLock::from_raw(RangeLock::builder().deadlocks(often).build());
//! let both_hold_one = Barrier::new(2);
//! let transaction = |first: u64, second: u64| {
//!     let me = Owner::new();
//!     let mut one = rows.by(&me).write(first..=first)?;
//!     both_hold_one.wait();
//!     one.extend(second..=second)?;
//!     Ok::<_, Refusal>(())
//! };
//! let (a, b) = std::thread::scope(|scope| {
//!     let other = scope.spawn(|| transaction(2, 1));
//!     (transaction(1, 2), other.join().expect("it ends"))
//! });
//! assert!([a, b].contains(&Ok(())) && [a, b].contains(&Err(Refusal::Deadlock)));
//! ```
//!
//! `docs/deadlocks.md` says which locks take part, what is found and what is not, and why no report is false.
//!
//! | file | content |
//! |---|---|
//! | `account.rs` | what a thread that sleeps says of itself, where the lock does not know who holds it |
//! | `graph.rs` | who waits for whom, and which of them are stuck |
//! | `monitor.rs` | the looks: which queues are watched, and when |
//! | `report.rs` | what is told |
//! | `range/wait/watched.rs` | what a queue does for a look |
//!
//! # Edges
//!
//! - **second-look**: what a look finds is told when the next look finds the same requests waiting behind the same
//!   holders, each in one and the same wait. Then there was a moment at which all of them waited.
//! - **refused-wakes**: a request that is refused is woken, and finds the refusal when it wakes.

mod account;
mod graph;
mod monitor;
mod report;

pub use crate::range::shown::HeldRange;
pub use report::{Deadlock, NotPolled, Report, Step, dump_all, on_report};

#[cfg(feature = "rw")]
pub(crate) use account::tells_whole;
pub(crate) use account::{Account, LockKey, Published, Wish, publish, with_whole};
pub(crate) use graph::{Key, Wait};
#[cfg(feature = "rw")]
pub(crate) use monitor::watch_accounts;
pub(crate) use monitor::{Idle, Seen, Watched, forget, is_refused, new_number, watch};

use prim::clock::Duration;
use prim::sync::OnceLock;
use std::io::{self, Write};

/// Whether a lock looks for deadlocks, how often, and what it does then.
///
/// The default is what the environment says; see the [module](self).
///
/// # Cost
/// To a request that does not sleep: nothing. While requests sleep in the lock, a thread of the library looks at all of
/// them once in a period, with the mutex of the lock's queue held. The lock allocates an entry in a global list when
/// the first of its requests sleeps after none did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlocks {
    told: Told,
    /// In milliseconds.
    every: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Told {
    ByEnvironment,
    Off,
    Report,
    Refuse,
}

/// How deadlocks are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detection {
    pub(crate) every: Duration,
    pub(crate) answer: Answer,
}

/// What becomes of a deadlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Report,
    /// An owner's request is refused, if there is one.
    Refuse,
}

impl Deadlocks {
    const SECOND: u32 = 1000;

    /// As the environment variable `SPANLOCK_DEADLOCKS` says: not at all, unless it is set.
    pub const BY_ENVIRONMENT: Self = Self {
        told: Told::ByEnvironment,
        every: Self::SECOND,
    };

    /// Does not look, whatever the environment says.
    pub const OFF: Self = Self {
        told: Told::Off,
        every: Self::SECOND,
    };

    /// Looks once a second, and reports.
    #[must_use]
    pub const fn report() -> Self {
        Self {
            told: Told::Report,
            every: Self::SECOND,
        }
    }

    /// Looks once a second. If a request of an [`Owner`](crate::range::Owner) to this lock is part of the deadlock, it
    /// is refused with [`Refusal::Deadlock`](crate::range::Refusal::Deadlock), and
    /// [`Owner::deadlock`](crate::range::Owner::deadlock) has the whole ring; of several, that of the owner which was
    /// made last. Otherwise the deadlock is reported.
    #[must_use]
    pub const fn refuse() -> Self {
        Self {
            told: Told::Refuse,
            every: Self::SECOND,
        }
    }

    /// Looks once in that time, in whole milliseconds: at least one, at most a day.
    #[must_use]
    pub const fn every(mut self, period: Duration) -> Self {
        const DAY: u128 = 24 * 3600 * 1000;
        let milliseconds = period.as_millis();
        self.every = match milliseconds {
            0 => 1,
            1..DAY => milliseconds as u32,
            _ => DAY as u32,
        };
        self
    }

    pub(crate) fn detection(self) -> Option<Detection> {
        let answer = match self.told {
            Told::ByEnvironment => return by_environment(),
            Told::Off => return None,
            Told::Report => Answer::Report,
            Told::Refuse => Answer::Refuse,
        };
        let every = Duration::from_millis(self.every.into());
        Some(Detection { every, answer })
    }

    /// `None`: that is not understood.
    fn parse(told: &str) -> Option<Self> {
        if matches!(told, "" | "off") {
            return Some(Self::OFF);
        }
        let (what, every) = told.split_once(':').unwrap_or((told, "1000"));
        let every = Duration::from_millis(every.parse().ok()?);
        (what == "report").then(|| Self::report().every(every))
    }
}

impl Default for Deadlocks {
    fn default() -> Self {
        Self::BY_ENVIRONMENT
    }
}

/// What the environment says about locks that are not told otherwise. It is asked once.
pub(crate) fn by_environment() -> Option<Detection> {
    static SAYS: OnceLock<Option<Detection>> = OnceLock::new();
    *SAYS.get_or_init(|| {
        let told = std::env::var_os("SPANLOCK_DEADLOCKS")?;
        let told = told.to_string_lossy();
        let understood = Deadlocks::parse(&told);
        if understood.is_none() {
            let expected = "report, report:MILLISECONDS or off";
            let _uncancelled = prim::thread::Uncancelled::new();
            // Who runs the program would take silence for the absence of deadlocks. If it cannot be told, it is not.
            let _ = writeln!(
                io::stderr(),
                "spanlock: SPANLOCK_DEADLOCKS={told} is ignored: expected {expected}"
            );
        }
        understood?.detection()
    })
}

#[cfg(test)]
mod tests {
    use super::{Answer, Deadlocks, Detection};
    use prim::clock::Duration;

    #[test]
    fn the_environment_says_what_and_how_often() {
        let report = |milliseconds| Detection {
            every: Duration::from_millis(milliseconds),
            answer: Answer::Report,
        };
        let says = |told| {
            Deadlocks::parse(told)
                .expect("it is understood")
                .detection()
        };
        assert_eq!(says("report"), Some(report(1000)));
        assert_eq!(says("report:250"), Some(report(250)));
        assert_eq!(says("report:0"), Some(report(1)));
        assert_eq!([says("off"), says("")], [None; 2]);
        assert_eq!(
            ["1", "report:soon", "refuse"].map(Deadlocks::parse),
            [None; 3]
        );
    }

    #[test]
    fn a_period_is_a_millisecond_to_a_day() {
        let every = |period| Deadlocks::report().every(period).detection().unwrap().every;
        assert_eq!(every(Duration::ZERO), Duration::from_millis(1));
        assert_eq!(every(Duration::MAX), Duration::from_secs(24 * 3600));
    }
}
