//! What becomes of a request whose code panics.

use super::waiter::Waiter;
use crate::observe::Outcome;

/// A request that is pursued. It is dropped when foreign code panics, which compares keys: then a thread's request is
/// given up [panic-gives-up]; a task's future does that. It is also dropped when a task has to wait.
pub(super) struct Pursued<'w, 'a>(pub(super) &'w mut Waiter<'a>);

impl Drop for Pursued<'_, '_> {
    fn drop(&mut self) {
        let Self(waiter) = self;
        if waiter.sleeper.is_task() {
            return waiter.call_tasks();
        }
        let observed = waiter.observed();
        if prim::intact!("panic-gives-up") {
            waiter.give_up();
        }
        waiter.call_tasks();
        if let Some(observed) = observed {
            observed.end(Outcome::Refused);
        }
    }
}
