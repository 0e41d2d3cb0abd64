//! Who holds ranges of a lock, as data.

use super::types::{Range, mode, mode_number};
use crate::answer::answer;
use crate::copies::Handle;
use crate::memory::{place, places};
use crate::owner_handle::OwnerHandle;
use crate::range_handle::RangeHandle;
use libc::c_int;
use spanlock::range::inspect::Request;
use spanlock::range::{OwnerId, Span};

/// A range that somebody holds.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Holder {
    /// All of what was acquired together, if that is one range.
    pub range: Range,
    /// `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`; zero: nobody holds anything.
    pub mode: u32,
    /// The thread's number, as `ps -L` and debuggers show it; zero: no thread holds it, but an owner.
    pub thread: u32,
    /// The owner's number, as `spanlock_owner_number` tells it; zero if it is a thread. Submitted requests, and calls
    /// of threads for several modes at once, have owners of the library's.
    pub owner: u32,
    /// Zero.
    pub reserved: u32,
}

impl Holder {
    const NOBODY: Self = Self {
        range: Range { start: 0, last: 0 },
        mode: 0,
        thread: 0,
        owner: 0,
        reserved: 0,
    };

    fn of(request: &Request) -> Self {
        Self {
            range: Range::of(request.span),
            mode: mode_number(request.mode),
            thread: request.owner.thread().unwrap_or(0),
            owner: request.owner.owner().unwrap_or(0),
            reserved: 0,
        }
    }
}

/// Writes to `holder` who is in the way of a request, as `F_GETLK` of `fcntl` does: of those who hold some of `range`
/// and conflict with `mode`, the one whose range begins first. Its `mode` is zero if nobody is in the way.
///
/// Who asks is `owner`, or the calling thread if `owner` is null. What that one holds itself is not in its way. (What
/// was acquired by a submitted request, or by a thread in several modes at once, an owner of the library's holds, which
/// is in the thread's way, too.)
///
/// The answer may be out of date at once, and nothing is acquired. It takes as long as listing all holders.
///
/// # Safety
/// The pointers are null or valid; the lock and the owner live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_blocker(
    lock: *mut RangeHandle,
    range: Range,
    mode_wanted: u32,
    owner: *const OwnerHandle,
    holder: *mut Holder,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let holder = unsafe { place(holder) }?;
        *holder = Holder::NOBODY;
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        let mode = mode(mode_wanted)?;
        let who = if owner.is_null() {
            OwnerId::from(prim::thread::id())
        } else {
            // SAFETY: the caller's promise.
            unsafe { OwnerHandle::at(owner) }?.owner.id()
        };
        if let Some(span) = range.span()? {
            let request = Request::new(span, mode, who);
            if let Some(blocker) = handle.lock.snapshot().blocker(&request) {
                *holder = Holder::of(blocker);
            }
        }
        Ok(())
    })
}

/// Writes to `holders` who holds some of `range`, in the order in which their ranges begin, as many as `count` says;
/// `count` may be zero. `needed`, unless null, gets how many there are.
///
/// Who comes or goes meanwhile may be listed or not.
///
/// # Safety
/// The pointers are null or valid, `holders` for `count` elements; the lock lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_holders(
    lock: *mut RangeHandle,
    range: Range,
    holders: *mut Holder,
    count: usize,
    needed: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let holders = unsafe { places(holders, count) }?;
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        let mut there = Vec::new();
        if let Some(span) = range.span()? {
            let overlaps = |held: Span| held.overlaps(span);
            there = handle.lock.snapshot().holders;
            there.retain(|holder| overlaps(holder.span));
        }
        // SAFETY: the caller's promise.
        if let Some(needed) = unsafe { needed.as_mut() } {
            *needed = there.len();
        }
        for (place, holder) in holders.iter_mut().zip(&there) {
            *place = Holder::of(holder);
        }
        Ok(())
    })
}
