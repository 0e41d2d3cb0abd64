//! The locks that can be simulated, by name.

use super::arr;
use super::fuzz::{self, Case};
use prim_sim::{Ended, Failure, Setup};
use spanlock_sim::range::list::{Fairness, FastPath, ListEx, ListRw, Preference};
use spanlock_sim::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_sim::range::segment::{SrlArray, SrlTree};
use spanlock_sim::range::skip::{SkipEx, SkipRw};
use spanlock_sim::range::{RangeLock, RangeMutex, Span};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A range lock, with readers or without.
pub(super) trait Subject: Send + Sync + 'static {
    type Token;
    /// Whether readers share.
    const SHARES: bool;
    /// Whether no request waits for ever for others that come after it.
    const IS_FAIR: bool = true;

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

/// A lock on lines of its own.
#[repr(align(128))]
pub(super) struct ReadersAndWriters<L: RawRangeLock>(RangeLock<L>);

impl<L: RawRangeLock> ReadersAndWriters<L> {
    fn new(raw: L) -> Self {
        Self(RangeLock::from_raw(raw))
    }
}

impl<L: RawRangeLock + Send + Sync + 'static> Subject for ReadersAndWriters<L> {
    type Token = L::Token;
    const SHARES: bool = true;

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        match mode {
            Mode::Shared => self.0.raw().lock_shared(span, wait),
            Mode::Exclusive => self.0.raw().lock_exclusive(span, wait),
        }
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.raw().unlock(token) };
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: the caller's promise.
        unsafe { self.0.raw().downgrade(token) }
    }

    fn granule(&self, span: Span) -> Span {
        self.0.raw().granule(span)
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
            (Mode::Shared, None) => held(self.0.read_many(spans), f),
            (Mode::Shared, Some(timeout)) => held(self.0.try_read_many_for(spans, timeout)?, f),
            (Mode::Exclusive, None) => held(self.0.write_many(spans), f),
            (Mode::Exclusive, Some(timeout)) => held(self.0.try_write_many_for(spans, timeout)?, f),
        })
    }
}

/// A lock on lines of its own, to which readers are writers.
#[repr(align(128))]
pub(super) struct WritersOnly<L: RawRangeMutex>(RangeMutex<L>);

impl<L: RawRangeMutex> WritersOnly<L> {
    fn new(raw: L) -> Self {
        Self(RangeMutex::from_raw(raw))
    }
}

impl<L: RawRangeMutex + Send + Sync + 'static> Subject for WritersOnly<L> {
    type Token = L::Token;
    const SHARES: bool = false;

    fn lock(&self, _: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        self.0.raw().lock_exclusive(span, wait)
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.raw().unlock(token) };
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        token
    }

    fn granule(&self, span: Span) -> Span {
        self.0.raw().granule(span)
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
            None => held(self.0.lock_many(spans), f),
            Some(timeout) => held(self.0.try_lock_many_for(spans, timeout)?, f),
        })
    }
}

/// A lock under which requests may be overtaken without end.
pub(super) struct Unfair<S>(S);

impl<S> Unfair<S> {
    fn new(lock: S) -> Self {
        Self(lock)
    }
}

impl<S: Subject> Subject for Unfair<S> {
    type Token = S::Token;
    const SHARES: bool = S::SHARES;
    const IS_FAIR: bool = false;

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<S::Token> {
        self.0.lock(mode, span, wait)
    }

    unsafe fn unlock(&self, token: S::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    unsafe fn downgrade(&self, token: S::Token) -> S::Token {
        // SAFETY: the caller's promise.
        unsafe { self.0.downgrade(token) }
    }

    fn granule(&self, span: Span) -> Span {
        self.0.granule(span)
    }

    fn hold_many<R>(
        &self,
        spans: &[Span],
        mode: Mode,
        timeout: Option<Duration>,
        f: impl FnOnce() -> R,
    ) -> Option<R> {
        self.0.hold_many(spans, mode, timeout, f)
    }
}

/// Calls `f`, then drops the guards; or the other way round, if it panics.
fn held<G, R>(guards: G, f: impl FnOnce() -> R) -> R {
    let _guards = guards;
    f()
}

/// How a run ended.
type Run<T> = Result<Ended<T>, Box<Failure>>;

/// A lock that can be simulated.
pub struct Lock {
    /// What users call it.
    pub name: &'static str,
    /// Whether all of its memory is aligned to lines. If not, the host's allocator decides which words share one, and
    /// runs repeat exactly only in programs that install [`OnLines`](prim_sim::heap::OnLines).
    pub is_on_lines: bool,
    /// Runs one case.
    pub fuzz: fn(&Case) -> Run<()>,
    /// Runs one trial.
    pub(super) arr: fn(&Setup, arr::Trial) -> Run<arr::Outcome>,
}

macro_rules! locks {
    ($(#[$meta:meta])* $list:ident: $($place:ident: { $($name:literal: $make:expr,)+ })+) => {
        $(#[$meta])*
        pub static $list: &[Lock] = &[$($(Lock {
            name: $name,
            is_on_lines: matches!(Place::$place, Place::OnLines),
            fuzz: |case| fuzz::range::run(|| $make, case),
            arr: |setup, trial| arr::run(|| $make, setup, trial),
        }),+),+];
    };
}

/// Where a lock's memory begins.
enum Place {
    OnLines,
    AsTheHostLikes,
}

/// Enough that each position of a workload has its own.
const SEGMENTS: usize = crate::arr::SLOTS;

const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

locks! {
    /// Those to be compared.
    LOCKS:
    OnLines: {
    "list-rw": ReadersAndWriters::new(ListRw::new()),
    "list-rw-nofast": ReadersAndWriters::new(ListRw::builder().fast_path(FastPath::Off).build()),
    "list-rw-unfair": Unfair::new(ReadersAndWriters::new(ListRw::builder().fairness(Fairness::Unfair).build())),
    "list-rw-at-once": ReadersAndWriters::new(ListRw::builder().fairness(AT_ONCE).build()),
    "list-rw-writers": ReadersAndWriters::new(ListRw::builder().preference(Preference::Writers).build()),
    "list-ex": WritersOnly::new(ListEx::new()),
    "list-ex-nofast": WritersOnly::new(ListEx::builder().fast_path(FastPath::Off).build()),
    "list-ex-unfair": Unfair::new(WritersOnly::new(ListEx::builder().fairness(Fairness::Unfair).build())),
    "list-ex-at-once": WritersOnly::new(ListEx::builder().fairness(AT_ONCE).build()),
    "skip-rw": ReadersAndWriters::new(SkipRw::new()),
    "skip-rw-at-once": ReadersAndWriters::new(SkipRw::builder().fairness(AT_ONCE).build()),
    "skip-ex": WritersOnly::new(SkipEx::new()),
    }
    AsTheHostLikes: {
    "srl-array": ReadersAndWriters::new(SrlArray::builder().segments(SEGMENTS).build()),
    "srl-array-at-once": ReadersAndWriters::new(SrlArray::builder().segments(SEGMENTS).fairness(AT_ONCE).build()),
    "srl-tree": ReadersAndWriters::new(SrlTree::builder().fan_out(16).depth(2).build()),
    }
}

/// Few, for most of the work is on few places.
const FEW: usize = 16;

locks! {
    /// Further configurations, in which other paths are taken.
    CONFIGURATIONS:
    OnLines: {
    "list-rw-writers-at-once": ReadersAndWriters::new(
        ListRw::builder().preference(Preference::Writers).fairness(AT_ONCE).build()
    ),
    "list-rw-nofast-at-once": ReadersAndWriters::new(
        ListRw::builder().fast_path(FastPath::Off).fairness(AT_ONCE).build()
    ),
    "skip-rw-nofast": ReadersAndWriters::new(SkipRw::builder().fast_path(FastPath::Off).build()),
    "skip-rw-unfair": Unfair::new(ReadersAndWriters::new(SkipRw::builder().fairness(Fairness::Unfair).build())),
    "skip-rw-writers": ReadersAndWriters::new(SkipRw::builder().preference(Preference::Writers).build()),
    "skip-rw-flat": ReadersAndWriters::new(SkipRw::builder().height(1).build()),
    "skip-ex-at-once": WritersOnly::new(SkipEx::builder().fairness(AT_ONCE).build()),
    }
    AsTheHostLikes: {
    "srl-array-unfair": Unfair::new(ReadersAndWriters::new(
        SrlArray::builder().segments(FEW).fairness(Fairness::Unfair).build()
    )),
    "srl-array-wide": ReadersAndWriters::new(SrlArray::builder().segment(4).segments(FEW).build()),
    "srl-tree-wide": ReadersAndWriters::new(SrlTree::builder().segment(4).fan_out(2).depth(4).build()),
    "srl-tree-at-once": ReadersAndWriters::new(
        SrlTree::builder().fan_out(4).depth(2).fairness(AT_ONCE).build()
    ),
    }
}

impl Lock {
    /// The lock of that name.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        let known = || LOCKS.iter().chain(CONFIGURATIONS);
        known().find(|lock| lock.name == name).ok_or_else(|| {
            let names: Vec<_> = known().map(|lock| lock.name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}
