//! What an owner's token stands for, to be converted, cut and released.

use super::range_lock_many::Want;
use super::types::{Asked, Range, Token};
use crate::answer::answer;
use crate::copies::Handle;
use crate::memory::{place, places};
use crate::owner_handle::{Held, OwnerHandle};
use crate::range_handle::RangeHandle;
use crate::ranged::{convert, granted, release, release_part, split, with_held};
use crate::time;
use libc::{c_int, timespec};
use spanlock::range::raw::{Mode, Wait};

/// From now on the owner holds `range` in a mode, by this token: what the token stands for of it is converted, and what
/// it does not is acquired. What it stands for elsewhere stays. Blocks while others hold some of `range` in the way.
///
/// All or nothing: an error leaves what was held as it was, and it is held meanwhile. Nobody gets between the old hold
/// and the new one.
///
/// EINVAL: the token was released, or is of another owner or lock; a reversed range; another mode. EBUSY: another
/// thread uses the token. ECANCELED and ENOLCK as in `spanlock_owner_lock`. EDEADLK: as there; or another owner that
/// shares some of it waits to have it alone already, and each would wait for the other. Release what is shared, and ask
/// again.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_convert(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    range: Range,
    mode: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { convert((owner, lock), token, (range, mode), || Ok(Wait::Forever)) }
}

/// As `spanlock_owner_convert`, if that is possible at once. EBUSY: it is not. To try again in a loop is no way to
/// wait: two owners that do so never succeed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_try_convert(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    range: Range,
    mode: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { convert((owner, lock), token, (range, mode), || Ok(Wait::Never)) }
}

/// As `spanlock_owner_convert`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_timed_convert(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    range: Range,
    mode: u32,
    clock: c_int,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { convert((owner, lock), token, (range, mode), wait) }
}

/// Converts all that a token stands for to be held alone; at once, or else with any wait.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
unsafe fn upgrade(
    at: (*mut OwnerHandle, *mut RangeHandle),
    token: *const Token,
    wait: Wait,
) -> c_int {
    let f = |at: (&OwnerHandle, &RangeHandle), held: &mut Held<RangeHandle>| {
        let pieces = held.pieces();
        let asked: Vec<_> = pieces
            .map(|(span, _)| (Range::of(span), Mode::Exclusive))
            .collect();
        granted(at, &asked, wait, |wait| match wait {
            Wait::Never => held.try_upgrade(),
            Wait::Forever | Wait::Until(_) => held.upgrade(),
        })
    };
    // SAFETY: the caller's promise.
    unsafe { with_held(at, token, f) }
}

/// Holds alone all that a token stands for: `spanlock_owner_convert` for what is held. Errors as there.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_upgrade(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { upgrade((owner, lock), token, Wait::Forever) }
}

/// As `spanlock_owner_upgrade`, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_try_upgrade(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { upgrade((owner, lock), token, Wait::Never) }
}

/// Shares all that a token stands for from now on. No writer gets in between.
///
/// EINVAL: the token was released, is of another owner or lock, or was never an owner's token. EBUSY: another thread
/// uses it.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_downgrade(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
) -> c_int {
    let f = |_: (&OwnerHandle, &RangeHandle), holding: &mut Held<RangeHandle>| {
        holding.downgrade();
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with_held((owner, lock), token, f) }
}

/// Releases what a token stands for, and sets the token to zero. Any thread may do it.
///
/// Errors as `spanlock_owner_downgrade`. Nothing is released then.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_release(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { release((owner, lock), token) }
}

/// Releases `range`, and keeps the rest of what a token stands for. The token stays, also if nothing is left.
///
/// EINVAL: a reversed range. Other errors as `spanlock_owner_downgrade`.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_release_part(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    range: Range,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { release_part((owner, lock), token, range) }
}

/// Releases all but `range` of what a token stands for. The token stays, also if nothing is left.
///
/// Errors as `spanlock_owner_release_part`.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_shrink(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    range: Range,
) -> c_int {
    let f = |_: (&OwnerHandle, &RangeHandle), held: &mut Held<RangeHandle>| {
        range.span()?;
        held.shrink_to(range);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with_held((owner, lock), token, f) }
}

/// Splits off what a token stands for from position `at` on: from now on `rest` stands for that.
///
/// Errors as `spanlock_owner_downgrade`; `rest` is zero then.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_split(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    at: u64,
    rest: *mut Token,
) -> c_int {
    let f = |_: &RangeHandle, held: &mut Held<RangeHandle>| Ok(held.split_off(at));
    // SAFETY: the caller's promise.
    unsafe { split((owner, lock), token, rest, f) }
}

/// Writes to `pieces` what a token stands for, piece by piece, in order, as far as there is room for that many
/// elements. Pieces may touch. `count` gets how many pieces there are.
///
/// Errors as `spanlock_owner_downgrade`.
///
/// # Safety
/// The pointers are null or valid, `pieces` for `room` elements; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_pieces(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    token: *const Token,
    pieces: *mut Want,
    room: usize,
    count: *mut usize,
) -> c_int {
    let f = |_: (&OwnerHandle, &RangeHandle), holding: &mut Held<RangeHandle>| {
        // SAFETY: the caller's promise.
        let count = unsafe { place(count) }?;
        // SAFETY: the caller's promise.
        let pieces = unsafe { places(pieces, room) }?;
        *count = holding.pieces().count();
        for (place, (span, mode)) in pieces.iter_mut().zip(holding.pieces()) {
            *place = Want::of(Asked { span, mode });
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with_held((owner, lock), token, f) }
}

/// Releases all that an owner holds, in all locks: what a transaction does at its end. Its tokens stand for nothing
/// from now on.
///
/// EBUSY: another thread uses one of its tokens, whose ranges stay held. All others are released.
///
/// # Safety
/// The pointer is null or valid; the owner lives, and the locks in which it holds something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_release_all(owner: *mut OwnerHandle) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { OwnerHandle::at(owner) }?.release_all()
    })
}
