//! What becomes of a request whose code panics.

use super::waiter::Waiter;

/// A request that is pursued. Dropping it gives the request up: that is done only when foreign code panics, which
/// compares keys [panic-gives-up].
pub(super) struct Pursued<'w, 'a>(pub(super) &'w mut Waiter<'a>);

impl Drop for Pursued<'_, '_> {
    #[cold]
    fn drop(&mut self) {
        let Self(waiter) = self;
        if prim::intact!("panic-gives-up") {
            waiter.give_up();
        }
        waiter.record.call_tasks();
    }
}
