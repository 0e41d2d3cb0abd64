//! What a thread holds of range locks.
//!
//! Only the thread itself uses its table, so that takes no atomic operation. A release compares all of a token, and
//! changes nothing if one part differs.

use super::thread;
use super::{Table, Ticket};
use crate::answer::{Answer, Refused};
use crate::exports::types::{Asked, OWNER, Token};
use crate::owner_handle::Held;
use crate::range_handle::RangeHandle;
use libc::{EINVAL, EPERM};
use prim::atomic::{AtomicU64, Ordering};
use spanlock::range::raw::{Mode, RawRangeLock};
use spanlock::range::slots;
use spanlock::range::{Guards, ReadGuard, Span, WriteGuard};
use std::{mem, ptr};

/// What one token acquired.
pub(crate) enum Hold {
    One(slots::Token, Asked),
    /// An empty range.
    Nothing,
    Many(Box<Many>),
}

/// Several ranges, acquired together. `'static` stands for the life of their lock, which lives as long as it is held.
pub(crate) struct Many {
    pub(crate) guards: ManyGuards,
    pub(crate) asked: Box<[Asked]>,
}

pub(crate) enum ManyGuards {
    Shared(#[expect(dead_code, reason = "dropping it releases")] Guards<ReadGuard<'static>>),
    Exclusive(Guards<WriteGuard<'static>>),
    /// Of several modes. An owner of its own holds them.
    Mixed(Held<RangeHandle>),
}

impl Hold {
    fn asked(&self) -> &[Asked] {
        match self {
            Self::One(_, asked) => std::slice::from_ref(asked),
            Self::Nothing => &[],
            Self::Many(many) => &many.asked,
        }
    }

    /// Shares it.
    ///
    /// # Safety
    /// The running thread acquired it in that lock.
    unsafe fn shared(self, lock: &RangeHandle) -> Self {
        match self {
            Self::One(token, asked) if asked.mode == Mode::Exclusive => {
                // SAFETY: the caller's promise, and it is exclusive.
                let token = unsafe { lock.lock.raw().downgrade(token) };
                let mode = Mode::Shared;
                Self::One(token, Asked { mode, ..asked })
            }
            Self::Many(many) => Self::Many(Box::new(many.shared())),
            shared => shared,
        }
    }
}

impl Many {
    fn shared(mut self) -> Self {
        for asked in &mut self.asked {
            asked.mode = Mode::Shared;
        }
        self.guards = match self.guards {
            ManyGuards::Exclusive(guards) => ManyGuards::Shared(guards.downgrade()),
            ManyGuards::Mixed(mut holding) => {
                holding.downgrade();
                ManyGuards::Mixed(holding)
            }
            shared @ ManyGuards::Shared(_) => shared,
        };
        self
    }
}

/// The place before those of the table. Its parts are apart, so that the compiler writes each once.
///
/// Two that a release reads and an acquisition has just written are not side by side, or the compiler would load them
/// at once: a processor waits for both stores to be done before a load that takes what two stores wrote.
#[repr(C)]
struct First {
    /// Of what is here, or was here last.
    number: u64,
    span: Span,
    /// Null, if the place is free.
    lock: *const RangeHandle,
    mode: Mode,
    token: Option<slots::Token>,
}

/// What a thread holds.
///
/// Each acquisition and each release is an atomic operation, and all stores between two of these have to be done before
/// the second: so there are few.
pub(crate) struct Holds {
    /// The thread's number, in the upper half; zero until the thread has one.
    thread: u64,
    /// How many of the others are in use; [`NAMELESS`] until the thread has a number. So one look at two words tells
    /// whether the first place may be used at once.
    others: usize,
    /// Place zero, for a single range that is not empty. Most threads hold one such range at a time, and find it
    /// without following a pointer. It has numbers of its own, since tokens name the place, too.
    first: First,
    /// The others: place one of a token is place zero here.
    more: Table<Hold>,
}

/// The first place, which is free, but is ready for a range.
pub(crate) struct Ready<'a>(&'a mut First);

impl Ready<'_> {
    /// Notes that the thread has acquired the range.
    #[inline(always)]
    pub(crate) fn note(self, lock: &RangeHandle, token: slots::Token) {
        self.0.lock = ptr::from_ref(lock);
        self.0.token = Some(token);
    }
}

/// See [`Holds::others`].
const NAMELESS: usize = usize::MAX;

/// The last number that a thread got.
static LAST_THREAD: AtomicU64 = AtomicU64::new(0);

impl Holds {
    /// Of a thread that holds nothing and has no number.
    pub(crate) const fn new() -> Self {
        Self {
            thread: 0,
            others: NAMELESS,
            first: First {
                number: 0,
                span: Span::ALL,
                lock: ptr::null(),
                mode: Mode::Shared,
                token: None,
            },
            more: Table::new(),
        }
    }

    /// Whether the thread holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.lock.is_null() && matches!(self.others, 0 | NAMELESS)
    }

    /// Frees the memory of a table in which nothing is held.
    pub(crate) fn clear(&mut self) {
        self.more = Table::new();
    }

    /// The first place, and the token that the range is to be released by, if the thread holds nothing. `None` also if
    /// it never has.
    #[inline(always)]
    pub(crate) fn first(&mut self, asked: Asked) -> Option<(Ready<'_>, Token)> {
        if self.first.lock.addr() | self.others != 0 {
            return None;
        }
        Some(self.begin_first(asked))
    }

    #[inline(always)]
    fn begin_first(&mut self, asked: Asked) -> (Ready<'_>, Token) {
        let place = &mut self.first;
        place.number += 1;
        place.span = asked.span;
        place.mode = asked.mode;
        let opaque = [self.thread, place.number];
        (Ready(place), Token { opaque })
    }

    /// Notes a range that the thread has acquired.
    pub(crate) fn note(&mut self, lock: &RangeHandle, token: slots::Token, asked: Asked) -> Token {
        self.ensure_number();
        if !self.first.lock.is_null() {
            return self.note_other(lock, Hold::One(token, asked));
        }
        let (first, its_token) = self.begin_first(asked);
        first.note(lock, token);
        its_token
    }

    /// Notes what is no single range, or not the first.
    pub(crate) fn note_other(&mut self, lock: &RangeHandle, hold: Hold) -> Token {
        self.ensure_number();
        if self.more.is_new() {
            thread::free_at_exit();
        }
        self.others += 1;
        let Ticket { place, number } = self.more.note(lock, hold);
        let opaque = [self.thread | u64::from(place + 1), number];
        Token { opaque }
    }

    /// Gives the thread a number, unless it has one.
    fn ensure_number(&mut self) {
        if self.thread == 0 {
            let number = LAST_THREAD.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(number < u64::from(OWNER), "a process has fewer threads");
            self.thread = number << 32;
            self.others = 0;
        }
    }

    #[inline(always)]
    fn is_first(&self, lock: &RangeHandle, token: &Token) -> bool {
        let [first, number] = token.opaque;
        let place = &self.first;
        first == self.thread && place.number == number && ptr::eq(place.lock, lock)
    }

    /// What a token tells of the table. `EINVAL` if it was never a token; `EPERM` if another thread or an owner holds
    /// what it stands for.
    fn in_table(&self, token: &Token) -> Answer<Ticket> {
        let (holder, Ticket { place, number }) = token.parts();
        if u64::from(holder) << 32 != self.thread {
            let is_others = (1..=LAST_THREAD.load(Ordering::Relaxed)).contains(&holder.into());
            let is_known = is_others || holder == OWNER;
            return Err(Refused::by(if is_known { EPERM } else { EINVAL }));
        }
        let place = place.checked_sub(1).ok_or(Refused::by(EINVAL))?;
        Ok(Ticket { place, number })
    }

    /// Forgets a range that is in the first place, and returns its token. `None`: it is not there.
    #[inline(always)]
    pub(crate) fn forget_first(
        &mut self,
        lock: &RangeHandle,
        token: &Token,
    ) -> Option<slots::Token> {
        if !self.is_first(lock, token) {
            return None;
        }
        let place = &mut self.first;
        place.lock = ptr::null();
        // SAFETY: a valid value. The place is free, so nobody uses the token that stays there.
        unsafe { ptr::read(&raw const place.token) }
    }

    /// Forgets what is not in the first place, and returns it, to be released. `EINVAL` if what the token stands for
    /// was released, or is in another lock, or if it was never a token; `EPERM` if another thread or an owner holds it.
    pub(crate) fn forget(&mut self, lock: &RangeHandle, token: &Token) -> Answer<Hold> {
        let hold = self.more.forget(lock, self.in_table(token)?)?;
        self.others -= 1;
        Ok(hold)
    }

    /// Shares what was acquired. Errors as of [`forget`](Self::forget).
    pub(crate) fn share(&mut self, lock: &RangeHandle, token: &Token) -> Answer {
        if self.is_first(lock, token) {
            let place = &mut self.first;
            if mem::replace(&mut place.mode, Mode::Shared) == Mode::Exclusive {
                // SAFETY: the running thread acquired it in this lock, exclusively, as the place says.
                let share = |token| unsafe { lock.lock.raw().downgrade(token) };
                place.token = place.token.take().map(share);
            }
            return Ok(());
        }
        let ticket = self.in_table(token)?;
        let hold = self.more.take(lock, ticket)?;
        // SAFETY: the running thread acquired it in this lock, as the table says.
        self.more.put_back(ticket, unsafe { hold.shared(lock) });
        Ok(())
    }

    /// Whether the thread itself holds something in the way of a request, so that it would wait for ever.
    #[cold] // The request has been refused once.
    pub(crate) fn conflicts(&self, lock: &RangeHandle, asked: Asked) -> bool {
        let &First { span, mode, .. } = &self.first;
        let first = ptr::eq(self.first.lock, lock).then_some(Asked { span, mode });
        let more = self.more.held(lock).flat_map(Hold::asked).copied();
        first
            .into_iter()
            .chain(more)
            .any(|held| held.conflicts(asked))
    }
}
