//! Several ranges of a lock, for the running thread.

use super::types::{Asked, Range, Token, mode, mode_number};
use crate::answer::{Answer, answer, ensure, given_up};
use crate::copies::Handle;
use crate::memory::{elements, place};
use crate::range_handle::RangeHandle;
use crate::tables::thread;
use crate::tables::thread_ranges::{Hold, Holds, Many, ManyGuards};
use crate::time;
use libc::{EDEADLK, EINVAL, c_int, timespec};
use spanlock::range::Owner;
use spanlock::range::raw::{Mode, Wait};

/// A range, and how it is wanted.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// The range.
    pub range: Range,
    /// `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`.
    pub mode: u32,
    /// Zero.
    pub reserved: u32,
}

impl Want {
    /// The range and the mode of what is held.
    pub(crate) fn of(held: Asked) -> Self {
        Self {
            range: held.range(),
            mode: mode_number(held.mode),
            reserved: 0,
        }
    }
}

/// What a caller wants, without the ranges that are empty.
///
/// # Safety
/// The pointer is null, or valid for `count` elements.
pub(crate) unsafe fn wanted(wants: *const Want, count: usize) -> Answer<Vec<Asked>> {
    // SAFETY: the caller's promise.
    let wants = unsafe { elements(wants, count) }?;
    let mut asked = Vec::with_capacity(count);
    for want in wants {
        let mode = mode(want.mode)?;
        ensure(want.reserved == 0, EINVAL)?;
        asked.extend(want.range.span()?.map(|span| Asked { span, mode }));
    }
    Ok(asked)
}

/// Acquires several ranges.
///
/// # Safety
/// The pointers are null or valid, `wants` for `count` elements; the lock lives.
unsafe fn acquire(
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    wait: impl FnOnce() -> Answer<Wait>,
    token: *mut Token,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        *token = Token::NONE;
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        // SAFETY: the caller's promise.
        let asked = unsafe { wanted(wants, count) }?;
        let wait = wait()?;
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let holds = unsafe { &mut thread::held().ranges };
        let many = take(handle, holds, asked, wait)?;
        *token = holds.note_other(handle, Hold::Many(Box::new(many)));
        Ok(())
    })
}

/// Acquires several ranges for the running thread.
fn take(handle: &RangeHandle, holds: &Holds, asked: Vec<Asked>, wait: Wait) -> Answer<Many> {
    let mut guards = take_within(handle, &asked, Wait::Never);
    if guards.is_none() && wait != Wait::Never {
        let waits_for_itself = asked.iter().any(|&asked| holds.conflicts(handle, asked));
        ensure(!waits_for_itself, EDEADLK)?;
        guards = take_within(handle, &asked, wait);
    }
    Ok(Many {
        guards: guards.ok_or_else(|| given_up(wait))?,
        asked: asked.into_boxed_slice(),
    })
}

/// Acquires several ranges; `None` if that takes longer than it may.
fn take_within(handle: &RangeHandle, asked: &[Asked], wait: Wait) -> Option<ManyGuards> {
    // SAFETY: the guards are dropped when their token is released, or never: what is held holds the lock's end up.
    let lock = unsafe { handle.lasting() };
    let mode = asked.first().map_or(Mode::Shared, |asked| asked.mode);
    let ranges = || asked.iter().map(|asked| asked.range());
    if asked.iter().any(|asked| asked.mode != mode) {
        let (owner, ranges) = (
            Owner::new(),
            asked.iter().map(|asked| (asked.range(), asked.mode)),
        );
        let by = lock.by(&owner);
        let holding = match wait {
            Wait::Forever => by.lock_many(ranges),
            Wait::Never => by.try_lock_many(ranges),
            Wait::Until(deadline) => by.try_lock_many_for(ranges, time::left(deadline)),
        };
        return holding.ok().map(ManyGuards::Mixed); // Nobody cancels it, so it is busy if not granted.
    }
    Some(match mode {
        Mode::Shared => ManyGuards::Shared(match wait {
            Wait::Forever => lock.read_many(ranges()),
            Wait::Never => lock.try_read_many(ranges())?,
            Wait::Until(deadline) => lock.try_read_many_for(ranges(), time::left(deadline))?,
        }),
        Mode::Exclusive => ManyGuards::Exclusive(match wait {
            Wait::Forever => lock.write_many(ranges()),
            Wait::Never => lock.try_write_many(ranges())?,
            Wait::Until(deadline) => lock.try_write_many_for(ranges(), time::left(deadline))?,
        }),
    })
}

/// Locks several ranges, each in its mode, all or none, with one token for all. Such calls do not deadlock with each
/// other, in whatever order they name their ranges. Ranges that overlap or touch count as one, and of positions that
/// are wanted more than once the stronger mode counts.
///
/// The thread holds them, and is the one to release them. Where the modes differ, listings name an owner in its place.
///
/// EDEADLK: the thread itself holds some of them in the way.
///
/// # Safety
/// The pointers are null or valid, `wants` for `count` elements; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_many(
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, wants, count, || Ok(Wait::Forever), token) }
}

/// As `spanlock_range_lock_many`, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_try_many(
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, wants, count, || Ok(Wait::Never), token) }
}

/// As `spanlock_range_lock_many`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_timed_many(
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    clock: c_int,
    deadline: *const timespec,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, wants, count, wait, token) }
}
