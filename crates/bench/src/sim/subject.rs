//! The locks that can be simulated, by name.

use super::arr;
use super::fuzz::{self, Case};
use prim_sim::{Ended, Failure, Setup};
use spanlock_sim::range::Span;
use spanlock_sim::range::list::{Fairness, FastPath, ListEx, ListRw, Preference};
use spanlock_sim::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_sim::range::segment::{SrlArray, SrlTree};
use spanlock_sim::range::skip::{SkipEx, SkipRw};
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
    ($($place:ident: { $($name:literal: $face:ident($make:expr),)+ })+) => {
        /// All of them.
        pub static LOCKS: &[Lock] = &[$($(Lock {
            name: $name,
            is_on_lines: matches!(Place::$place, Place::OnLines),
            fuzz: |case| fuzz::range::run(|| $face($make), case),
            arr: |setup, trial| arr::run(|| $face($make), setup, trial),
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
    OnLines: {
    "list-rw": ReadersAndWriters(ListRw::new()),
    "list-rw-nofast": ReadersAndWriters(ListRw::builder().fast_path(FastPath::Off).build()),
    "list-rw-unfair": ReadersAndWriters(ListRw::builder().fairness(Fairness::Unfair).build()),
    "list-rw-at-once": ReadersAndWriters(ListRw::builder().fairness(AT_ONCE).build()),
    "list-rw-writers": ReadersAndWriters(ListRw::builder().preference(Preference::Writers).build()),
    "list-ex": WritersOnly(ListEx::new()),
    "list-ex-nofast": WritersOnly(ListEx::builder().fast_path(FastPath::Off).build()),
    "list-ex-unfair": WritersOnly(ListEx::builder().fairness(Fairness::Unfair).build()),
    "list-ex-at-once": WritersOnly(ListEx::builder().fairness(AT_ONCE).build()),
    "skip-rw": ReadersAndWriters(SkipRw::new()),
    "skip-rw-at-once": ReadersAndWriters(SkipRw::builder().fairness(AT_ONCE).build()),
    "skip-ex": WritersOnly(SkipEx::new()),
    }
    AsTheHostLikes: {
    "srl-array": ReadersAndWriters(SrlArray::builder().segments(SEGMENTS).build()),
    "srl-array-at-once": ReadersAndWriters(SrlArray::builder().segments(SEGMENTS).fairness(AT_ONCE).build()),
    "srl-tree": ReadersAndWriters(SrlTree::builder().fan_out(16).depth(2).build()),
    }
}

impl Lock {
    /// The lock of that name.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        LOCKS.iter().find(|lock| lock.name == name).ok_or_else(|| {
            let names: Vec<_> = LOCKS.iter().map(|lock| lock.name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}
