//! Epochs, and grace periods measured by them. The edges are explained in the parent module.

use prim::atomic::{AtomicU64, Ordering, fence, fence_after_rmw};

/// A thread's epoch: odd while the thread walks a list.
#[derive(Debug)]
pub(crate) struct Epoch(AtomicU64);

impl Default for Epoch {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Epoch {
    /// Begins a walk. Only the epoch's thread calls this, and walks do not nest.
    #[inline]
    pub(crate) fn pin(&self) {
        // Relaxed: ordered by the fence.
        let now = self.0.load(Ordering::Relaxed);
        debug_assert!(now.is_multiple_of(2), "walks do not nest");
        // SeqCst: no more than the fence asks for, but a store that the result is not asked of stays an exchange.
        self.0.swap(now + 1, Ordering::SeqCst);
        if prim::intact!("pin") {
            fence_after_rmw();
        }
    }

    /// Ends a walk: the thread stands on no node.
    #[inline]
    pub(crate) fn unpin(&self) {
        let now = self.0.load(Ordering::Relaxed);
        // [unpin] Release: pairs with the Acquire loads in `Grace`.
        self.0
            .store(now + 1, prim::order!("unpin", Ordering::Release));
    }

    /// Ends the walk of a thread that no longer exists.
    pub(crate) fn abandon(&self) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now.next_multiple_of(2), Ordering::Release);
    }

    /// Whether its thread is walking. Asked by that thread.
    pub(crate) fn is_walking(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_multiple_of(2)
    }

    /// The epoch, if its thread is walking.
    fn walking(&self) -> Option<u64> {
        // [unpin] Acquire: see above.
        let now = self.0.load(prim::order!("unpin", Ordering::Acquire));
        (!now.is_multiple_of(2)).then_some(now)
    }
}

/// The walks that were under way at some moment.
#[derive(Debug)]
pub(crate) struct Grace<'a> {
    walks: Vec<(&'a Epoch, u64)>,
}

impl<'a> Grace<'a> {
    /// No walk at all.
    pub(crate) const fn new() -> Self {
        Self { walks: Vec::new() }
    }

    /// Records the walks now under way that may stand on nodes this thread has unlinked.
    pub(crate) fn restart<E: Iterator<Item = &'a Epoch>>(&mut self, epochs: impl Fn() -> E) {
        self.walks.clear();
        // [newcomers] Whose epochs there are is asked after the fence, too.
        let early = (!prim::intact!("newcomers")).then(&epochs);
        if prim::intact!("seal") {
            fence(Ordering::SeqCst);
        }
        let epochs = early.unwrap_or_else(epochs);
        self.walks
            .extend(epochs.filter_map(|epoch| Some((epoch, epoch.walking()?))));
    }

    /// Whether all recorded walks have ended.
    pub(crate) fn is_over(&mut self) -> bool {
        if !prim::intact!("grace") {
            return true;
        }
        self.walks
            .retain(|(epoch, then)| epoch.walking() == Some(*then));
        self.walks.is_empty()
    }
}
