//! Code of the program's that the library calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code whose panic is nobody's: whoever calls it is innocent, and has more to do. `None`: it has
/// panicked.
#[inline]
pub fn contain<R>(foreign: impl FnOnce() -> R) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(foreign));
    outcome.map_err(drop_payload).ok()
}

/// Drops what was thrown.
#[cold]
fn drop_payload(payload: Box<dyn std::any::Any + Send>) {
    // That is to run foreign code once more. Should that panic, what it throws stays in memory.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    dropped.unwrap_or_else(std::mem::forget);
}

#[cfg(test)]
mod tests {
    use super::contain;
    use std::panic::resume_unwind;

    /// It panics when it is dropped.
    struct Once;

    impl Drop for Once {
        fn drop(&mut self) {
            resume_unwind(Box::new("a payload's drop panics"));
        }
    }

    #[test]
    fn what_is_thrown_may_throw() {
        assert_eq!(contain(|| 5), Some(5));
        let thrown: Option<()> = contain(|| resume_unwind(Box::new(Once)));
        assert_eq!(thrown, None);
    }
}
