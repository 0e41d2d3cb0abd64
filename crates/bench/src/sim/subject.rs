//! The locks that can be simulated, by name.

use super::fuzz;
use crate::registry;
use crate::setting::Resource;
use prim_sim::{Ended, Failure};
use spanlock_baseline_sim::{Bitmap, HEIGHT, KernelRw, LustreEx, Pnova, Song};
use spanlock_sim::range::Span;
use spanlock_sim::range::list::{Fairness, FastPath, ListEx, ListRw, Preference};
use spanlock_sim::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_sim::range::segment::{SrlArray, SrlTree};
use spanlock_sim::range::skip::{SkipEx, SkipRw};
use std::any::Any;
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
}

/// A lock on lines of its own.
#[repr(align(128))]
pub(super) struct ReadersAndWriters<L>(L);

impl<L: RawRangeLock + Send + Sync + 'static> Subject for ReadersAndWriters<L> {
    type Token = L::Token;
    const SHARES: bool = true;

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        match mode {
            Mode::Shared => self.0.lock_shared(span, wait),
            Mode::Exclusive => self.0.lock_exclusive(span, wait),
        }
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: the caller's promise.
        unsafe { self.0.downgrade(token) }
    }
}

/// A lock on lines of its own, to which readers are writers.
#[repr(align(128))]
pub(super) struct WritersOnly<L>(L);

impl<L: RawRangeMutex + Send + Sync + 'static> Subject for WritersOnly<L> {
    type Token = L::Token;
    const SHARES: bool = false;

    fn lock(&self, _: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        self.0.lock_exclusive(span, wait)
    }

    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        token
    }
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
    pub(super) fuzz: fn(&fuzz::Case) -> Result<Ended<()>, Box<Failure>>,
    /// Makes one, within a run.
    pub(super) make: fn(Resource) -> Box<dyn AnyLock>,
}

macro_rules! locks {
    ($(#[$meta:meta])* $list:ident: $($name:literal: $face:ident(|$resource:pat_param| $make:expr),)+) => {
        $(#[$meta])*
        pub static $list: &[Lock] = &[$({
            fn make($resource: Resource) -> impl Subject<Token: 'static> {
                $face($make)
            }
            Lock {
                name: $name,
                fuzz: |case| fuzz::run(|| make(Resource::ARRAY), case),
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
    "list-rw": ReadersAndWriters(|_| ListRw::new()),
    "list-rw-nofast": ReadersAndWriters(|_| ListRw::builder().fast_path(FastPath::Off).build()),
    "list-rw-unfair": ReadersAndWriters(|_| ListRw::builder().fairness(Fairness::Unfair).build()),
    "list-rw-at-once": ReadersAndWriters(|_| ListRw::builder().fairness(AT_ONCE).build()),
    "list-rw-writers": ReadersAndWriters(|_| ListRw::builder().preference(Preference::Writers).build()),
    "list-ex": WritersOnly(|_| ListEx::new()),
    "list-ex-nofast": WritersOnly(|_| ListEx::builder().fast_path(FastPath::Off).build()),
    "list-ex-unfair": WritersOnly(|_| ListEx::builder().fairness(Fairness::Unfair).build()),
    "list-ex-at-once": WritersOnly(|_| ListEx::builder().fairness(AT_ONCE).build()),
    "skip-rw": ReadersAndWriters(|_| SkipRw::new()),
    "skip-rw-at-once": ReadersAndWriters(|_| SkipRw::builder().fairness(AT_ONCE).build()),
    "skip-ex": WritersOnly(|_| SkipEx::new()),
    "srl-array": ReadersAndWriters(|of| {
        SrlArray::builder().segment(of.grain).segments(segments(of)).build()
    }),
    "srl-array-at-once": ReadersAndWriters(|of| {
        let array = SrlArray::builder().segment(of.grain).segments(segments(of));
        array.fairness(AT_ONCE).build()
    }),
    "srl-tree": ReadersAndWriters(|of| {
        SrlTree::builder().segment(of.grain).fan_out(16).depth(depth(of)).build()
    }),
}

locks! {
    /// Those that the library's are compared with.
    BASELINES:
    "pnova-rw": ReadersAndWriters(|of| Pnova::new(of.units, of.grain)),
    "kernel-rw": ReadersAndWriters(|_| KernelRw::new()),
    "lustre-ex": WritersOnly(|_| LustreEx::new()),
    "song": WritersOnly(|_| Song::new(HEIGHT)),
    "bitmap": WritersOnly(|of| Bitmap::new(of.units, of.grain)),
}

impl Lock {
    /// All that can be simulated.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        LOCKS.iter().chain(BASELINES)
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
