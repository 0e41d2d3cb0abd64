//! What threads, owners and submitted requests hold, by the tokens that name it.
//!
//! A token of C is two words, which a program may copy, keep too long, or make up. So it does not lead to memory: it
//! names who holds, a place in that one's table, and a number that was never used before.
//!
//! ```text
//!   token                                    table
//!   +----------+---------+-----------+       place   number   lock    held
//!   | thread 7 | place 1 | number 93 |       0       92       L       a range, exclusive
//!   +----------+---------+-----------+       1       93       L       several ranges, shared
//!                                            2       94       M       in use: it is out of its place
//!                                            3       -        -       free
//! ```
//!
//! A release compares all of it, and changes nothing if one part differs.
//!
//! | file | who holds | by |
//! |---|---|---|
//! | `thread_ranges` | a thread, ranges | a [`Table`], and a place before it that a call finds without a pointer |
//! | [`owner_handle`](crate::owner_handle) | an owner, ranges | a [`Table`] for each kind of lock, under a mutex |
//! | `requests` | a submitted request, a range | a map: a program knows a request by one word, its number |
//! | `thread_rwlocks` | a thread, reader-writer locks | a search for the lock: their releases have no token |
//! | `thread` | | what the library keeps for each thread |

pub(crate) mod requests;
pub(crate) mod thread;
pub(crate) mod thread_ranges;
pub(crate) mod thread_rwlocks;

use crate::answer::{Answer, Refused, ensure};
use libc::{EBUSY, EINVAL};
use prim::atomic::{AtomicU64, Ordering};
use std::ops::Range;
use std::{mem, ptr};

/// What one who holds ranges holds.
pub(crate) struct Table<V> {
    places: Vec<Place<V>>,
    /// The place to use next: a free one, or the one after the last.
    free: u32,
    /// Numbers of tickets that nobody has used.
    numbers: Range<u64>,
}

/// What a token says of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) place: u32,
    pub(crate) number: u64,
}

struct Place<V> {
    /// Of what is here, or was here last.
    number: u64,
    /// Null, if the place is free.
    lock: *const (),
    content: Content<V>,
}

enum Content<V> {
    Held(V),
    /// A thread has what is here, and brings it back.
    InUse,
    /// Not used. The next place that is free.
    Free(u32),
}

impl<V> Place<V> {
    fn free(&mut self, next: u32) {
        self.lock = ptr::null();
        self.content = Content::Free(next);
    }
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Table<V> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: 0,
            numbers: 0..0,
        }
    }

    /// Whether it has had no place so far, and so has no memory.
    pub(crate) fn is_new(&self) -> bool {
        self.places.is_empty()
    }

    /// Keeps what is held of a lock.
    pub(crate) fn note<L>(&mut self, lock: &L, held: V) -> Ticket {
        let number = self.numbers.next().unwrap_or_else(|| {
            self.numbers = fresh_numbers();
            self.numbers.next().expect("there are some")
        });
        let at = self.free;
        let place = Place {
            number,
            lock: ptr::from_ref(lock).cast(),
            content: Content::Held(held),
        };
        if let Some(old) = self.places.get_mut(at as usize) {
            if let Content::Free(next) = mem::replace(old, place).content {
                self.free = next;
            }
        } else {
            self.free = at
                .checked_add(1)
                .expect("a table has fewer than 2^32 places");
            self.places.push(place);
        }
        Ticket { place: at, number }
    }

    /// Takes what a ticket stands for out of its place, for [`put_back`](Self::put_back). `EINVAL` if that was
    /// released, or is in another table or another lock; `EBUSY` if another thread has it.
    pub(crate) fn take<L>(&mut self, lock: &L, ticket: Ticket) -> Answer<V> {
        let place = self.places.get_mut(ticket.place as usize);
        let place = place.ok_or(Refused::by(EINVAL))?;
        let is_here = place.number == ticket.number && ptr::addr_eq(place.lock, lock);
        ensure(is_here, EINVAL)?;
        match mem::replace(&mut place.content, Content::InUse) {
            Content::Held(held) => Ok(held),
            Content::InUse | Content::Free(_) => Err(Refused::by(EBUSY)),
        }
    }

    /// Brings back what was taken.
    pub(crate) fn put_back(&mut self, ticket: Ticket, held: V) {
        self.places[ticket.place as usize].content = Content::Held(held);
    }

    /// Forgets what a ticket stands for, and returns it, to be released. Errors as of [`take`](Self::take).
    pub(crate) fn forget<L>(&mut self, lock: &L, ticket: Ticket) -> Answer<V> {
        let held = self.take(lock, ticket)?;
        let next = mem::replace(&mut self.free, ticket.place);
        self.places[ticket.place as usize].free(next);
        Ok(held)
    }

    /// Forgets all that is in its place, and returns it, each with its lock, and whether anything was out of its place.
    pub(crate) fn forget_all(&mut self) -> (Vec<(*const (), V)>, bool) {
        let mut all = Vec::new();
        let mut is_in_use = false;
        for (at, place) in (0..).zip(&mut self.places) {
            match mem::replace(&mut place.content, Content::InUse) {
                Content::Held(held) => {
                    all.push((place.lock, held));
                    place.free(mem::replace(&mut self.free, at));
                }
                Content::InUse => is_in_use = true,
                free @ Content::Free(_) => place.content = free,
            }
        }
        (all, is_in_use)
    }

    /// What is held of a lock, unless it is out of its place.
    pub(crate) fn held<L>(&self, lock: &L) -> impl Iterator<Item = &V> {
        let lock: *const () = ptr::from_ref(lock).cast();
        let places = self.places.iter();
        let of_lock = places.filter(move |place| ptr::eq(place.lock, lock));
        of_lock.filter_map(|place| match &place.content {
            Content::Held(held) => Some(held),
            Content::InUse | Content::Free(_) => None,
        })
    }
}

/// Numbers for the tickets of one table. Zero is none.
fn fresh_numbers() -> Range<u64> {
    /// So that most acquisitions touch nothing that all share, and a table wastes few.
    const SOME: u64 = 256;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let first = NEXT.fetch_add(SOME, Ordering::Relaxed);
    first..first + SOME
}
