//! What a function answers: zero, or an errno value. A panic becomes one, too.

use libc::{EBUSY, EDEADLK, ENOTRECOVERABLE, ETIMEDOUT, c_int};
use spanlock::range::raw::Wait;
use std::any::Any;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An errno value. It is not zero, so an answer without one is a single number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(NonZero<c_int>);

impl Refused {
    #[inline(always)] // A constant.
    pub(crate) const fn by(error: c_int) -> Self {
        Self(NonZero::new(error).expect("an error is not zero"))
    }
}

/// What a call is good for, or why not.
pub(crate) type Answer<T = ()> = Result<T, Refused>;

/// `value` if a condition holds, else the error.
#[inline]
pub(crate) fn ensure(holds: bool, error: c_int) -> Answer {
    if holds {
        Ok(())
    } else {
        Err(Refused::by(error))
    }
}

/// The error of a request that was not granted.
#[inline]
pub(crate) fn given_up(wait: Wait) -> Refused {
    Refused::by(match wait {
        Wait::Never => EBUSY,
        Wait::Until(_) | Wait::Forever => ETIMEDOUT,
    })
}

/// Calls `f`, and answers as C functions do. A panic is an error like any other: nothing unwinds into C.
#[inline(always)] // It is all that most functions are.
pub(crate) fn answer(f: impl FnOnce() -> Answer) -> c_int {
    // No lock is left in a state that a later call could not handle: the library's own guarantee about panics.
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => 0,
        Ok(Err(Refused(error))) => error.get(),
        Err(panic) => error_of(panic),
    }
}

/// A debug build of the library panics when a thread would wait for itself. Any other panic is a bug.
#[cold]
#[inline(never)] // It takes the payload, so that the path without a panic saves no registers.
fn error_of(panic: Box<dyn Any + Send>) -> c_int {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    if text.is_some_and(|text| text.starts_with("deadlock")) {
        EDEADLK
    } else {
        ENOTRECOVERABLE
    }
}

#[cfg(test)]
mod tests {
    use super::{Refused, answer};
    use libc::{EDEADLK, ENOTRECOVERABLE, EPERM};

    #[test]
    fn panics_are_errno_values() {
        assert_eq!(answer(|| Ok(())), 0);
        assert_eq!(answer(|| Err(Refused::by(EPERM))), EPERM);
        assert_eq!(answer(|| panic!("a bug")), ENOTRECOVERABLE);
        assert_eq!(answer(|| panic!("deadlock: thread {}", 5)), EDEADLK);
    }

    #[test]
    fn a_thread_that_waits_for_itself_panics_with_that_text() {
        use spanlock::range::RangeLock;
        let lock = RangeLock::new();
        let held = lock.write(0..10);
        let waits = || {
            drop(lock.write(5..6));
            Ok(())
        };
        if cfg!(debug_assertions) {
            assert_eq!(answer(waits), EDEADLK);
        }
        drop(held);
    }
}
