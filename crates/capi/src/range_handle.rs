//! A range lock, as a program has it.

use crate::answer::Answer;
use crate::copies::{Copy, Handle};
use crate::exports::types::{Asked, Range};
use crate::owner_handle::{Held, Tables};
use crate::ranged::Ranged;
use crate::tables::{Table, thread};
use prim::atomic::AtomicBool;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::slots::{RawSlots, Token};
use spanlock::range::{By, Owner, RangeLock, Span};
use std::ptr;

/// A lock for ranges of one resource. It lives on the heap, and is known by its address.
#[repr(C)] // Another copy of the library, of another version, finds the first word.
pub struct RangeHandle {
    pub(crate) copy: Copy,
    /// Whether a request was ever submitted.
    pub(crate) has_submitted: AtomicBool,
    pub(crate) lock: RangeLock,
}

impl Handle for RangeHandle {
    #[inline(always)]
    fn copy(&self) -> &Copy {
        &self.copy
    }
}

impl RangeHandle {
    pub(crate) fn new(lock: RangeLock) -> Self {
        Self {
            copy: Copy::this(0),
            has_submitted: AtomicBool::new(false),
            lock,
        }
    }

    /// Acquires a range; `None` if that takes longer than it may.
    #[inline]
    pub(crate) fn acquire(&self, mode: Mode, span: Span, wait: Wait) -> Option<Token> {
        let raw: &RawSlots = self.lock.raw();
        match mode {
            Mode::Shared => raw.lock_shared(Ask::new(span, wait)),
            Mode::Exclusive => raw.lock_exclusive(Ask::new(span, wait)),
        }
    }

    /// The lock, for those who keep what they acquire in places that know no lifetimes.
    ///
    /// # Safety
    /// What is acquired by the result is released, or forgotten, before the lock ends. (While it is held, a program
    /// cannot end the lock.)
    pub(crate) unsafe fn lasting(&self) -> &'static RangeLock {
        // SAFETY: the caller's promise.
        unsafe { &*ptr::from_ref(&self.lock) }
    }
}

impl Ranged for RangeHandle {
    type Key = u64;
    type Piece = Span;
    type Place = &'static RangeLock;
    type Given = Range;
    type Asked<'a> = Range;

    unsafe fn asked<'a>(&self, range: Range) -> Answer<Self::Asked<'a>> {
        range.span().map(|_| range)
    }

    unsafe fn by<'o>(&self, owner: &'o Owner) -> By<'o, &'static RangeLock> {
        // SAFETY: the caller's promise.
        unsafe { self.lasting() }.by(owner)
    }

    fn table(tables: &mut Tables) -> &mut Table<Held<Self>> {
        &mut tables.positions
    }

    fn overlaps(&self, held: &Span, asked: Range) -> bool {
        matches!(asked.span(), Ok(Some(asked)) if asked.overlaps(*held))
    }

    fn thread_is_in_its_way(&self, asked: Range, mode: Mode) -> bool {
        // SAFETY: this is a part of a function that C calls, and nothing here calls another one meanwhile.
        let thread = unsafe { &thread::held().ranges };
        matches!(asked.span(), Ok(Some(span)) if thread.conflicts(self, Asked { span, mode }))
    }
}
