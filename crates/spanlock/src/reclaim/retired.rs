//! What a thread has taken away from under walks, each thing with a grace period of its own: for what is given up
//! seldom.

use super::{Epoch, Grace};
use std::cell::RefCell;

/// Things that other threads may stand on. Each is dropped when the walks that were under way have ended, with the next
/// one that is given up, or when the thread exits.
pub(crate) struct Retired<T>(RefCell<Vec<(T, Grace<'static>)>>);

impl<T> Retired<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Gives up a thing that no walk reaches which begins from now on.
    #[cold]
    pub(crate) fn retire<E: Iterator<Item = &'static Epoch>>(
        &self,
        thing: T,
        epochs: impl Fn() -> E,
    ) {
        let mut grace = Grace::new();
        grace.restart(epochs);
        self.0.borrow_mut().push((thing, grace));
        self.collect();
    }

    /// Drops what no walk stands on any more.
    #[cold]
    pub(crate) fn collect(&self) {
        self.0
            .borrow_mut()
            .retain_mut(|(_, grace)| !grace.is_over());
    }
}
