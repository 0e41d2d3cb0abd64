//! How the light side becomes free: the protocol between threads on the two sides and a kernel that fences for all of
//! them. `prim-loom` compiles this file too.
//!
//! The state only moves on:
//!
//! ```text
//!   UNASKED --------> ASKED -----------> NOTHING -----------> WITHDRAWN -----------> OVER
//!     a thread registers    the kernel            the kernel            all stores that
//!                           grants it             refuses later         were pending are visible
//!
//!   light side:  a fence, except in NOTHING
//!   heavy side:  a fence; and in NOTHING also a request to the kernel
//! ```
//!
//! - **fenced-light**, **fenced-heavy**: until the kernel has granted it both sides fence.
//! - **asked**, **asked-passed-on** / **asked-relied**: the thread that has the kernel's answer, and a heavy side that
//!   finds none yet, change the word by read-modify-writes. So a light side that relies on an answer that was stored
//!   later observes what the heavy side has stored before.

use crate::atomic::{AtomicU8, Ordering, compiler_fence, fence};

/// A system that can fence for every thread of the process.
pub trait Kernel {
    /// Asks it to fence from now on; `false` if it refuses. Takes tens of milliseconds if there are other threads.
    fn register(&self) -> bool;

    /// Has every processor that runs this process execute a full fence; `false` if it refuses.
    fn expedite(&self) -> bool;

    /// Returns when all processors observe everything that any of them has stored before.
    fn settle(&self);
}

/// The two sides, and what `light` is at the moment.
#[derive(Debug)]
pub struct Light<K> {
    state: AtomicU8,
    kernel: K,
}

/// A fence: the kernel was not asked.
const UNASKED: u8 = 0;
/// A fence: the kernel is being asked; or refused; or was being asked by another thread when this process was forked.
const ASKED: u8 = 1;
/// Nothing: the kernel fences for the threads that call `light`.
const NOTHING: u8 = 2;
/// A fence, since a moment ago: the kernel refuses now. A sandbox may have been set up.
const WITHDRAWN: u8 = 3;
/// A fence, for good: it is long ago that a thread found `NOTHING`, or none ever did.
const OVER: u8 = 4;

impl<K: Kernel> Light<K> {
    crate::const_fn! {
        /// Fences until `prepare` has been called.
        pub const fn new(kernel: K) -> Self {
            Self {
                state: AtomicU8::new(UNASKED),
                kernel,
            }
        }
    }

    /// Asks the kernel, unless another thread has.
    pub fn prepare(&self) {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == UNASKED
            && self
                .state
                .compare_exchange(UNASKED, ASKED, success, failure)
                .is_ok()
            && self.kernel.register()
        {
            // [asked-passed-on] Not a store: a read-modify-write passes on what heavy sides have released.
            if crate::intact!("asked-passed-on") {
                self.state.fetch_max(NOTHING, Ordering::Relaxed);
            } else {
                self.state.store(NOTHING, Ordering::Relaxed);
            }
        }
    }

    /// Makes both sides fence for good, and never asks the kernel. It has no effect once the kernel was asked.
    pub fn forgo(&self) {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        // To `OVER` at once: no thread ever found `NOTHING`.
        let _ = self.state.compare_exchange(UNASKED, OVER, success, failure);
    }

    /// The light side.
    #[inline]
    pub fn light(&self) {
        // The caller's store must not move behind this load. Otherwise the thread could load, be held up for long, and
        // store then.
        compiler_fence(Ordering::SeqCst);
        // [asked-relied] Acquire: what the caller loads next is loaded later.
        if self
            .state
            .load(crate::order!("asked-relied", Ordering::Acquire))
            == NOTHING
        {
            compiler_fence(Ordering::SeqCst);
        } else if crate::intact!("fenced-light") {
            // [fenced-light]
            fence(Ordering::SeqCst);
        }
    }

    /// The heavy side.
    pub fn heavy(&self) {
        // [fenced-heavy]
        if crate::intact!("fenced-heavy") {
            fence(Ordering::SeqCst);
        }
        // A load first leaves the light sides their copies of the line. Acquire, here and below: a thread that finds
        // `OVER` next loads the stores for which `settle` has waited.
        let mut seen = self.state.load(Ordering::Acquire);
        if seen < NOTHING && crate::intact!("asked") {
            // [asked] For a light side that fences, the fence above is enough. A light side that finds `NOTHING` finds
            // a value stored after this, and Acquires what this releases by the fence above: so it observes what the
            // caller has stored. Only read-modify-writes change the word in between.
            seen = self.state.fetch_or(0, Ordering::Acquire);
        }
        match seen {
            // A child of `fork` may have to register anew.
            NOTHING
                if self.kernel.expedite() || self.kernel.register() && self.kernel.expedite() => {}
            NOTHING | WITHDRAWN => self.withdraw(),
            _ => {}
        }
    }

    /// The kernel refuses what it has granted: makes both sides fence for good.
    #[cold]
    pub fn withdraw(&self) {
        if self.state.fetch_max(WITHDRAWN, Ordering::SeqCst) != OVER {
            self.kernel.settle();
            // Release: pairs with the load in `heavy`.
            self.state.fetch_max(OVER, Ordering::Release);
        }
    }
}
