//! `kernel-rw` and `lustre-ex`: an interval tree of requests under a spin lock.
//!
//! ```text
//!   position   0   1   2   3   4   5   6   7
//!   A              [=======)                      held
//!   B                  [===================)      waits for A
//!   C                          [===)              waits for B, although its range is free
//! ```
//!
//! A request enters the tree and counts the conflicting requests that are in it already. It holds its range when that
//! count is zero. A release removes its request from the tree and decrements the counts of the later requests that
//! conflict with it. So requests are served in the order of their arrival, and a request also waits behind conflicting
//! requests that *wait* themselves.
//!
//! That order is kept, because it is what the comparison shows. It has a consequence: a thread that holds a range and
//! asks for another can wait for a thread that waits for it. `spanlock`'s own locks let such a holder pass. Calls that
//! lock many ranges are affected too: one that holds the first of its ranges waits for the second behind a request for
//! both.
//!
//! As in P1, a waiter spins on the count of its own request. Here it spins for a bounded time and then yields the
//! processor between loads, because there may be more threads than processors.
//!
//! # Memory ordering
//! - [spin-lock-acquire], [spin-lock-release]: see `spin_lock.rs`.
//! - **tree-grant-release** / **tree-grant-acquire**: Release by the decrement, Acquire by the waiter's loads of its
//!   count: the critical section of the last holder that it waited for. (The spin lock orders those of the others.)

use super::interval_tree::{IntervalTree, Slot};
use super::spin_lock::{SpinLock, spin_until};
use prim::atomic::{AtomicU32, AtomicU64, Ordering};
use prim::clock::{self, Instant};
use spanlock::range::Span;
use spanlock::range::list::{ExclusiveOnly, SharedExclusive};
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The number of earlier requests that a waiting request conflicts with. It lives on the waiter's stack.
struct Count(AtomicU32);

impl Count {
    fn is_zero(&self) -> bool {
        // [tree-grant-acquire] Acquire: pairs with [tree-grant-release].
        self.0
            .load(prim::order!("tree-grant-acquire", Ordering::Acquire))
            == 0
    }

    /// Decrements the count. The caller holds the tree's lock, so no other thread decrements it.
    fn count_down(&self) {
        let left = self.0.load(Ordering::Relaxed) - 1;
        // [tree-grant-release] Release: pairs with [tree-grant-acquire].
        self.0
            .store(left, prim::order!("tree-grant-release", Ordering::Release));
    }
}

struct Request {
    mode: Mode,
    /// The count of the waiter; `None` for a request that was granted at once.
    ///
    /// # Safety
    /// The count lives as long as it is not zero and the request is in the tree.
    count: Option<NonNull<Count>>,
}

// SAFETY: all accesses through the pointer are atomic, and the count lives long enough, as the field's contract says.
unsafe impl Send for Request {}

/// The token of an acquisition: its place in the tree.
#[derive(Debug)]
pub struct Token(Slot);

/// What the requests of a tree lock waited for, in nanoseconds together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeWaits {
    /// The requests, those among them that were refused.
    pub requests: u64,
    /// For the spin lock of the tree, on entering.
    pub tree_ns: u64,
    /// For earlier requests that they conflict with.
    pub range_ns: u64,
}

/// Away from what requests change.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Recorder {
    requests: AtomicU64,
    tree_ns: AtomicU64,
    range_ns: AtomicU64,
}

/// An interval tree of requests: [`KernelRw`] or [`LustreEx`], which differ in the modes that they grant.
pub struct TreeLock<P> {
    tree: SpinLock<IntervalTree<Request>>,
    recorder: Option<Box<Recorder>>,
    modes: PhantomData<fn() -> P>,
}

impl<P> TreeLock<P> {
    prim::const_fn! {
        /// A lock with nothing held.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                tree: SpinLock::new(IntervalTree::new()),
                recorder: None,
                modes: PhantomData,
            }
        }
    }

    /// The same lock, which records from now on what its requests wait for.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self {
            recorder: Some(Box::default()),
            ..self
        }
    }

    /// What requests have waited for so far; `None` unless the lock [records](Self::recorded) it.
    pub fn waits(&self) -> Option<TreeWaits> {
        let recorder = self.recorder.as_ref()?;
        // Relaxed, here and in `acquire`: the counters order nothing.
        Some(TreeWaits {
            requests: recorder.requests.load(Ordering::Relaxed),
            tree_ns: recorder.tree_ns.load(Ordering::Relaxed),
            range_ns: recorder.range_ns.load(Ordering::Relaxed),
        })
    }

    /// Changes the tree for a request, and records how long that waited for others that change it.
    fn enter<R>(&self, f: impl FnOnce(&mut IntervalTree<Request>) -> R) -> R {
        let Some(recorder) = &self.recorder else {
            return self.tree.with(f);
        };
        let (result, waited) = self.tree.with_timed(f);
        recorder.requests.fetch_add(1, Ordering::Relaxed);
        recorder.tree_ns.fetch_add(waited, Ordering::Relaxed);
        result
    }

    fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<Token> {
        let count = Count(AtomicU32::new(0));
        let slot = self.enter(|tree| {
            let mut earlier = 0;
            tree.for_each_overlapping(span, |_, other| {
                earlier += u32::from(other.mode.conflicts(mode));
            });
            if earlier > 0 && wait == Wait::Never {
                return None;
            }
            // Relaxed: the count changes only under the lock, which this thread holds.
            count.0.store(earlier, Ordering::Relaxed);
            let count = (earlier > 0).then(|| NonNull::from(&count));
            Some(tree.insert(span, Request { mode, count }))
        })?;
        let mut late = false;
        let recorder = self.recorder.as_deref().filter(|_| !count.is_zero());
        let begin = recorder.map(|recorder| (recorder, clock::nanoseconds()));
        spin_until(|| {
            late = !count.is_zero()
                && wait
                    .deadline()
                    .is_some_and(|deadline| Instant::now() >= deadline);
            late || count.is_zero()
        });
        if let Some((recorder, begin)) = begin {
            let waited = clock::nanoseconds() - begin;
            recorder.range_ns.fetch_add(waited, Ordering::Relaxed);
        }
        if late && self.withdraw(slot, &count) {
            return None;
        }
        Some(Token(slot))
    }

    /// Removes a request from the tree, unless its range has been granted in the meantime.
    fn withdraw(&self, slot: Slot, count: &Count) -> bool {
        self.tree.with(|tree| {
            let waits = !count.is_zero();
            if waits {
                remove(tree, slot);
            }
            waits
        })
    }

    fn release(&self, token: Token) {
        self.tree.with(|tree| remove(tree, token.0));
    }

    fn make_shared(&self, token: Token) -> Token {
        self.tree.with(|tree| {
            let Token(slot) = token;
            tree.value_mut(slot).mode = Mode::Shared;
            let (span, sequence) = (tree.span(slot), tree.sequence(slot));
            count_down(tree, span, sequence, |later| later == Mode::Shared);
        });
        token
    }
}

fn remove(tree: &mut IntervalTree<Request>, slot: Slot) {
    let span = tree.span(slot);
    let (Request { mode, .. }, sequence) = tree.remove(slot);
    count_down(tree, span, sequence, |later| later.conflicts(mode));
}

/// Decrements the counts of the requests later than `sequence` that overlap `span` and have one of the given modes: one
/// request that they conflict with has left.
fn count_down(
    tree: &IntervalTree<Request>,
    span: Span,
    sequence: u64,
    freed: impl Fn(Mode) -> bool,
) {
    tree.for_each_overlapping(span, |later, request| {
        if later > sequence && freed(request.mode) {
            let count = request.count.expect("it came later, so it waits");
            // SAFETY: the count includes the request that leaves, so it is not zero, and the waiting request is in the
            // tree.
            unsafe { count.as_ref() }.count_down();
        }
    });
}

/// The reader-writer range lock proposed for the Linux kernel by Bueso, called `kernel-rw` in P1: an interval tree
/// under a spin lock, first come first served. The source of this module describes the consequences.
///
/// It allocates nothing after its tree has grown to the largest number of requests at a time.
pub type KernelRw = TreeLock<SharedExclusive>;

/// The range lock of Lustre, from which [`KernelRw`] was derived: the same algorithm for exclusive ranges only.
pub type LustreEx = TreeLock<ExclusiveOnly>;

impl<P> Default for TreeLock<P> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a request enters the tree and takes its count in one section of the spin lock. It is granted when all
// conflicting requests before it have left the tree. Their critical sections are visible by [spin-lock-release]
// and [tree-grant-release].
unsafe impl<P> RawRangeMutex for TreeLock<P> {
    type Token = Token;

    fn lock_exclusive(&self, ask: Ask<'_, Token>) -> Option<Token> {
        self.acquire(ask.span, Mode::Exclusive, ask.wait)
    }

    unsafe fn unlock(&self, token: Token) {
        self.release(token);
    }
}

// SAFETY: as for the exclusive half. Two requests conflict unless both are shared, so a reader is granted beside
// readers only.
unsafe impl RawRangeLock for KernelRw {
    fn lock_shared(&self, ask: Ask<'_, Token>) -> Option<Token> {
        self.acquire(ask.span, Mode::Shared, ask.wait)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        self.make_shared(token)
    }
}
