//! Epochs, and the grace periods that they measure. The parent module explains the edges.

use prim::atomic::{AtomicU64, Ordering};
use prim::barrier;

/// A thread's epoch: odd while the thread may stand on nodes.
#[derive(Debug, Default)]
pub(crate) struct Epoch(AtomicU64);

impl Epoch {
    /// From now on the thread may stand on nodes. Only the epoch's thread calls this, and calls do not nest.
    #[inline]
    pub(crate) fn pin(&self) {
        // Relaxed: ordered by the barrier.
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now + 1, Ordering::Relaxed);
        // [set-pin]
        if prim::intact!("set-pin") {
            barrier::light();
        }
    }

    /// The thread stands on no node any more.
    #[inline]
    pub(crate) fn unpin(&self) {
        let now = self.0.load(Ordering::Relaxed);
        // [set-unpin] Release: pairs with the Acquire in `pinned`.
        let release = prim::order!("set-unpin", Ordering::Release);
        self.0.store(now + 1, release);
    }

    /// Unpins for a thread that no longer exists.
    pub(crate) fn abandon(&self) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now.next_multiple_of(2), Ordering::Release);
    }

    /// The epoch, if its thread may stand on nodes.
    fn pinned(&self) -> Option<u64> {
        // [set-unpin] Acquire: pairs with the Release in `unpin`.
        let now = self.0.load(prim::order!("set-unpin", Ordering::Acquire));
        (!now.is_multiple_of(2)).then_some(now)
    }
}

/// The pins that existed at some moment.
#[derive(Debug, Default)]
pub(crate) struct Grace(Vec<(&'static Epoch, u64)>);

impl Grace {
    /// Records the pins that may stand on nodes that this thread has unlinked.
    pub(crate) fn restart<E: Iterator<Item = &'static Epoch>>(&mut self, epochs: impl Fn() -> E) {
        self.0.clear();
        // [set-new-threads] The epochs are determined after the fence, too.
        let early = (!prim::intact!("set-new-threads")).then(&epochs);
        // [set-seal]
        if prim::intact!("set-seal") {
            barrier::heavy();
        }
        let epochs = early.unwrap_or_else(epochs);
        self.0
            .extend(epochs.filter_map(|epoch| Some((epoch, epoch.pinned()?))));
    }

    /// Whether none of them exists any more.
    pub(crate) fn is_over(&mut self) -> bool {
        // [set-grace]
        if !prim::intact!("set-grace") {
            return true;
        }
        self.0.retain(|(epoch, then)| epoch.pinned() == Some(*then));
        self.0.is_empty()
    }
}
