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
//! A release compares all of it, and changes nothing if one part differs. Only the thread itself uses its table, so
//! that takes no atomic operation.

use crate::answer::{Answer, Refused, ensure};
use crate::handle::Handle;
use crate::local;
use libc::{EINVAL, EPERM};
use prim::atomic::{AtomicU64, Ordering};
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

impl Place {
    const fn free(next: u32) -> Self {
        Self {
            ticket: 0,
            lock: ptr::null(),
            token: None,
            asked: NO_RANGE,
            many: None,
            next,
        }
    }
}

/// What a thread holds.
///
/// Two fields that each acquisition and release changes are not side by side, or the compiler would load them at once:
/// a processor waits for both stores to be done before a load that takes what two stores wrote.
#[repr(C)]
pub(crate) struct Holds {
    /// The last ticket.
    ticket: u64,
    /// The thread's number, in the upper half; zero until the thread has one.
    thread: u64,
    /// How many of the others are in use.
    others: usize,
    /// Place zero. Most threads hold one range at a time, and find it without following a pointer.
    first: Place,
    /// The others, from place one on.
    more: Vec<Place>,
    /// The place to use next, if the first is taken: a free one, or the one after the last.
    free: u32,
}

/// The first place, which is free. What its token will say is known before the acquisition: after an atomic operation a
/// processor begins anew, and each load is part of what a caller waits for.
pub(crate) struct First<'a> {
    thread: u64,
    ticket: u64,
    holds: &'a mut Holds,
}

impl First<'_> {
    /// Notes a range that the thread has acquired.
    #[inline]
    pub(crate) fn note(self, lock: &Handle, token: slots::Token, asked: Asked) -> Token {
        let Self {
            thread,
            ticket,
            holds,
        } = self;
        holds.ticket = ticket;
        let first = &mut holds.first;
        first.ticket = ticket;
        first.lock = ptr::from_ref(lock);
        first.token = Some(token);
        first.asked = asked;
        Token {
            opaque: [thread, ticket],
        }
    }
}

/// In the place of the range of a token that has none, or several.
const NO_RANGE: Asked = Asked {
    span: Span::ALL,
    mode: Mode::Shared,
};

impl Holds {
    /// Nothing held, by a thread without a number.
    pub(crate) const fn new() -> Self {
        Self {
            ticket: 0,
            thread: 0,
            others: 0,
            first: Place::free(0),
            more: Vec::new(),
            free: 1,
        }
    }

    /// Whether the thread holds nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.ticket == 0 && self.others == 0
    }

    /// Frees the memory of a table in which nothing is held.
    pub(crate) fn clear(&mut self) {
        self.more = Vec::new();
        self.free = 1;
    }

    /// The first place, if the thread holds nothing. `None` also if it never has.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<First<'_>> {
        (self.is_empty() && self.ticket != 0).then_some(First {
            thread: self.thread,
            ticket: self.ticket + 1,
            holds: self,
        })
    }

    /// Notes a range that the thread has acquired.
    pub(crate) fn note(&mut self, lock: &Handle, token: slots::Token, asked: Asked) -> Token {
        let at = self.take_place(lock);
        let place = self.place(at);
        place.token = Some(token);
        place.asked = asked;
        self.token(at)
    }

    /// Notes an empty range.
    pub(crate) fn note_empty(&mut self, lock: &Handle) -> Token {
        let at = self.take_place(lock);
        self.token(at)
    }

    /// Notes several ranges.
    pub(crate) fn note_many(&mut self, lock: &Handle, many: Many) -> Token {
        let at = self.take_place(lock);
        self.place(at).many = Some(Box::new(many));
        self.token(at)
    }

    /// The token of a place that was just taken.
    fn token(&self, at: u32) -> Token {
        let opaque = [self.thread | u64::from(at), self.ticket];
        Token { opaque }
    }

    #[inline]
    fn place(&mut self, at: u32) -> &mut Place {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.more[at as usize],
        }
    }

    /// A free place, from now on in use.
    fn take_place(&mut self, lock: &Handle) -> u32 {
        let at = if self.first.ticket == 0 && self.ticket != 0 {
            0
        } else {
            self.prepare_place()
        };
        self.ticket += 1;
        let ticket = self.ticket;
        let place = self.place(at);
        place.ticket = ticket;
        place.lock = ptr::from_ref(lock);
        at
    }

    #[cold] // A thread's first acquisition, and those of a thread that holds something.
    fn prepare_place(&mut self) -> u32 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.thread == 0 {
            let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let number = u32::try_from(number).expect("a process has fewer than 2^32 threads");
            self.thread = u64::from(number) << 32;
        }
        if self.first.ticket == 0 {
            return 0;
        }
        let at = self.free;
        if at as usize > self.more.len() {
            local::free_at_exit();
            let next = at
                .checked_add(1)
                .expect("a thread holds fewer than 2^32 ranges");
            self.more.push(Place::free(next));
        }
        self.free = self.place(at).next;
        self.others += 1;
        at
    }

    /// The place that a token names. `EINVAL` if what it stands for was released, or is in another lock; `EPERM` if
    /// another thread holds it.
    #[inline]
    fn find(&mut self, lock: &Handle, token: &Token) -> Answer<u32> {
        let [first, ticket] = token.opaque;
        let is_here =
            |place: &Place| place.ticket == ticket && ticket != 0 && ptr::eq(place.lock, lock);
        if first == self.thread && is_here(&self.first) {
            return Ok(0);
        }
        self.find_more(first, is_here)
    }

    #[cold] // The thread holds several ranges, or the token is refused.
    fn find_more(&self, first: u64, is_here: impl Fn(&Place) -> bool) -> Answer<u32> {
        ensure((first ^ self.thread) >> 32 == 0, EPERM)?;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let at = first as u32;
        let place = at.checked_sub(1).and_then(|at| self.more.get(at as usize));
        match place {
            Some(place) if is_here(place) => Ok(at),
            _ => Err(Refused(EINVAL)),
        }
    }

    /// Forgets what was acquired, and returns it, to be released.
    #[inline]
    pub(crate) fn forget(&mut self, lock: &Handle, token: &Token) -> Answer<Hold> {
        let at = self.find(lock, token)?;
        if at > 0 {
            self.free_place(at);
        }
        let place = self.place(at);
        place.ticket = 0;
        Ok(match place.token.take() {
            Some(token) => Hold::One(Some(token)),
            None => place.many.take().map_or(Hold::One(None), Hold::Many),
        })
    }

    #[cold] // The thread holds several ranges.
    fn free_place(&mut self, at: u32) {
        self.place(at).next = self.free;
        self.free = at;
        self.others -= 1;
    }

    /// Shares what was acquired.
    pub(crate) fn share(&mut self, lock: &Handle, token: &Token) -> Answer {
        let at = self.find(lock, token)?;
        let place = self.place(at);
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
        let held = std::iter::once(&self.first).chain(&self.more);
        let held = held.filter(|place| place.ticket != 0 && ptr::eq(place.lock, lock));
        held.flat_map(|place| match &place.many {
            Some(many) => &many.asked,
            None if place.token.is_some() => std::slice::from_ref(&place.asked),
            None => &[],
        })
        .any(|held| held.conflicts(asked))
    }
}
