//! The locks that can be simulated, by name.

use super::fuzz::{self, Case};
use crate::registry;
use crate::setting::Resource;
use prim_sim::{Ended, Failure};
use spanlock_baseline_sim::{Bitmap, HEIGHT, KernelRw, LustreEx, Pnova, Song};
use spanlock_sim::range::list::{Fairness, FastPath, ListEx, ListRw, Preference};
use spanlock_sim::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_sim::range::segment::{SrlArray, SrlTree};
use spanlock_sim::range::skip::{SkipEx, SkipRw};
use spanlock_sim::range::{RangeLock, RangeMutex, Span};
use std::any::Any;
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

/// A lock of any kind. Workloads are compiled once for all: what a call takes the host, no simulated machine sees.
pub(super) trait AnyLock: Send + Sync {
    /// Waits as long as it takes.
    fn lock(&self, mode: Mode, span: Span) -> Held;

    /// # Safety
    /// It is what `lock` of this lock returned.
    unsafe fn unlock(&self, held: Held);
}

/// Any lock's token.
pub(super) struct Held(Box<dyn Any>);

impl<S: Subject<Token: 'static>> AnyLock for S {
    fn lock(&self, mode: Mode, span: Span) -> Held {
        let token = Subject::lock(self, mode, span, Wait::Forever);
        Held(Box::new(token.expect("waits forever")))
    }

    unsafe fn unlock(&self, Held(token): Held) {
        let token = token.downcast().expect("this lock's token");
        // SAFETY: the caller's promise.
        unsafe { Subject::unlock(self, *token) };
    }
}

/// A lock that can be simulated.
pub struct Lock {
    /// What users call it.
    pub name: &'static str,
    /// Runs one case.
    pub fuzz: fn(&Case) -> Result<Ended<()>, Box<Failure>>,
    /// Makes one, within a run.
    pub(super) make: fn(Resource) -> Box<dyn AnyLock>,
}

macro_rules! locks {
    ($(#[$meta:meta])* $list:ident: $($name:literal: |$resource:pat_param| $make:expr,)+) => {
        $(#[$meta])*
        pub static $list: &[Lock] = &[$({
            fn make($resource: Resource) -> impl Subject<Token: 'static> {
                $make
            }
            Lock {
                name: $name,
                fuzz: |case| fuzz::range::run(|| make(Resource::ARRAY), case),
                make: |resource| Box::new(make(resource)),
            }
        }),+];
    };
}

const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

/// Segments of which no two ranges of a workload share one.
fn segments(resource: Resource) -> usize {
    let segments = resource.units.div_ceil(resource.grain);
    usize::try_from(segments).expect("as many as there is memory for")
}

/// Levels of a tree of fan-out 16 with so many leaves.
fn depth(resource: Resource) -> u32 {
    let segments = resource.units.div_ceil(resource.grain);
    let depth = (1..16).find(|&depth| 16_u64.pow(depth) >= segments);
    depth.unwrap_or(16)
}

locks! {
    /// The library's.
    LOCKS:
    "list-rw": |_| ReadersAndWriters::new(ListRw::new()),
    "list-rw-nofast": |_| ReadersAndWriters::new(ListRw::builder().fast_path(FastPath::Off).build()),
    "list-rw-unfair": |_| Unfair::new(ReadersAndWriters::new(ListRw::builder().fairness(Fairness::Unfair).build())),
    "list-rw-at-once": |_| ReadersAndWriters::new(ListRw::builder().fairness(AT_ONCE).build()),
    "list-rw-writers": |_| ReadersAndWriters::new(ListRw::builder().preference(Preference::Writers).build()),
    "list-ex": |_| WritersOnly::new(ListEx::new()),
    "list-ex-nofast": |_| WritersOnly::new(ListEx::builder().fast_path(FastPath::Off).build()),
    "list-ex-unfair": |_| Unfair::new(WritersOnly::new(ListEx::builder().fairness(Fairness::Unfair).build())),
    "list-ex-at-once": |_| WritersOnly::new(ListEx::builder().fairness(AT_ONCE).build()),
    "skip-rw": |_| ReadersAndWriters::new(SkipRw::new()),
    "skip-rw-at-once": |_| ReadersAndWriters::new(SkipRw::builder().fairness(AT_ONCE).build()),
    "skip-ex": |_| WritersOnly::new(SkipEx::new()),
    "srl-array": |of| ReadersAndWriters::new(
        SrlArray::builder().segment(of.grain).segments(segments(of)).build()
    ),
    "srl-array-at-once": |of| ReadersAndWriters::new({
        let array = SrlArray::builder().segment(of.grain).segments(segments(of));
        array.fairness(AT_ONCE).build()
    }),
    "srl-tree": |of| ReadersAndWriters::new(
        SrlTree::builder().segment(of.grain).fan_out(16).depth(depth(of)).build()
    ),
}

locks! {
    /// Those that the library's are compared with.
    BASELINES:
    "pnova-rw": |of| Unfair::new(ReadersAndWriters::new(Pnova::new(of.units, of.grain))),
    "kernel-rw": |_| ReadersAndWriters::new(KernelRw::new()),
    "lustre-ex": |_| WritersOnly::new(LustreEx::new()),
    "song": |_| Unfair::new(WritersOnly::new(Song::new(HEIGHT))),
    "bitmap": |of| Unfair::new(WritersOnly::new(Bitmap::new(of.units, of.grain))),
}

/// Few, for most of the work is on few places.
const FEW: usize = 16;

locks! {
    /// Further configurations of the library's, in which other paths are taken: for fuzzing.
    CONFIGURATIONS:
    "list-rw-writers-at-once": |_| ReadersAndWriters::new(
        ListRw::builder().preference(Preference::Writers).fairness(AT_ONCE).build()
    ),
    "list-rw-nofast-at-once": |_| ReadersAndWriters::new(
        ListRw::builder().fast_path(FastPath::Off).fairness(AT_ONCE).build()
    ),
    "skip-rw-nofast": |_| ReadersAndWriters::new(SkipRw::builder().fast_path(FastPath::Off).build()),
    "skip-rw-unfair": |_| Unfair::new(ReadersAndWriters::new(SkipRw::builder().fairness(Fairness::Unfair).build())),
    "skip-rw-writers": |_| ReadersAndWriters::new(SkipRw::builder().preference(Preference::Writers).build()),
    "skip-rw-flat": |_| ReadersAndWriters::new(SkipRw::builder().height(1).build()),
    "skip-ex-at-once": |_| WritersOnly::new(SkipEx::builder().fairness(AT_ONCE).build()),
    "srl-array-unfair": |_| Unfair::new(ReadersAndWriters::new(
        SrlArray::builder().segments(FEW).fairness(Fairness::Unfair).build()
    )),
    "srl-array-wide": |_| ReadersAndWriters::new(SrlArray::builder().segment(4).segments(FEW).build()),
    "srl-tree-wide": |_| ReadersAndWriters::new(SrlTree::builder().segment(4).fan_out(2).depth(4).build()),
    "srl-tree-at-once": |_| ReadersAndWriters::new(
        SrlTree::builder().fan_out(4).depth(2).fairness(AT_ONCE).build()
    ),
}

impl Lock {
    /// All that can be simulated.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        LOCKS.iter().chain(BASELINES).chain(CONFIGURATIONS)
    }

    /// Those that are measured on hardware too, in the order of tables.
    pub fn measured() -> impl Iterator<Item = &'static Self> {
        let names = registry::LOCKS.iter().map(|lock| lock.name);
        names.filter_map(|name| Self::all().find(|lock| lock.name == name))
    }

    /// The lock of that name.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        Self::all().find(|lock| lock.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(|lock| lock.name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}
