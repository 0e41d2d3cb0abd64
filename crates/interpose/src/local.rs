//! What a thread keeps: its seat in the table of visible readers, and when to consider a bias. Where it keeps that tells
//! it from other threads.
//!
//! In the *initial-exec* model, which the loader lays out with the thread, where the toolchain allows that: a library's
//! thread-locals are else behind a call, which costs as much as the rest of the fast path.

use crate::lock::Errno;
use libc::{c_void, pthread_key_t};
use spanlock::rw::visible::Seat;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of how many slow reads one considers a bias. A power of two.
const CONSIDERED: u32 = 32;

/// All zero at first. No destructor and no allocation: locks are used in either.
struct Local {
    seat: Cell<Option<Seat>>,
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
        // SAFETY: this thread's own, of that size and alignment; zero is a valid value of all its fields, and no seat.
        f(unsafe { &*local })
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use super::{Cell, Local};

    pub(super) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
        thread_local! {
            static LOCAL: Local = const {
                Local {
                    seat: Cell::new(None),
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
    place::with(|local| local.seat.get().unwrap_or_else(take_seat))
}

#[cold] // Once for each thread.
fn take_seat() -> Seat {
    let _errno = Errno::kept();
    let seat = match take_number() {
        Some(number) if is_given_up_at_exit(number) => {
            // SAFETY: `give_up` frees the number when the thread uses this seat no more.
            unsafe { Seat::own(number) }
        }
        Some(number) => {
            free_number(number);
            Seat::shared(number)
        }
        // Spread, as addresses of threads are alike in their low digits: the golden ratio's.
        None => Seat::shared((thread() as usize).wrapping_mul(0x9E37_79B9) >> 16),
    };
    place::with(|local| local.seat.set(Some(seat)));
    seat
}

/// Threads that can have a row of their own.
const NUMBERS: usize = 1024;

/// Bit `i` of word `w` is set while some thread has number `64 * w + i`.
static TAKEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];

/// The smallest that is free.
fn take_number() -> Option<usize> {
    TAKEN.iter().enumerate().find_map(|(at, word)| {
        let lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        // Acquire: pairs with the Release below, so that the row comes as it was left.
        let before = word.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest);
        let number = 64 * at + before.ok()?.trailing_ones() as usize;
        (number < Seat::owners()).then_some(number).or_else(|| {
            free_number(number);
            None
        })
    })
}

fn free_number(number: usize) {
    TAKEN[number / 64].fetch_and(!(1 << (number % 64)), Ordering::Release);
}

/// Has the running thread give its number up when it exits.
fn is_given_up_at_exit(number: usize) -> bool {
    /// One more than the key, once there is one.
    static KEY: AtomicU64 = AtomicU64::new(0);
    let mut key = KEY.load(Ordering::Relaxed);
    if key == 0 {
        let mut fresh: pthread_key_t = 0;
        // SAFETY: `fresh` is live, and the destructor may run on any thread.
        if unsafe { libc::pthread_key_create(&raw mut fresh, Some(give_up)) } != 0 {
            return false;
        }
        key = u64::from(fresh) + 1;
        if let Err(theirs) = KEY.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            // SAFETY: made just above, and nobody knows it.
            unsafe { libc::pthread_key_delete(fresh) };
            key = theirs;
        }
    }
    let value = ptr::without_provenance::<c_void>(number + 1);
    // SAFETY: the key is never deleted.
    unsafe { libc::pthread_setspecific((key - 1) as pthread_key_t, value) == 0 }
}

/// When a thread exits: what comes after this, other destructors, shares a row.
unsafe extern "C" fn give_up(value: *mut c_void) {
    let number = value.addr() - 1;
    place::with(|local| local.seat.set(Some(Seat::shared(number))));
    free_number(number);
}

/// In a forked child: there is one thread.
pub(crate) fn after_fork() {
    let seat = seat();
    for (at, word) in TAKEN.iter().enumerate() {
        let own = seat.number().filter(|number| number / 64 == at);
        word.store(
            own.map_or(0, |number| 1 << (number % 64)),
            Ordering::Relaxed,
        );
    }
}

/// What no other living thread answers. Not the kernel's number, for which the kernel would have to be asked: glibc's
/// locks need not ask, so a sandbox may forbid it.
#[inline(always)]
pub(crate) fn thread() -> u64 {
    place::with(|local| ptr::from_ref(local).addr() as u64)
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
