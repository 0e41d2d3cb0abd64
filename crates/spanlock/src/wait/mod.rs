//! How long threads wait, and how they sleep and are woken.
//!
//! | module | content |
//! |---|---|
//! | `limit` | [`Wait`]: how long an acquisition may wait |
//! | `parker` | one thread sleeps until another signals it |
//! | `spins` | how long one thread spins before it sleeps |
//! | `word` | threads sleep until an atomic word has a certain value |

mod limit;
mod parker;
mod spins;
#[cfg(feature = "rw")]
pub(crate) mod word;

pub use limit::Wait;
pub(crate) use parker::{Parker, Ticket, Wakeups};
pub(crate) use spins::{LONGEST_SPIN, Spins, Stay};
