//! Epochs, and the grace periods that they measure. The parent module has a picture and explains the edges.

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
    /// Begins a walk. Only the epoch's thread calls this.
    ///
    /// # Panics
    /// When it walks already: the end of the inner walk would be that of the outer one, whose nodes would be reused.
    #[inline]
    #[track_caller]
    pub(crate) fn pin(&self) {
        // Relaxed: ordered by the fence.
        let now = self.0.load(Ordering::Relaxed);
        if !now.is_multiple_of(2) {
            walks_nest();
        }
        // SeqCst asks for no more than the fence does. It keeps the compiler from turning the unused swap into a store.
        self.0.swap(now + 1, Ordering::SeqCst);
        // [pin]
        if prim::intact!("pin") {
            fence_after_rmw();
        }
    }

    /// Ends a walk: the thread stands on no node any more.
    #[inline]
    pub(crate) fn unpin(&self) {
        let now = self.0.load(Ordering::Relaxed);
        // [unpin] Release: pairs with the Acquire in `walking`, which `Grace` calls.
        self.0
            .store(now + 1, prim::order!("unpin", Ordering::Release));
    }

    /// Ends the walk of a thread that no longer exists.
    pub(crate) fn abandon(&self) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now.next_multiple_of(2), Ordering::Release);
    }

    /// Whether the epoch's thread is walking. Called by that thread.
    pub(crate) fn is_walking(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_multiple_of(2)
    }

    /// The epoch, if its thread is walking.
    fn walking(&self) -> Option<u64> {
        // [unpin] Acquire: pairs with the Release in `unpin`.
        let now = self.0.load(prim::order!("unpin", Ordering::Acquire));
        (!now.is_multiple_of(2)).then_some(now)
    }
}

#[cold]
#[track_caller]
fn walks_nest() -> ! {
    panic!(
        "a range lock is used while this thread walks a list: expected comparators of keys, and their `Clone`, `Drop` \
         and `Debug`, not to use range locks"
    )
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

    /// Records the walks under way, which may stand on nodes that this thread has unlinked.
    pub(crate) fn restart<E: Iterator<Item = &'a Epoch>>(&mut self, epochs: impl Fn() -> E) {
        self.walks.clear();
        // [new-threads] The list of epochs is determined after the fence, too.
        let early = (!prim::intact!("new-threads")).then(&epochs);
        // [seal]
        if prim::intact!("seal") {
            fence(Ordering::SeqCst);
        }
        let epochs = early.unwrap_or_else(epochs);
        self.walks
            .extend(epochs.filter_map(|epoch| Some((epoch, epoch.walking()?))));
    }

    /// Whether all recorded walks have ended.
    pub(crate) fn is_over(&mut self) -> bool {
        // [grace]
        if !prim::intact!("grace") {
            return true;
        }
        self.walks
            .retain(|(epoch, then)| epoch.walking() == Some(*then));
        self.walks.is_empty()
    }
}
