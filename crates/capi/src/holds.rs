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
use crate::owned::Holding;
use libc::{EINVAL, EPERM};
use prim::atomic::{AtomicU64, Ordering};
use spanlock::range::raw::Mode;
use spanlock::range::slots;
use spanlock::range::{Guards, ReadGuard, Span, WriteGuard};
use std::ops::RangeInclusive;
use std::ptr;

/// What a range is released by. It may be copied and moved: whichever copy is released first counts, and the others are
/// refused from then on. All zero, it stands for nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The library's own.
    pub opaque: [u64; 2],
}

/// In the place of the thread and the place, of a token that a submitted request got.
const SUBMITTED: u64 = u64::MAX;

/// In the place of the thread, of a token by which an owner holds.
const OWNED: u64 = 0xffff_fffe << 32;

/// The numbers of threads are below this.
const THREADS: u64 = OWNED >> 32;

impl Token {
    pub(crate) const NONE: Self = Self { opaque: [0; 2] };

    pub(crate) fn of_request(id: u64) -> Self {
        let opaque = [SUBMITTED, id];
        Self { opaque }
    }

    /// What an owner holds, by its place and its ticket.
    pub(crate) fn of_owner(place: u32, ticket: u64) -> Self {
        let opaque = [OWNED | u64::from(place), ticket];
        Self { opaque }
    }

    /// The place and the ticket, if an owner holds what it stands for.
    pub(crate) fn owned(self) -> Option<(u32, u64)> {
        let [first, ticket] = self.opaque;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let place = first as u32;
        (first & (u64::MAX << 32) == OWNED).then_some((place, ticket))
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
    pub(crate) fn conflicts(self, other: Self) -> bool {
        self.mode.conflicts(other.mode) && self.span.overlaps(other.span)
    }

    /// The range, as the library takes it.
    pub(crate) fn bounds(self) -> RangeInclusive<u64> {
        self.span.start()..=self.span.last()
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
    /// Of several modes. An owner of its own holds them.
    Mixed(Holding),
}

/// A place in the table. Its parts are apart, so that the compiler writes each once.
///
/// Two that a release reads and an acquisition has just written are not side by side, or the compiler would load them
/// at once: a processor waits for both stores to be done before a load that takes what two stores wrote.
#[repr(C)]
struct Place {
    /// Of what is here, or was here last.
    ticket: u64,
    asked: Asked,
    /// Null, if the place is free.
    lock: *const Handle,
    many: Option<Box<Many>>,
    /// Of a single range that is not empty, if one is here.
    token: Option<slots::Token>,
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
/// Each acquisition and each release is an atomic operation, and all stores between two of these have to be done before
/// the second: so there are few.
pub(crate) struct Holds {
    /// The last ticket of the others.
    ticket: u64,
    /// The thread's number, in the upper half; zero until the thread has one.
    thread: u64,
    /// How many of the others are in use; [`NAMELESS`] until the thread has a number. So one look at two words tells
    /// whether the first place may be used at once.
    others: usize,
    /// Place zero, for a single range that is not empty. Most threads hold one such range at a time, and find it
    /// without following a pointer. It has tickets of its own, since tokens name the place, too.
    first: Place,
    /// The others, from place one on.
    more: Vec<Place>,
    /// The place to use next, if the first is taken: a free one, or the one after the last.
    free: u32,
}

/// The first place, which is free, but is ready for a range.
pub(crate) struct First<'a>(&'a mut Place);

impl First<'_> {
    /// Notes that the thread has acquired the range.
    #[inline(always)]
    pub(crate) fn note(self, lock: &Handle, token: slots::Token) {
        self.0.lock = ptr::from_ref(lock);
        self.0.token = Some(token);
    }
}

/// In the place of the range of a token that has none, or several.
const NO_RANGE: Asked = Asked {
    span: Span::ALL,
    mode: Mode::Shared,
};

/// See [`Holds::others`].
const NAMELESS: usize = usize::MAX;

impl Holds {
    /// Nothing held, by a thread without a number.
    pub(crate) const fn new() -> Self {
        Self {
            ticket: 0,
            thread: 0,
            others: NAMELESS,
            first: Place::free(0),
            more: Vec::new(),
            free: 1,
        }
    }

    /// Whether the thread holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.lock.is_null() && matches!(self.others, 0 | NAMELESS)
    }

    /// Frees the memory of a table in which nothing is held.
    pub(crate) fn clear(&mut self) {
        self.more = Vec::new();
        self.free = 1;
    }

    /// The first place, and the token that the range is to be released by, if the thread holds nothing. `None` also if
    /// it never has.
    #[inline(always)]
    pub(crate) fn first(&mut self, asked: Asked) -> Option<(First<'_>, Token)> {
        if self.first.lock.addr() | self.others != 0 {
            return None;
        }
        let place = &mut self.first;
        place.ticket += 1;
        place.asked = asked;
        let opaque = [self.thread, place.ticket];
        Some((First(place), Token { opaque }))
    }

    /// Notes a range that the thread has acquired.
    pub(crate) fn note(&mut self, lock: &Handle, token: slots::Token, asked: Asked) -> Token {
        self.ensure_number();
        let at = if self.first.lock.is_null() {
            self.first.ticket += 1;
            0
        } else {
            self.take_other()
        };
        let place = self.place(at);
        place.token = Some(token);
        place.asked = asked;
        self.use_place(at, lock)
    }

    /// Notes an empty range.
    #[cold] // Few ask for one.
    pub(crate) fn note_empty(&mut self, lock: &Handle) -> Token {
        self.ensure_number();
        let at = self.take_other();
        self.use_place(at, lock)
    }

    /// Notes several ranges.
    pub(crate) fn note_many(&mut self, lock: &Handle, many: Many) -> Token {
        self.ensure_number();
        let at = self.take_other();
        self.place(at).many = Some(Box::new(many));
        self.use_place(at, lock)
    }

    /// What is in a place is held from now on, by the token that this returns.
    fn use_place(&mut self, at: u32, lock: &Handle) -> Token {
        let place = self.place(at);
        place.lock = ptr::from_ref(lock);
        let ticket = place.ticket;
        let opaque = [self.thread | u64::from(at), ticket];
        Token { opaque }
    }

    #[inline]
    fn place(&mut self, at: u32) -> &mut Place {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.more[at as usize],
        }
    }

    /// Gives the thread a number, unless it has one.
    fn ensure_number(&mut self) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.thread == 0 {
            let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(number < THREADS, "a process has fewer threads");
            self.thread = number << 32;
            self.others = 0;
        }
    }

    /// A free place other than the first, with a fresh ticket.
    fn take_other(&mut self) -> u32 {
        let at = self.free;
        if at as usize > self.more.len() {
            local::free_at_exit();
            let next = at
                .checked_add(1)
                .expect("a thread holds fewer than 2^32 ranges");
            self.more.push(Place::free(next));
        }
        self.ticket += 1;
        let ticket = self.ticket;
        let place = self.place(at);
        place.ticket = ticket;
        self.free = place.next;
        self.others += 1;
        at
    }

    /// The place that a token names. `EINVAL` if what it stands for was released, or is in another lock; `EPERM` if
    /// another thread holds it.
    #[inline]
    fn find(&mut self, lock: &Handle, token: &Token) -> Answer<u32> {
        let [first, ticket] = token.opaque;
        let is_here = |place: &Place| place.ticket == ticket && ptr::eq(place.lock, lock);
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
            _ => Err(Refused::by(EINVAL)),
        }
    }

    /// Forgets a range that is in the first place, and returns its token. `None`: it is not there.
    #[inline(always)]
    pub(crate) fn forget_first(&mut self, lock: &Handle, token: &Token) -> Option<slots::Token> {
        let [first, ticket] = token.opaque;
        let place = &mut self.first;
        if first != self.thread || place.ticket != ticket || !ptr::eq(place.lock, lock) {
            return None;
        }
        place.lock = ptr::null();
        // SAFETY: a valid value. The place is free, so nobody uses the token that stays there.
        unsafe { ptr::read(&raw const place.token) }
    }

    /// Forgets what was acquired, and returns it, to be released.
    pub(crate) fn forget(&mut self, lock: &Handle, token: &Token) -> Answer<Hold> {
        let at = self.find(lock, token)?;
        if at > 0 {
            self.free_place(at);
        }
        let place = self.place(at);
        place.lock = ptr::null();
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
                ManyGuards::Mixed(mut holding) => {
                    holding.downgrade();
                    ManyGuards::Mixed(holding)
                }
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
        let held = held.filter(|place| ptr::eq(place.lock, lock));
        held.flat_map(|place| match &place.many {
            Some(many) => &many.asked,
            None if place.token.is_some() => std::slice::from_ref(&place.asked),
            None => &[],
        })
        .any(|held| held.conflicts(asked))
    }
}
