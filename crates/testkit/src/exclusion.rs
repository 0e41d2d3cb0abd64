//! The exclusion oracle: holders of a lock report themselves, and the oracle panics when two exclude each other.
//!
//! Reports are Relaxed operations. They order nothing, so they cannot hide an ordering that the lock lacks.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// How a thread holds a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// With other readers.
    Reader,
    /// Alone. The number names the writer in messages.
    Writer(u32),
}

/// The state of a place: the number of readers inside, or a writer's number as a negative one.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Place(AtomicI32);

/// The holders that a report found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// None.
    Nobody,
    /// So many readers.
    Readers(u32),
    /// The writer of that number.
    Writer(u32),
}

/// A report that contradicts the state of the place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// The holder that reported.
    pub holder: Holder,
    /// When it did.
    pub when: When,
    /// The holders that it found.
    pub found: Found,
}

/// The report in which a conflict shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A holder entered beside others that it excludes.
    Entering,
    /// Others that a holder excludes entered before it left.
    Leaving,
}

fn encoded(writer: u32) -> i32 {
    -1 - i32::try_from(writer).expect("writers have small numbers")
}

fn decoded(state: i32) -> Found {
    match state {
        0 => Found::Nobody,
        1.. => Found::Readers(state.unsigned_abs()),
        _ => Found::Writer(state.unsigned_abs() - 1),
    }
}

fn report(is_allowed: bool, holder: Holder, when: When, before: i32) -> Result<(), Conflict> {
    let found = decoded(before);
    let conflict = Conflict {
        holder,
        when,
        found,
    };
    if is_allowed { Ok(()) } else { Err(conflict) }
}

impl Place {
    /// A holder begins to hold the place.
    ///
    /// # Errors
    /// When a holder is inside that excludes it.
    pub fn enter(&self, holder: Holder) -> Result<(), Conflict> {
        let (before, is_allowed) = match holder {
            Holder::Reader => {
                let before = self.0.fetch_add(1, Relaxed);
                (before, before >= 0)
            }
            Holder::Writer(number) => {
                let before = self.0.swap(encoded(number), Relaxed);
                (before, before == 0)
            }
        };
        report(is_allowed, holder, When::Entering, before)
    }

    /// A holder is about to release the place.
    ///
    /// # Errors
    /// When a holder entered meanwhile that it excludes.
    pub fn leave(&self, holder: Holder) -> Result<(), Conflict> {
        let (before, is_allowed) = match holder {
            Holder::Reader => {
                let before = self.0.fetch_sub(1, Relaxed);
                (before, before > 0)
            }
            Holder::Writer(number) => {
                let before = self.0.swap(0, Relaxed);
                (before, before == encoded(number))
            }
        };
        report(is_allowed, holder, When::Leaving, before)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reader => "a reader",
            Self::Writer(_) => "a writer",
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("somebody who has left"),
            Self::Readers(1) => f.write_str("a reader"),
            Self::Readers(count) => write!(f, "{count} readers"),
            Self::Writer(_) => f.write_str("a writer"),
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, found, .. } = self;
        match (self.when, holder) {
            (When::Entering, _) => write!(f, "{holder} beside {found}"),
            (When::Leaving, Holder::Reader) => f.write_str("a writer came in beside a reader"),
            (When::Leaving, Holder::Writer(_)) => write!(f, "{found} came in beside {holder}"),
        }
    }
}

/// As it is displayed: `unwrap` prints this.
impl fmt::Debug for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A [place](Place) with a content, a plain number that each writer raises by one. A lock that orders too little loses
/// some of these updates, and a sanitizer sees the race.
#[derive(Debug, Default)]
pub struct Slot {
    place: Place,
    content: UnsafeCell<u64>,
}

// SAFETY: only visits access the content through a shared reference, and the caller that begins a visit promises to
// hold the slot.
unsafe impl Sync for Slot {}

impl Slot {
    /// So many, of which nobody holds any.
    #[must_use]
    pub fn many(count: u64) -> Vec<Self> {
        (0..count).map(|_| Self::default()).collect()
    }

    /// How many writers have visited it.
    #[must_use]
    pub fn writes(&mut self) -> u64 {
        *self.content.get_mut()
    }

    /// # Safety
    /// The caller holds the slot.
    unsafe fn read(&self) -> u64 {
        // SAFETY: a holder excludes writers, by the caller's promise.
        unsafe { *self.content.get() }
    }
}

/// A holder's stay in some slots.
#[derive(Debug)]
#[must_use]
pub struct Visit<'a> {
    slots: &'a [Slot],
    holder: Holder,
    /// The first slot's content at the beginning.
    first: u64,
}

impl<'a> Visit<'a> {
    /// Enters the slots, of which there is one at least. A writer raises their contents.
    ///
    /// # Panics
    /// When a holder is in one of them that excludes this one.
    ///
    /// # Safety
    /// The caller holds all of the slots in this way until the visit ends. If the lock under test is wrong about that,
    /// the test is undefined: a sanitizer reports the race.
    #[track_caller]
    pub unsafe fn begin(slots: &'a [Slot], holder: Holder) -> Self {
        for slot in slots {
            slot.place.enter(holder).unwrap();
            if let Holder::Writer(_) = holder {
                // SAFETY: a writer excludes all others, by the caller's promise.
                unsafe { *slot.content.get() += 1 };
            }
        }
        // SAFETY: held, by the caller's promise.
        let first = unsafe { slots[0].read() };
        Self {
            slots,
            holder,
            first,
        }
    }

    /// Leaves the slots.
    ///
    /// # Panics
    /// When a holder entered meanwhile that excludes this one, or changed the content.
    #[track_caller]
    pub fn end(self) {
        // SAFETY: the slot is held, as the caller that began the visit promised.
        let now = unsafe { self.slots[0].read() };
        assert_eq!(now, self.first, "changed under a holder");
        for slot in self.slots {
            slot.place.leave(self.holder).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Conflict, Found, Holder, Place, Slot, Visit};

    const WRITER: Holder = Holder::Writer(6);

    fn text(result: Result<(), Conflict>) -> String {
        result.map_or_else(|conflict| conflict.to_string(), |()| "well".to_owned())
    }

    #[test]
    fn holders_that_exclude_each_other_are_named() {
        let place = Place::default();
        assert_eq!(place.enter(Holder::Reader), Ok(()));
        assert_eq!(place.enter(Holder::Reader), Ok(()));
        let found = |result: Result<(), Conflict>| result.map_err(|conflict| conflict.found);
        assert_eq!(found(place.enter(WRITER)), Err(Found::Readers(2)));
        assert_eq!(found(place.enter(Holder::Reader)), Err(Found::Writer(6)));
    }

    #[test]
    fn those_that_came_in_are_found_on_leaving() {
        let place = Place::default();
        assert_eq!(place.enter(WRITER), Ok(()));
        assert_eq!(
            text(place.enter(Holder::Reader)),
            "a reader beside a writer"
        );
        let place = Place::default();
        assert_eq!(place.enter(Holder::Reader), Ok(()));
        assert_eq!(text(place.enter(WRITER)), "a writer beside a reader");
        assert_eq!(
            text(place.leave(Holder::Reader)),
            "a writer came in beside a reader"
        );
        let place = Place::default();
        assert_eq!(place.enter(WRITER), Ok(()));
        let left = place.leave(Holder::Writer(7));
        assert_eq!(text(left), "a writer came in beside a writer");
        assert_eq!(
            text(place.leave(WRITER)),
            "somebody who has left came in beside a writer"
        );
    }

    #[test]
    fn visits_one_after_another_are_well_and_count_writes() {
        let mut slots = Slot::many(3);
        for holder in [WRITER, Holder::Reader, WRITER] {
            // SAFETY: this is the only thread.
            let visit = unsafe { Visit::begin(&slots[1..], holder) };
            visit.end();
        }
        let writes: Vec<_> = slots.iter_mut().map(Slot::writes).collect();
        assert_eq!(writes, [0, 2, 2]);
    }

    #[test]
    #[should_panic(expected = "a writer beside a reader")]
    fn a_visit_beside_another_panics() {
        let slots = Slot::many(2);
        // SAFETY: this is the only thread.
        let _reader = unsafe { Visit::begin(&slots[..1], Holder::Reader) };
        // SAFETY: as before, and readers do not touch the content.
        let _writer = unsafe { Visit::begin(&slots, WRITER) };
    }
}
