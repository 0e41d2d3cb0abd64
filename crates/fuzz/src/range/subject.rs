//! The range locks of the common table, each in one shape.

use super::run;
use crate::Lock;
use spanlock_sim::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_sim::range::{RangeLock, RangeMutex, Span};
use spanlock_trial::lock::Described;
use spanlock_trial::setting::{Resource, Setting, Values};
use spanlock_workloads_sim::locks;
use std::ops::{Deref, RangeInclusive};
use std::time::Duration;

/// A range lock, with readers or without.
pub(super) trait Subject: Send + Sync + 'static {
    type Token;
    /// Whether readers share.
    const SHARES: bool;

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<Self::Token>;

    /// # Safety
    /// As for the lock's own.
    unsafe fn unlock(&self, token: Self::Token);

    /// # Safety
    /// As for the lock's own.
    unsafe fn downgrade(&self, token: Self::Token) -> Self::Token;

    /// The positions that are locked as one with those of a span.
    fn granule(&self, span: Span) -> Span;

    /// Calls `f` while several spans are held; not, if that takes longer than it may.
    fn hold_many<R>(
        &self,
        spans: &[Span],
        mode: Mode,
        timeout: Option<Duration>,
        f: impl FnOnce() -> R,
    ) -> Option<R>;
}

fn ranges(spans: &[Span]) -> impl Iterator<Item = RangeInclusive<u64>> {
    spans.iter().map(|span| span.start()..=span.last())
}

impl<L: RawRangeLock + Send + Sync + 'static> Subject for RangeLock<L> {
    type Token = L::Token;
    const SHARES: bool = true;

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        match mode {
            Mode::Shared => self.raw().lock_shared(span, wait),
            Mode::Exclusive => self.raw().lock_exclusive(span, wait),
        }
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.raw().unlock(token) };
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: the caller's promise.
        unsafe { self.raw().downgrade(token) }
    }

    fn granule(&self, span: Span) -> Span {
        self.raw().granule(span)
    }

    fn hold_many<R>(
        &self,
        spans: &[Span],
        mode: Mode,
        timeout: Option<Duration>,
        f: impl FnOnce() -> R,
    ) -> Option<R> {
        let spans = ranges(spans);
        Some(match (mode, timeout) {
            (Mode::Shared, None) => held(self.read_many(spans), f),
            (Mode::Shared, Some(timeout)) => held(self.try_read_many_for(spans, timeout)?, f),
            (Mode::Exclusive, None) => held(self.write_many(spans), f),
            (Mode::Exclusive, Some(timeout)) => held(self.try_write_many_for(spans, timeout)?, f),
        })
    }
}

impl<L: RawRangeMutex + Send + Sync + 'static> Subject for RangeMutex<L> {
    type Token = L::Token;
    const SHARES: bool = false;

    fn lock(&self, _: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        self.raw().lock_exclusive(span, wait)
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.raw().unlock(token) };
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        token
    }

    fn granule(&self, span: Span) -> Span {
        self.raw().granule(span)
    }

    fn hold_many<R>(
        &self,
        spans: &[Span],
        _: Mode,
        timeout: Option<Duration>,
        f: impl FnOnce() -> R,
    ) -> Option<R> {
        let spans = ranges(spans);
        Some(match timeout {
            None => held(self.lock_many(spans), f),
            Some(timeout) => held(self.try_lock_many_for(spans, timeout)?, f),
        })
    }
}

/// Calls `f`, then drops the guards; or the other way round, if it panics.
fn held<G, R>(guards: G, f: impl FnOnce() -> R) -> R {
    let _guards = guards;
    f()
}

/// A lock on lines of its own.
#[repr(align(128))]
pub(super) struct Lines<T>(T);

impl<T> Lines<T> {
    pub(super) fn new(lock: T) -> Self {
        Self(lock)
    }
}

impl<T> Deref for Lines<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// All rows, in the order of the table.
pub(super) fn rows() -> Vec<Lock> {
    let mut rows = Rows(Vec::new());
    locks::all(&mut rows);
    rows.0
}

struct Rows(Vec<Lock>);

/// The resource that a lock is made for. Cases use its first few positions.
const SETTING: Setting = Setting {
    resource: Resource::ARRAY,
    values: Values::NONE,
};

impl Rows {
    fn add<S: Subject>(
        &mut self,
        described: Described,
        make: impl Fn() -> S + Copy + Send + Sync + 'static,
    ) {
        let Described {
            name,
            role,
            overtaking,
            ..
        } = described;
        let lock = Lock::new(name, role, move |case| run(make, overtaking, case));
        self.0.push(lock);
    }
}

impl locks::Table for Rows {
    fn shared<L: RawRangeLock + Send + Sync + 'static>(
        &mut self,
        described: Described,
        make: fn(&Setting) -> L,
    ) {
        self.add(described, move || RangeLock::from_raw(make(&SETTING)));
    }

    fn exclusive<L: RawRangeMutex + Send + Sync + 'static>(
        &mut self,
        described: Described,
        make: fn(&Setting) -> L,
    ) {
        self.add(described, move || RangeMutex::from_raw(make(&SETTING)));
    }
}
