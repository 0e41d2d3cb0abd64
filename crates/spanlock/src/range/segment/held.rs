//! Which segments a thread holds.

use crate::deadlock::{LockKey, Wish};
use crate::range::mode::Mode;
use crate::range::span::Span;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;

/// Segments, by number, and the mode in which they are asked for or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segments {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) mode: Mode,
}

impl Segments {
    /// One segment.
    pub(super) fn one(segment: u64, mode: Mode) -> Self {
        Self {
            first: segment,
            last: segment,
            mode,
        }
    }

    /// These of the lock with that id, as those who look for deadlocks compare them.
    pub(super) fn wish(self, lock: u64, at: &'static Location<'static>) -> Wish {
        let span = Span::inclusive(self.first, self.last).expect("segments are in order");
        Wish {
            lock: LockKey::Segments(lock),
            span,
            mode: self.mode,
            at,
        }
    }

    /// Whether a request of these has to wait for the holder of `held`.
    fn meets(self, held: Self) -> bool {
        held.mode.conflicts(self.mode) && held.first <= self.last && self.first <= held.last
    }

    /// Whether it has to wait at one of the segments.
    fn meets_at(self, held: Self, segment: u64) -> bool {
        held.mode.conflicts(self.mode) && (held.first..=held.last).contains(&segment)
    }
}

/// Segments that a thread holds: in which lock, and since when.
struct Hold {
    lock: u64,
    segments: Segments,
    at: &'static Location<'static>,
}

/// All that one thread holds.
#[derive(Default)]
pub(in crate::range) struct HeldSegments(RefCell<VecDeque<Hold>>);

impl HeldSegments {
    /// Notes segments acquired there, in the lock with that id.
    pub(super) fn note(&self, lock: u64, segments: Segments, at: &'static Location<'static>) {
        self.0.borrow_mut().push_back(Hold { lock, segments, at });
    }

    /// Forgets segments, and returns where they were acquired. A thread that is exiting may have forgotten them
    /// already.
    pub(super) fn forget(
        &self,
        lock: u64,
        segments: Segments,
    ) -> Option<&'static Location<'static>> {
        let mut noted = self.0.borrow_mut();
        let is_it = |held: &Hold| held.lock == lock && held.segments == segments;
        // From both ends at once, because most are released in the order of their acquisition or in reverse order.
        let last = noted.len().checked_sub(1)?;
        let place = (0..=last / 2)
            .flat_map(|step| [last - step, step])
            .find(|&place| is_it(&noted[place]))?;
        Some(noted.remove(place)?.at)
    }

    /// Forgets all.
    pub(in crate::range) fn forget_all(&self) {
        self.0.take();
    }

    /// Forgets what this thread still holds, by leaked guards, in a lock that is dropped.
    pub(super) fn forget_lock(&self, lock: u64) {
        self.0.borrow_mut().retain(|held| held.lock != lock);
    }

    /// What this thread holds in all segment locks, as those who look for deadlocks compare it.
    pub(in crate::range) fn wishes(&self) -> Vec<Wish> {
        let noted = self.0.borrow();
        let wish = |held: &Hold| held.segments.wish(held.lock, held.at);
        noted.iter().map(wish).collect()
    }

    /// What this thread holds in the lock with that id, each converted by `f`.
    pub(super) fn of_lock<R>(&self, lock: u64, f: impl Fn(Segments) -> R) -> Vec<R> {
        let noted = self.0.borrow();
        let held = noted.iter().filter(|held| held.lock == lock);
        held.map(|held| f(held.segments)).collect()
    }

    /// Whether this thread itself holds that segment in the way of a request.
    pub(super) fn holds(&self, lock: u64, wanted: Segments, segment: u64) -> bool {
        let noted = self.0.borrow();
        noted
            .iter()
            .any(|held| held.lock == lock && wanted.meets_at(held.segments, segment))
    }

    /// What this thread itself holds in the way of a request, and where it was acquired.
    pub(super) fn in_the_way_of(
        &self,
        lock: u64,
        wanted: Segments,
    ) -> Option<(Segments, &'static Location<'static>)> {
        let noted = self.0.borrow();
        let in_the_way = |held: &&Hold| held.lock == lock && wanted.meets(held.segments);
        let held = noted.iter().find(in_the_way)?;
        Some((held.segments, held.at))
    }
}
