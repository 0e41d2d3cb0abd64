//! Calls at points in time. Time is what the model makes it: a thread of the model lets the next call [come](fire).

/// A timer of the program, which is called on hardware only.
pub use hardware::timer::{AlreadyInstalled, Call, CallAt, install};

use crate::clock::Instant;
use crate::with_execution;
use std::sync::{Arc, Weak};

/// Something that is to happen at a point in time.
pub trait Due: Send + Sync {
    /// The time has come. `at` is the point in time that was asked for, or a later one.
    fn due(self: Arc<Self>, at: Instant);
}

/// A call that was asked for.
pub(crate) struct Asked {
    when: Instant,
    whom: Weak<dyn Due>,
}

/// Has `whom` called when the model says so.
pub fn at(when: Instant, whom: Weak<dyn Due>) -> bool {
    with_execution(|execution| execution.calls.push(Asked { when, whom }));
    true
}

/// Lets the earliest call come, on this thread. `false`: none was asked for.
pub fn fire() -> bool {
    let next = with_execution(|execution| {
        let calls = execution.calls.iter().enumerate();
        let first = calls.min_by_key(|(_, call)| call.when).map(|(at, _)| at);
        first.map(|at| execution.calls.remove(at))
    });
    let Some(Asked { when, whom }) = next else {
        return false;
    };
    if let Some(whom) = whom.upgrade() {
        whom.due(when);
    }
    true
}
