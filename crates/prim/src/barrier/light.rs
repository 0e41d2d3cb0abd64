//! When the light half may be nothing: the protocol between those who use it, a kernel that fences for them, and those who
//! ask it to. `prim-loom` compiles this file too.
//!
//! - **fenced**: until the kernel has answered both halves fence.
//! - **asked**: read-modify-writes of one word, by whoever has an answer of the kernel and by a heavy side that finds none yet.
//!   What the heavy side stored before its own is seen by all light sides that rely on an answer put there later.

use crate::atomic::{AtomicU8, Ordering, compiler_fence, fence};

/// What can fence for every thread of the process.
pub trait Kernel {
    /// Asks it to do so from now on; whether it will. Takes tens of milliseconds where there are other threads.
    fn register(&self) -> bool;

    /// Whether every processor that runs this process has executed a full fence, since this was called.
    fn expedite(&self) -> bool;

    /// Returns when all that any processor has stored before is seen by all.
    fn settle(&self);
}

/// What `light` is at the moment. From one of these to the next, and back never.
#[derive(Debug)]
pub struct Light<K> {
    state: AtomicU8,
    kernel: K,
}

/// A fence: the kernel was not asked.
const UNASKED: u8 = 0;
/// A fence: the kernel is being asked; or refused; or was being asked by another thread when this process was forked.
const ASKED: u8 = 1;
/// Nothing: the kernel fences for those who call `light`.
const NOTHING: u8 = 2;
/// A fence, since a moment: the kernel refuses now. A sandbox may have been set up.
const WITHDRAWN: u8 = 3;
/// A fence, for good: it is long ago that anybody found `NOTHING`, or nobody ever did.
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

    /// Asks the kernel, unless another thread did.
    pub fn prepare(&self) {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == UNASKED
            && self
                .state
                .compare_exchange(UNASKED, ASKED, success, failure)
                .is_ok()
            && self.kernel.register()
        {
            // [asked] Not a store: it passes on what heavy sides have released.
            if crate::intact!("asked-passed-on") {
                self.state.fetch_max(NOTHING, Ordering::Relaxed);
            } else {
                self.state.store(NOTHING, Ordering::Relaxed);
            }
        }
    }

    /// Has both halves fence for good, and the kernel never be asked. Without effect if it was asked before.
    pub fn forgo(&self) {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        // To `OVER` at once: nobody ever found `NOTHING`.
        let _ = self.state.compare_exchange(UNASKED, OVER, success, failure);
    }

    /// The cheap half.
    #[inline]
    pub fn light(&self) {
        // What the caller has stored it stores before it looks here, lest it look, be held up for long, and store then.
        compiler_fence(Ordering::SeqCst);
        // [asked] Acquire: what the caller looks at next it looks at later.
        if self
            .state
            .load(crate::order!("asked-relied", Ordering::Acquire))
            == NOTHING
        {
            compiler_fence(Ordering::SeqCst);
        } else if crate::intact!("fenced-light") {
            fence(Ordering::SeqCst);
        }
    }

    /// The dear half.
    pub fn heavy(&self) {
        if crate::intact!("fenced-heavy") {
            fence(Ordering::SeqCst);
        }
        // The look beforehand leaves those who call `light` their copies of the line. Acquire, also below: who finds `OVER`
        // looks next at what `settle` has waited for.
        let mut seen = self.state.load(Ordering::Acquire);
        if seen < NOTHING && crate::intact!("asked") {
            // [asked] Who calls `light` and fences is settled with the fence above. Who finds `NOTHING` finds what was put there
            // after this, and acquires what this releases by that fence: so it sees what the caller has stored. All that
            // happens to the word in between are read-modify-writes.
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

    /// The kernel refuses what it granted.
    #[cold]
    pub fn withdraw(&self) {
        if self.state.fetch_max(WITHDRAWN, Ordering::SeqCst) != OVER {
            self.kernel.settle();
            // Release: pairs with the look of `heavy`.
            self.state.fetch_max(OVER, Ordering::Release);
        }
    }
}
