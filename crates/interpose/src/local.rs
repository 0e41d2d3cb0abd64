//! What a thread keeps: its seat in the table of visible readers, and when to consider a bias.
//!
//! In the *initial-exec* model, which the loader lays out with the thread, where the toolchain allows that: a library's
//! thread-locals are else behind a call, which costs as much as the rest of the fast path.

use spanlock::rw::visible::Seat;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of how many slow reads one considers a bias. A power of two.
const CONSIDERED: u32 = 32;

/// All zero at first. No destructor and no allocation: locks are used in either.
struct Local {
    seated: Cell<u64>,
    seat: Cell<std::mem::MaybeUninit<Seat>>,
    reads: Cell<u32>,
}

#[cfg(target_arch = "x86_64")]
mod place {
    use super::Local;
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss,\"awT\",@nobits",
        ".balign 16",
        ".hidden spanlock_local",
        ".globl spanlock_local",
        ".type spanlock_local, @object",
        ".size spanlock_local, {size}",
        "spanlock_local: .zero {size}",
        ".popsection",
        size = const size_of::<Local>(),
    );

    const _: () = assert!(align_of::<Local>() <= 16);

    #[inline(always)]
    pub(super) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
        let local: *const Local;
        // SAFETY: on x86-64 the word at `fs:0` is the thread pointer, and the loader puts the symbol's offset from it
        // into the global offset table. Nothing is written, and the answer is the same on each call by a thread.
        unsafe {
            asm!(
                "mov {local}, qword ptr fs:[0]",
                "add {local}, qword ptr [rip + spanlock_local@GOTTPOFF]",
                local = out(reg) local,
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: this thread's own, of that size and alignment; zero is a valid value of all its fields.
        f(unsafe { &*local })
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use super::Local;
    use std::cell::Cell;
    use std::mem::MaybeUninit;

    pub(super) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
        thread_local! {
            static LOCAL: Local = const {
                Local {
                    seated: Cell::new(0),
                    seat: Cell::new(MaybeUninit::uninit()),
                    reads: Cell::new(0),
                }
            };
        }
        LOCAL.with(f)
    }
}

/// The running thread's seat.
#[inline(always)]
pub(crate) fn seat() -> Seat {
    place::with(|local| {
        if local.seated.get() == 0 {
            take_seat(local);
        }
        // SAFETY: it is written before `seated` is.
        unsafe { local.seat.get().assume_init() }
    })
}

#[cold] // Once for each thread.
fn take_seat(local: &Local) {
    /// Numbers are not given back: that would need a hook at the thread's end. Two of few threads seldom meet.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let seat = Seat::numbered(THREADS.fetch_add(1, Ordering::Relaxed));
    local.seat.set(std::mem::MaybeUninit::new(seat));
    local.seated.set(1);
}

/// Whether this slow read is one that considers a bias, which needs a look at the clock. At random, lest locks used
/// in turn fall in step.
#[inline(always)]
pub(crate) fn is_considered() -> bool {
    place::with(|local| {
        // A linear congruential generator (Numerical Recipes'), whose high bits are good enough.
        let next = local.reads.get().wrapping_mul(1_664_525);
        let next = next.wrapping_add(1_013_904_223);
        local.reads.set(next);
        (next >> 16).is_multiple_of(CONSIDERED)
    })
}
