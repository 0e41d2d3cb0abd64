//! The ids of threads and owners.

use std::fmt;

/// Names who holds a range or asks for it, in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerId(u32);

impl OwnerId {
    /// The numbers from here on are those of owners, and those below are of threads.
    const FIRST: u32 = 1 << 31;

    /// The largest number of an owner, as it is shown.
    pub(super) const MOST: u32 = Self::FIRST - 1;

    /// The id of each [anonymous](super::Owner::anonymous) owner.
    pub(super) const ANONYMOUS: Self = Self(Self::FIRST);

    /// The thread; on Linux its number in a debugger and in `ps -L`. `None`: it is an [`Owner`](super::Owner).
    #[must_use]
    pub fn thread(self) -> Option<u32> {
        (self.0 < Self::FIRST).then_some(self.0)
    }

    /// The number of an [`Owner`](super::Owner), as it is shown. `None`: it is a thread, or
    /// [anonymous](super::Owner::anonymous).
    #[must_use]
    pub fn owner(self) -> Option<u32> {
        self.0.checked_sub(Self::FIRST).filter(|&number| number > 0)
    }

    pub(crate) const fn of_owner(number: u32) -> Self {
        Self(Self::FIRST | number)
    }

    pub(crate) const fn of_thread(thread: u32) -> Self {
        Self(thread)
    }

    /// The id with that [number](Self::number).
    pub(crate) const fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// Whether both are the same thread or owner, as far as is known: nothing is known of anonymous owners.
    #[inline]
    pub(crate) fn is_same(self, other: Self) -> bool {
        self == other && self != Self::ANONYMOUS
    }

    /// The number as it is kept beside a request.
    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

impl From<u32> for OwnerId {
    /// The id of a thread.
    fn from(thread: u32) -> Self {
        Self::of_thread(thread)
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread() {
            Some(thread) => write!(f, "thread {thread}"),
            None if *self == Self::ANONYMOUS => f.write_str("somebody"),
            None => write!(f, "owner {}", self.0 - Self::FIRST),
        }
    }
}
