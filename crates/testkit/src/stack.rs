//! How much stack a piece of a test takes.

use libc::{c_void, pthread_attr_t};
use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

/// What the stack contains where nobody has written.
const PAINT: u128 = 0x5AFE_57AC_C0DE_F00D_5AFE_57AC_C0DE_F00D; // As stacks are aligned.

/// As much as any thread needs. There is no guard page.
const WORDS: usize = (4 << 20) / size_of::<u128>();

struct Run<F> {
    f: Option<F>,
    /// An address in the frame of whoever calls `f`.
    top: usize,
    panic: Option<Box<dyn Any + Send>>,
}

/// How many bytes of stack `f` takes on a thread that has just started, with what the thread's end takes. A frame
/// counts as far down as it was written.
///
/// # Panics
/// When `f` does, or when the system gives no thread.
#[must_use]
pub fn taken_by<F: FnOnce() + Send>(f: F) -> usize {
    let mut stack = vec![PAINT; WORDS].into_boxed_slice();
    let mut run = Run {
        f: Some(f),
        top: 0,
        panic: None,
    };
    let mut attributes = MaybeUninit::<pthread_attr_t>::uninit();
    // SAFETY: it initialises them.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    let base = stack.as_mut_ptr().cast::<c_void>();
    // SAFETY: initialised above; the memory is live until the thread has ended, and nobody else uses it meanwhile.
    let set =
        unsafe { libc::pthread_attr_setstack(attributes.as_mut_ptr(), base, size_of_val(&*stack)) };
    assert_eq!(set, 0, "the stack is refused");
    let mut thread = 0;
    let argument = (&raw mut run).cast::<c_void>();
    // SAFETY: all are live; `call::<F>` gets the `Run<F>` that it expects.
    let created =
        unsafe { libc::pthread_create(&raw mut thread, attributes.as_ptr(), call::<F>, argument) };
    assert_eq!(created, 0, "there is no thread to be had");
    // SAFETY: it was created just above, and is joined once.
    unsafe { libc::pthread_join(thread, ptr::null_mut()) };
    // SAFETY: initialised above, and not used later.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if let Some(payload) = run.panic {
        resume_unwind(payload);
    }
    let untouched = stack.iter().take_while(|&&word| word == PAINT).count();
    run.top - (base.addr() + untouched * size_of::<u128>())
}

/// Calls the function of a `Run`.
extern "C" fn call<F: FnOnce()>(run: *mut c_void) -> *mut c_void {
    // SAFETY: `taken_by` gives its own, and waits for this thread.
    let run = unsafe { &mut *run.cast::<Run<F>>() };
    run.top = (&raw const run).addr();
    if let Some(f) = run.f.take() {
        run.panic = below(f);
    }
    ptr::null_mut()
}

/// Calls it in a frame of its own, below the caller's.
#[inline(never)]
fn below(f: impl FnOnce()) -> Option<Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(f)).err()
}

#[cfg(test)]
mod tests {
    use super::taken_by;
    use std::hint::black_box;

    #[test]
    fn a_large_frame_is_seen() {
        let small = taken_by(|| {
            black_box(0);
        });
        let large = taken_by(|| {
            let mut frame = [0_u8; 50_000];
            frame.fill(black_box(1));
            black_box(&frame);
        });
        assert!(small < 50_000, "{small}");
        assert!(large >= 50_000, "{large}");
    }
}
