//! `kernel-rw` and `lustre-ex`: an interval tree of requests under a spin lock.
//!
//! A request enters the tree and counts those in it that overlap and conflict: the requests before it. It holds its
//! range once that count is zero. A release leaves the tree and counts down the later ones that it was in the way
//! of. So requests are served in the order of their arrival, and one waits behind a *waiting* one that it conflicts
//! with, though its range be free: with A = [1, 3) held, B = [2, 7) waits for A, and C = [4, 5) waits for B.
//!
//! That order is the point of the comparison and is kept. It also means that a thread which holds a range and asks
//! for another can wait for somebody who waits for it, where `spanlock`'s own locks let it pass. Even calls that lock
//! many ranges can: one that holds the first of its ranges waits for the second behind a request for both.
//!
//! Waiting is as in P1 by spinning, on the request's own count; but bounded, and then with the processor given away
//! between looks, because there may be more threads than processors.
//!
//! # Memory ordering
//! - **spin**: see the spin lock.
//! - **grant**: Release by counting down, Acquire by the waiter's loads of its count: the critical sections of those
//!   it waited for. (Of all but the last by way of [spin].)

use super::interval_tree::{IntervalTree, Slot};
use super::spin_lock::{SpinLock, spin_until};
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::Instant;
use spanlock::range::Span;
use spanlock::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use std::ptr::NonNull;

/// How many earlier requests stand in the way of one that waits. It lives on the waiter's stack.
struct Count(AtomicU32);

impl Count {
    fn is_zero(&self) -> bool {
        // [grant] Acquire.
        self.0
            .load(prim::order!("tree-grant-acquire", Ordering::Acquire))
            == 0
    }

    /// The tree's lock is held, so nobody else counts.
    fn count_down(&self) {
        let left = self.0.load(Ordering::Relaxed) - 1;
        // [grant] Release.
        self.0
            .store(left, prim::order!("tree-grant-release", Ordering::Release));
    }
}

struct Request {
    mode: Mode,
    /// `None` for one that was granted at once, which nobody counts down.
    ///
    /// # Safety
    /// Live as long as it is not zero and the request is in the tree.
    count: Option<NonNull<Count>>,
}

// SAFETY: what it points to is shared by atomic accesses only.
unsafe impl Send for Request {}

/// Proof of an acquisition: its place in the tree.
#[derive(Debug)]
pub struct Token(Slot);

struct TreeLock {
    tree: SpinLock<IntervalTree<Request>>,
}

impl TreeLock {
    prim::const_fn! {
        const fn new() -> Self {
            Self {
                tree: SpinLock::new(IntervalTree::new()),
            }
        }
    }

    fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<Token> {
        let count = Count(AtomicU32::new(0));
        let slot = self.tree.with(|tree| {
            let mut earlier = 0;
            tree.for_each_overlapping(span, |_, other| {
                earlier += u32::from(other.mode.conflicts(mode));
            });
            if earlier > 0 && wait == Wait::Never {
                return None;
            }
            // Relaxed: it changes under the lock only.
            count.0.store(earlier, Ordering::Relaxed);
            let count = (earlier > 0).then(|| NonNull::from(&count));
            Some(tree.insert(span, Request { mode, count }))
        })?;
        let mut late = false;
        spin_until(|| {
            late = !count.is_zero()
                && wait
                    .deadline()
                    .is_some_and(|deadline| Instant::now() >= deadline);
            late || count.is_zero()
        });
        if late && self.withdraw(slot, &count) {
            return None;
        }
        Some(Token(slot))
    }

    /// Leaves the tree, unless the range has been granted meanwhile.
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

/// Counts down the requests later than `sequence` that overlap `span`, of those modes: one is in their way no more.
fn count_down(
    tree: &IntervalTree<Request>,
    span: Span,
    sequence: u64,
    freed: impl Fn(Mode) -> bool,
) {
    tree.for_each_overlapping(span, |later, request| {
        if later > sequence && freed(request.mode) {
            let count = request.count.expect("it came later, so it waits");
            // SAFETY: it counted the one that leaves, so it is not zero; and the request is in the tree.
            unsafe { count.as_ref() }.count_down();
        }
    });
}

/// The reader-writer range lock proposed for the Linux kernel (Bueso), `kernel-rw` in P1: interval tree, spin lock,
/// first come first served. See the source of this module for what that entails.
///
/// Once its tree has grown to the number of requests at a time, it allocates nothing.
#[derive(Default)]
pub struct KernelRw(TreeLock);

/// The range lock of Lustre, from which [`KernelRw`] comes: the same for exclusive ranges only.
#[derive(Default)]
pub struct LustreEx(TreeLock);

impl Default for TreeLock {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelRw {
    prim::const_fn! {
        /// A lock with nothing held.
        #[must_use]
        pub const fn new() -> Self {
            Self(TreeLock::new())
        }
    }
}

impl LustreEx {
    prim::const_fn! {
        /// A lock with nothing held.
        #[must_use]
        pub const fn new() -> Self {
            Self(TreeLock::new())
        }
    }
}

// SAFETY: a request is granted when all conflicting ones that were in the tree before it have left, and enters the
// tree with its count taken in one section of the spin lock. What those did is visible by [spin] and [grant].
unsafe impl RawRangeMutex for KernelRw {
    type Token = Token;

    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Token> {
        self.0.acquire(span, Mode::Exclusive, wait)
    }

    unsafe fn unlock(&self, token: Token) {
        self.0.release(token);
    }
}

// SAFETY: as above; only two shared requests do not conflict.
unsafe impl RawRangeLock for KernelRw {
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<Token> {
        self.0.acquire(span, Mode::Shared, wait)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        self.0.make_shared(token)
    }
}

// SAFETY: as above.
unsafe impl RawRangeMutex for LustreEx {
    type Token = Token;

    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Token> {
        self.0.acquire(span, Mode::Exclusive, wait)
    }

    unsafe fn unlock(&self, token: Token) {
        self.0.release(token);
    }
}
