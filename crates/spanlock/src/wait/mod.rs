//! How long threads wait, and how they sleep and are woken.
//!
//! | module | content |
//! |---|---|
//! | `alarm` | what a queue knows of the calls that it has asked the timer for |
//! | `limit` | [`Wait`]: how long an acquisition may wait |
//! | `parker` | one thread sleeps until another signals it |
//! | `spins` | how long one thread spins before it sleeps |
//! | `tasks` | wakers of tasks, and when their code may run |
//! | `word` | threads sleep until an atomic word has a certain value |

mod alarm;
mod limit;
mod parker;
mod spins;
mod tasks;
#[cfg(feature = "rw")]
pub(crate) mod word;

pub(crate) use alarm::Alarm;
pub use limit::Wait;
pub(crate) use parker::{Parker, Ticket, Wakeups};
pub(crate) use spins::{LONGEST_SPIN, Spins, Stay};
pub(crate) use tasks::{WakerId, Wakers, contain};
