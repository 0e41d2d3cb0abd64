//! What a thread holds of range locks, and the tokens by which it releases.
//!
//! A token of C is two words, which a program may copy, keep too long, or make up. So it does not lead to memory: it
//! names a thread, a place in that thread's table, and a ticket that was never used before.
//!
//! ```text
//!   token                                  table of thread 7
//!   +----------+---------+-----------+       place   ticket   lock    hold
//!   | thread 7 | place 1 | ticket 93 |       0       92       L       a range, exclusive
//!   +----------+---------+-----------+       1       93       L       several ranges, shared
//!                                            2       -        -       free
//! ```
//!
//! A release compares all of it, and changes nothing if one part differs. Only the thread itself uses its table, so that
//! takes no atomic operation.

use crate::answer::{Answer, Refused, ensure};
use crate::handle::Handle;
use libc::{EINVAL, EPERM};
use spanlock::range::raw::Mode;
use spanlock::range::slots;
use spanlock::range::{Guards, ReadGuard, Span, WriteGuard};
use std::ptr;

/// What a range is released by. It may be copied and moved: whichever copy is released first counts, and the others are
/// refused from then on. All zero, it stands for nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The library's own.
    pub opaque: [u64; 2],
}

/// In the place of the thread and the place, of a token whose range a thread of the library holds.
const SUBMITTED: u64 = u64::MAX;

impl Token {
    pub(crate) const NONE: Self = Self { opaque: [0; 2] };

    pub(crate) fn of_request(id: u64) -> Self {
        let opaque = [SUBMITTED, id];
        Self { opaque }
    }

    /// The submitted request whose range it stands for, if it does.
    #[cold]
    pub(crate) fn request(self) -> Option<u64> {
        let [first, id] = self.opaque;
        (first == SUBMITTED).then_some(id)
    }
}

/// What one token acquired.
pub(crate) enum Hold {
    /// A range. An empty one has no token of the lock's.
    One(Option<slots::Token>),
    Many(#[expect(dead_code, reason = "dropping it releases")] Box<Many>),
}

/// A range and how it is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) span: Span,
    pub(crate) mode: Mode,
}

impl Asked {
    fn conflicts(self, other: Self) -> bool {
        self.mode.conflicts(other.mode) && self.span.overlaps(other.span)
    }
}

/// Several ranges, acquired together. `'static` stands for the life of their lock, which lives as long as it is held.
pub(crate) struct Many {
    /// `None` only within a call.
    pub(crate) guards: Option<ManyGuards>,
    pub(crate) asked: Box<[Asked]>,
}

pub(crate) enum ManyGuards {
    Shared(#[expect(dead_code, reason = "dropping it releases")] Guards<ReadGuard<'static>>),
    Exclusive(Guards<WriteGuard<'static>>),
}

/// A place in the table. Its parts are apart, so that the compiler writes each once.
struct Place {
    /// Zero, if the place is free.
    ticket: u64,
    lock: *const Handle,
    /// Of a single range that is not empty.
    token: Option<slots::Token>,
    asked: Asked,
    many: Option<Box<Many>>,
    /// The next place that is free, if this one is.
    next: u32,
}

/// What a thread holds.
pub(crate) struct Holds {
    /// The thread's number, in the upper half.
    thread: u64,
    places: Vec<Place>,
    /// The place to use next: a free one, or the one after the last.
    free: u32,
    held: u32,
    ticket: u64,
}

/// In the place of the range of a token that has none, or several.
const NO_RANGE: Asked = Asked {
    span: Span::ALL,
    mode: Mode::Shared,
};

impl Holds {
    /// The empty table of the thread of that number. Its tickets come after that one.
    pub(crate) fn new(thread: u32, ticket: u64) -> Self {
        Self {
            thread: u64::from(thread) << 32,
            places: Vec::new(),
            free: 0,
            held: 0,
            ticket,
        }
    }

    /// The last ticket.
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Whether the thread holds nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Notes a range that the thread has acquired.
    #[inline]
    pub(crate) fn note(&mut self, lock: &Handle, token: slots::Token, asked: Asked) -> Token {
        let (at, place) = self.take_place(lock);
        place.token = Some(token);
        place.asked = asked;
        self.token(at)
    }

    /// Notes an empty range.
    pub(crate) fn note_empty(&mut self, lock: &Handle) -> Token {
        let (at, _) = self.take_place(lock);
        self.token(at)
    }

    /// Notes several ranges.
    pub(crate) fn note_many(&mut self, lock: &Handle, many: Many) -> Token {
        let (at, place) = self.take_place(lock);
        place.many = Some(Box::new(many));
        self.token(at)
    }

    /// The token of a place that was just taken.
    #[inline]
    fn token(&self, at: u32) -> Token {
        let opaque = [self.thread | u64::from(at), self.ticket];
        Token { opaque }
    }

    /// A free place, from now on in use.
    #[inline]
    fn take_place(&mut self, lock: &Handle) -> (u32, &mut Place) {
        let at = self.free;
        if at as usize == self.places.len() {
            self.append();
        }
        let place = &mut self.places[at as usize];
        self.free = place.next;
        self.held += 1;
        self.ticket += 1;
        place.ticket = self.ticket;
        place.lock = ptr::from_ref(lock);
        (at, place)
    }

    #[cold]
    fn append(&mut self) {
        let next = u32::try_from(self.places.len() + 1);
        self.places.push(Place {
            ticket: 0,
            lock: ptr::null(),
            token: None,
            asked: NO_RANGE,
            many: None,
            next: next.expect("a thread holds fewer than 2^32 ranges"),
        });
    }

    /// The place that a token names. `EINVAL` if what it stands for was released, or is in another lock; `EPERM` if
    /// another thread holds it.
    #[inline]
    fn find(&mut self, lock: &Handle, token: Token) -> Answer<(u32, &mut Place)> {
        let [first, ticket] = token.opaque;
        ensure((first ^ self.thread) >> 32 == 0, EPERM)?;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let at = first as u32;
        match self.places.get_mut(at as usize) {
            Some(place) if place.ticket == ticket && ticket != 0 && ptr::eq(place.lock, lock) => {
                Ok((at, place))
            }
            _ => Err(Refused(EINVAL)),
        }
    }

    /// Forgets what was acquired, and returns it, to be released.
    #[inline]
    pub(crate) fn forget(&mut self, lock: &Handle, token: Token) -> Answer<Hold> {
        let next = self.free;
        let (at, place) = self.find(lock, token)?;
        place.ticket = 0;
        place.next = next;
        let hold = match place.token.take() {
            Some(token) => Hold::One(Some(token)),
            None => place.many.take().map_or(Hold::One(None), Hold::Many),
        };
        self.free = at;
        self.held -= 1;
        Ok(hold)
    }

    /// Shares what was acquired.
    pub(crate) fn share(&mut self, lock: &Handle, token: Token) -> Answer {
        let (_, place) = self.find(lock, token)?;
        if place.token.is_some() && place.asked.mode == Mode::Exclusive {
            place.asked.mode = Mode::Shared;
            // SAFETY: the running thread acquired it in this lock, exclusively, as the table says.
            place.token = place
                .token
                .take()
                .map(|token| unsafe { lock.downgrade(token) });
        }
        if let Some(many) = &mut place.many {
            many.guards = many.guards.take().map(|guards| match guards {
                ManyGuards::Exclusive(guards) => ManyGuards::Shared(guards.downgrade()),
                shared @ ManyGuards::Shared(_) => shared,
            });
            for asked in &mut many.asked {
                asked.mode = Mode::Shared;
            }
        }
        Ok(())
    }

    /// Whether the thread itself holds something in the way of a request, so that it would wait for ever.
    #[cold] // The request has been refused once.
    pub(crate) fn conflicts(&self, lock: &Handle, asked: Asked) -> bool {
        let held = self.places.iter();
        let held = held.filter(|place| place.ticket != 0 && ptr::eq(place.lock, lock));
        held.flat_map(|place| match &place.many {
            Some(many) => &many.asked,
            None if place.token.is_some() => std::slice::from_ref(&place.asked),
            None => &[],
        })
        .any(|held| held.conflicts(asked))
    }
}
