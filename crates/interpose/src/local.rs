//! What a thread keeps: its number, its row in the table of visible readers, and a sampler of its slow reads.
//!
//! On x86-64 it lies in the *initial-exec* model, which the loader lays out with the thread. The thread-locals of a
//! library are otherwise reached by a call, which costs as much as the rest of the fast path.
//!
//! The library numbers threads itself, and not by `prim::thread`, whose thread-locals have destructors and allocate: a
//! program may use its locks in either.
//!
//! ```text
//!   first read of a thread            exit of a thread (a pthread key's destructor)
//!   ----------------------            ---------------------------------------------
//!   take the smallest free number     from here on: a shared row
//!   a row of that number exists?      free the number
//!     yes: own it
//!     no:  free the number,
//!          use a shared row
//! ```

use crate::errno::Errno;
use libc::{c_void, pthread_key_t};
use spanlock::rw::pthread::Sampler;
use spanlock::rw::pthread::table::ReaderRow;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of how many slow reads one reads the clock. `Bravo` samples one in 8 of the slow reads that look at the bias; here
/// no read goes without a look, so all slow reads are sampled, and fewer of them. A power of two.
const SAMPLED: u32 = 32;

/// All zero at first. It has no destructor and needs no allocation, because locks are used in either.
struct Local {
    /// Zero until it is asked for.
    thread: Cell<u64>,
    row: Cell<Option<ReaderRow>>,
    reads: Sampler,
    /// Whether the thread is taking a seat.
    sits_down: Cell<bool>,
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
        // into the global offset table. The instructions write no memory, and compute the same for each call by a
        // thread.
        unsafe {
            asm!(
                "mov {local}, qword ptr fs:[0]",
                "add {local}, qword ptr [rip + spanlock_local@GOTTPOFF]",
                local = out(reg) local,
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: the symbol has the size and at least the alignment of `Local`, and is this thread's alone. It is zero
        // at first, which is a valid value of all fields: no row, a sampler's first state, and not sitting down.
        f(unsafe { &*local })
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use super::{Cell, Local, Sampler};

    pub(super) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
        thread_local! {
            static LOCAL: Local = const {
                Local {
                    thread: Cell::new(0),
                    row: Cell::new(None),
                    reads: Sampler::new(),
                    sits_down: Cell::new(false),
                }
            };
        }
        LOCAL.with(f)
    }
}

/// The running thread's row in the table.
#[inline(always)]
pub(crate) fn row() -> ReaderRow {
    place::with(|local| local.row.get().unwrap_or_else(take_seat))
}

#[cold] // Once for each thread.
fn take_seat() -> ReaderRow {
    // To register for the exit may allocate, and the allocator may use locks: in there the thread has a shared row.
    if place::with(|local| local.sits_down.replace(true)) {
        return shared_row();
    }
    let _errno = Errno::kept();
    let row = match take_number() {
        Some(number) if is_given_up_at_exit(number) => {
            // SAFETY: the number is this thread's until `give_up` frees it, at its exit, and `give_up` first replaces
            // the only copy of this row that is kept.
            unsafe { ReaderRow::own(number) }
        }
        Some(number) => {
            free_number(number);
            ReaderRow::shared(number)
        }
        None => shared_row(),
    };
    place::with(|local| {
        local.row.set(Some(row));
        local.sits_down.set(false);
    });
    row
}

/// A shared row, by the thread's address. Such addresses are alike in their low digits, so they are spread, by the
/// golden ratio.
fn shared_row() -> ReaderRow {
    let address = place::with(|local| ptr::from_ref(local).addr());
    ReaderRow::shared(address.wrapping_mul(0x9E37_79B9) >> 16)
}

/// Threads that can have a row of their own.
const NUMBERS: usize = 1024;

/// Bit `i` of word `w` is set while some thread has number `64 * w + i`.
static TAKEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];

/// The smallest free number, now taken; `None` if there is no row of that number.
fn take_number() -> Option<usize> {
    TAKEN.iter().enumerate().find_map(|(at, word)| {
        let lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        // Acquire: pairs with the Release in `free_number`, so that the row comes as its last thread left it.
        let before = word.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest);
        let number = 64 * at + before.ok()?.trailing_ones() as usize;
        (number < ReaderRow::owners())
            .then_some(number)
            .or_else(|| {
                free_number(number);
                None
            })
    })
}

fn free_number(number: usize) {
    TAKEN[number / 64].fetch_and(!(1 << (number % 64)), Ordering::Release);
}

/// Registers the running thread to give up its number when it exits; `false` if that is not possible.
fn is_given_up_at_exit(number: usize) -> bool {
    /// One more than the key; zero until there is one.
    static KEY: AtomicU64 = AtomicU64::new(0);
    let mut key = KEY.load(Ordering::Relaxed);
    if key == 0 {
        let mut fresh: pthread_key_t = 0;
        // SAFETY: `fresh` is live during the call, and `give_up` may run on any thread.
        if unsafe { libc::pthread_key_create(&raw mut fresh, Some(give_up)) } != 0 {
            return false;
        }
        key = u64::from(fresh) + 1;
        if let Err(theirs) = KEY.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            // SAFETY: the key was made just above, and no other thread knows it.
            unsafe { libc::pthread_key_delete(fresh) };
            key = theirs;
        }
    }
    let value = ptr::without_provenance::<c_void>(number + 1);
    // SAFETY: the key was published in `KEY`, and a published key is never deleted.
    unsafe { libc::pthread_setspecific((key - 1) as pthread_key_t, value) == 0 }
}

/// Gives up the number of a thread that exits. Destructors that run later publish in a shared row.
unsafe extern "C" fn give_up(value: *mut c_void) {
    let number = value.addr() - 1;
    place::with(|local| local.row.set(Some(ReaderRow::shared(number))));
    free_number(number);
}

/// In a forked child, which has one thread: frees all numbers but that thread's.
pub(crate) fn after_fork() {
    let row = row();
    for (at, word) in TAKEN.iter().enumerate() {
        let own = row.number().filter(|number| number / 64 == at);
        word.store(
            own.map_or(0, |number| 1 << (number % 64)),
            Ordering::Relaxed,
        );
    }
}

/// A number that no other thread has or has had: one that has exited may have left a lock held. It is not the kernel's:
/// to ask for that takes a system call that glibc's locks do not make, and a sandbox may forbid it.
#[inline(always)]
pub(crate) fn thread() -> u64 {
    place::with(|local| match local.thread.get() {
        0 => fresh_number(local),
        number => number,
    })
}

#[cold] // Once for each thread.
fn fresh_number(local: &Local) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: each number is given once.
    local.thread.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    local.thread.get()
}

/// Draws whether this slow read reads the clock, to set the bias.
#[inline(always)]
pub(crate) fn draw_this_read() -> bool {
    place::with(|local| local.reads.draw_one_in(SAMPLED))
}
