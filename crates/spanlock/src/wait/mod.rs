//! How long threads wait, and how they sleep and are woken.
//!
//! | module | content |
//! |---|---|
//! | `alarm` | what a queue knows of the calls that it has asked the timer for |
//! | `limit` | [`Wait`]: how long an acquisition may wait |
//! | `parker` | one thread sleeps until another signals it |
//! | `spins` | how long one thread spins before it sleeps |
//! | `tasks` | wakers of tasks, and when their code may run |

mod alarm;
mod limit;
mod parker;
mod spins;
mod tasks;

pub(crate) use alarm::Alarm;
pub use limit::Wait;
pub(crate) use parker::{Parker, Ticket, Wakeups};
pub(crate) use spins::{Spins, Stay};
pub(crate) use tasks::{WakerId, Wakers};

/// Nanoseconds that are short against a time slice of any scheduler, and long against all that a thread which runs does
/// between two decisions.
pub(crate) const BRIEF: u64 = 128_000;
