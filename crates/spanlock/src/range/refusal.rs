//! Why an owner does not get a range.

use std::fmt;

/// Why an owner does not get a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Somebody else holds or awaits some of it, and the request may not wait any longer. A try takes somebody for a
    /// holder, too, who is about to hold some of it or to withdraw, and has not decided within 128 us: a thread that
    /// does not run.
    Busy,
    /// The owner was [cancelled](super::Owner::cancel).
    Cancelled,
    /// The owner holds and asks for as many ranges as it [may](super::Owner::with_limit).
    TooMany,
    /// Owners hold and ask for as many ranges of the lock as they [may](super::Limited).
    LockFull,
    /// The owner shares some of the range and wants it alone. Another owner does so, too, and waits already: each would
    /// wait for the other. Release what is shared, and ask again.
    OtherUpgrade,
    /// The request is one of a deadlock, and its lock [refuses](crate::deadlock::Deadlocks::refuse) one of those. What
    /// the owner holds it still holds, and somebody waits for that: release it, and ask again. See
    /// [`Owner::deadlock`](super::Owner::deadlock).
    Deadlock,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another request holds or awaits some of the range",
            Self::Cancelled => "the owner was cancelled",
            Self::TooMany => "the owner holds and asks for as many ranges as it may",
            Self::LockFull => "owners hold and ask for as many ranges of the lock as they may",
            Self::Deadlock => "the owner waits for somebody who waits for it",
            Self::OtherUpgrade => {
                "another owner that shares some of the range waits to have it alone"
            }
        })
    }
}

impl std::error::Error for Refusal {}
