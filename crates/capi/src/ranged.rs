//! What owners do with locks, one over positions or one over keys.

use crate::answer::{Answer, Refused, answer, ensure, given_up};
use crate::copies::Handle;
use crate::exports::types::{Token, mode};
use crate::memory::{given, place};
use crate::owner_handle::{Held, OwnerHandle, Tables};
use crate::tables::Table;
use crate::time;
use libc::{ECANCELED, EDEADLK, EINVAL, ENOLCK, c_int};
use spanlock::range::raw::{Mode, Wait};
use spanlock::range::{By, Owner, Place, Refusal, SharedPlace};
use std::ops::RangeBounds;

/// A lock of which owners hold ranges.
pub(crate) trait Ranged: Handle + 'static {
    /// What its ranges are of.
    type Key: ?Sized;

    /// A piece of what is held.
    type Piece;

    /// Where what is held finds the lock. `'static` stands for the life of the lock, which lives as long as some of it
    /// is held.
    type Place: SharedPlace + Place<Key = Self::Key, Piece = Self::Piece> + Copy;

    /// A range, as a program passes it.
    type Given: Copy;

    /// A range, as the library takes it.
    type Asked<'a>: RangeBounds<Self::Key> + Copy;

    /// The range that a program means. `EINVAL` if it is null or reversed.
    ///
    /// # Safety
    /// It is null or valid, and so is what it leads to, for `'a`.
    unsafe fn asked<'a>(&self, range: Self::Given) -> Answer<Self::Asked<'a>>;

    /// The lock, as an owner sees it.
    ///
    /// # Safety
    /// What is acquired by the result is released, or forgotten, before the lock ends. (While it is held, a program
    /// cannot end the lock.)
    unsafe fn by<'o>(&self, owner: &'o Owner) -> By<'o, Self::Place>;

    /// Where an owner keeps what it holds of such locks.
    fn table(tables: &mut Tables) -> &mut Table<Held<Self>>;

    /// Whether the two have something in common.
    fn overlaps(&self, held: &Self::Piece, asked: Self::Asked<'_>) -> bool;

    /// Whether the running thread itself holds something in the way of a request.
    fn thread_is_in_its_way(&self, asked: Self::Asked<'_>, mode: Mode) -> bool;
}

/// The error of a refused request.
fn refused(refusal: Refusal, wait: Wait) -> Refused {
    match refusal {
        Refusal::Cancelled => Refused::by(ECANCELED),
        Refusal::TooMany => Refused::by(ENOLCK),
        Refusal::OtherUpgrade | Refusal::Deadlock => Refused::by(EDEADLK),
        _ => given_up(wait),
    }
}

/// Whether the owner or the running thread itself holds something in the way of a request, which would wait for ever.
#[cold] // The request has been refused once.
fn is_in_its_own_way<L: Ranged>(
    (owner, lock): (&OwnerHandle, &L),
    &(asked, mode): &(L::Asked<'_>, Mode),
) -> bool {
    let is_in_the_way = |held: &Held<L>| {
        let mut pieces = held.pieces();
        pieces.any(|(piece, held)| held.conflicts(mode) && lock.overlaps(&piece, asked))
    };
    owner.has_one(lock, is_in_the_way) || lock.thread_is_in_its_way(asked, mode)
}

/// Asks by `ask`, at first without waiting. EDEADLK, if it would wait for what the owner or the thread holds itself.
pub(crate) fn granted<L: Ranged, T>(
    at: (&OwnerHandle, &L),
    asked: &[(L::Asked<'_>, Mode)],
    wait: Wait,
    mut ask: impl FnMut(Wait) -> Result<T, Refusal>,
) -> Answer<T> {
    let mut result = ask(Wait::Never);
    if matches!(result, Err(Refusal::Busy)) && wait != Wait::Never {
        let waits_for_itself = asked.iter().any(|asked| is_in_its_own_way(at, asked));
        ensure(!waits_for_itself, EDEADLK)?;
        result = ask(wait);
    }
    result.map_err(|refusal| refused(refusal, wait))
}

/// Acquires for an owner, by `get`, and notes that by a token.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
pub(crate) unsafe fn acquire<L: Ranged>(
    (owner, lock): (*mut OwnerHandle, *mut L),
    token: *mut Token,
    get: impl FnOnce((&OwnerHandle, &L), By<'_, L::Place>) -> Answer<Held<L>>,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        *token = Token::NONE;
        // SAFETY: the caller's promise.
        let owner = unsafe { OwnerHandle::at(owner) }?;
        // SAFETY: the caller's promise.
        let lock = unsafe { L::at(lock) }?;
        // SAFETY: it is released by its token, or forgotten with the owner: what is held holds the lock's end up.
        let by = unsafe { lock.by(&owner.owner) };
        *token = owner.note(lock, get((owner, lock), by)?);
        Ok(())
    })
}

/// Acquires one range for an owner.
///
/// # Safety
/// The pointers are null or valid, also those in the range; the owner and the lock live.
pub(crate) unsafe fn acquire_one<L: Ranged>(
    at: (*mut OwnerHandle, *mut L),
    (range, mode_number): (L::Given, u32),
    wait: impl FnOnce() -> Answer<Wait>,
    token: *mut Token,
) -> c_int {
    let get = |at: (&OwnerHandle, &L), by: By<'_, L::Place>| {
        // SAFETY: the caller's promise.
        let range = unsafe { at.1.asked(range) }?;
        let (mode, wait) = (mode(mode_number)?, wait()?);
        granted(at, &[(range, mode)], wait, |wait| match wait {
            Wait::Forever => by.lock(range, mode),
            Wait::Never => by.try_lock(range, mode),
            Wait::Until(deadline) => by.try_lock_until(range, mode, deadline),
        })
    };
    // SAFETY: the caller's promise.
    unsafe { acquire(at, token, get) }
}

/// Calls `f` with what a token of an owner stands for.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
pub(crate) unsafe fn with_held<L: Ranged>(
    (owner, lock): (*mut OwnerHandle, *mut L),
    token: *const Token,
    f: impl FnOnce((&OwnerHandle, &L), &mut Held<L>) -> Answer,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let owner = unsafe { OwnerHandle::at(owner) }?;
        // SAFETY: the caller's promise.
        let lock = unsafe { L::at(lock) }?;
        // SAFETY: the caller's promise.
        let token = *unsafe { given(token) }?;
        owner.with(lock, token, |held| f((owner, lock), held))
    })
}

/// Converts a part of what a token stands for.
///
/// # Safety
/// The pointers are null or valid, also those in the range; the owner and the lock live.
pub(crate) unsafe fn convert<L: Ranged>(
    at: (*mut OwnerHandle, *mut L),
    token: *const Token,
    (range, mode_number): (L::Given, u32),
    wait: impl FnOnce() -> Answer<Wait>,
) -> c_int {
    let f = |at: (&OwnerHandle, &L), held: &mut Held<L>| {
        // SAFETY: the caller's promise.
        let range = unsafe { at.1.asked(range) }?;
        let (mode, wait) = (mode(mode_number)?, wait()?);
        granted(at, &[(range, mode)], wait, |wait| match wait {
            Wait::Forever => held.convert(range, mode),
            Wait::Never => held.try_convert(range, mode),
            Wait::Until(deadline) => held.try_convert_for(range, mode, time::left(deadline)),
        })
    };
    // SAFETY: the caller's promise.
    unsafe { with_held(at, token, f) }
}

/// Releases what a token stands for, and makes the token none.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
pub(crate) unsafe fn release<L: Ranged>(
    (owner, lock): (*mut OwnerHandle, *mut L),
    token: *mut Token,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let owner = unsafe { OwnerHandle::at(owner) }?;
        // SAFETY: the caller's promise.
        let lock = unsafe { L::at(lock) }?;
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        drop(owner.forget(lock, *token)?);
        *token = Token::NONE;
        Ok(())
    })
}

/// Releases a range of what a token stands for.
///
/// # Safety
/// The pointers are null or valid, also those in the range; the owner and the lock live.
pub(crate) unsafe fn release_part<L: Ranged>(
    at: (*mut OwnerHandle, *mut L),
    token: *const Token,
    range: L::Given,
) -> c_int {
    let f = |(_, lock): (&OwnerHandle, &L), held: &mut Held<L>| {
        // SAFETY: the caller's promise.
        held.release(unsafe { lock.asked(range) }?);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with_held(at, token, f) }
}

/// Splits off a part of what a token stands for, by `f`. `rest` gets the token of that.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
pub(crate) unsafe fn split<L: Ranged>(
    at: (*mut OwnerHandle, *mut L),
    token: *const Token,
    rest: *mut Token,
    f: impl FnOnce(&L, &mut Held<L>) -> Answer<Held<L>>,
) -> c_int {
    let mut split = Token::NONE;
    let note = |(owner, lock): (&OwnerHandle, &L), held: &mut Held<L>| {
        split = owner.note(lock, f(lock, held)?);
        Ok(())
    };
    // SAFETY: the caller's promise.
    let Some(rest) = (unsafe { rest.as_mut() }) else {
        return EINVAL;
    };
    // SAFETY: the caller's promise.
    let error = unsafe { with_held(at, token, note) };
    *rest = split;
    error
}
