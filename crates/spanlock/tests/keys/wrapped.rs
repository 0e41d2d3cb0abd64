//! Locks over keys in what limits them, and what an owner locks again and again there.

use super::pool::block_on;
use spanlock::range::keys::{Compare, KeyRangeLock, between, point};
use spanlock::range::raw::Mode::{self, Exclusive, Shared};
use spanlock::range::{Owner, Refusal};
use std::future::Future;
use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(2);

#[test]
fn owners_are_limited_and_threads_are_not() {
    let lock = KeyRangeLock::<str>::new().limited(2);
    let owner = Owner::new();
    let mut held = lock
        .by(&owner)
        .write(between("a", "m"))
        .expect("it is the first");
    let other = lock.by(&owner).read(point("x")).expect("it is the second");
    assert_eq!(
        lock.by(&owner).read(point("y")).map(drop),
        Err(Refusal::LockFull)
    );
    let refused = block_on(lock.by(&owner).read_async(point("y"))).map(drop);
    assert_eq!(refused, Err(Refusal::LockFull));
    drop(lock.write(point("y")));
    held.release(between("c", "d")); // Pieces count, and are never refused.
    assert_eq!(lock.held_or_awaited(), 3);
    assert!(lock.try_write(point("c")).is_some() && lock.try_read(point("d")).is_none());
    drop((held, other));
    assert_eq!(lock.held_or_awaited(), 0);
    assert!(lock.try_write(..).is_some());
}

const KEYS: usize = 6;
/// The keys, and the gaps between them: there might be a key in each, as far as the lock knows.
const CELLS: usize = 2 * KEYS - 1;

/// How often a cell is locked shared, and alone.
type Counts = [(usize, usize); CELLS];

fn count((shared, alone): &mut (usize, usize), mode: Mode) -> &mut usize {
    match mode {
        Shared => shared,
        Exclusive => alone,
    }
}

fn held_as((shared, alone): (usize, usize)) -> Option<Mode> {
    match (shared, alone) {
        (0, 0) => None,
        (_, 0) => Some(Shared),
        _ => Some(Exclusive),
    }
}

/// Each lock succeeds if, and only if, the other owner holds nothing in the way, and what is held is as counted.
/// `range` is that from one key to another, as the comparator orders them.
fn agrees<C: Compare<u8>, R: RangeBounds<u8>>(
    lock: &KeyRangeLock<u8, C>,
    range: impl Fn(u8, u8) -> R,
) {
    let mut random = fastrand::Rng::with_seed(38);
    for _ in 0..if cfg!(miri) { 2 } else { 300 } {
        let owners = [Owner::new(), Owner::new()];
        let mut all = owners.each_ref().map(|owner| lock.by(owner).reentrant());
        let mut counts: [Counts; 2] = [[(0, 0); CELLS]; 2];
        for _ in 0..30 {
            let (who, first) = (random.usize(..2), random.usize(..KEYS));
            let last = random.usize(first..KEYS);
            let asked = range(first as u8, last as u8);
            let cells = 2 * first..=2 * last;
            let mode = [Shared, Exclusive][random.usize(..2)];
            let mine = counts[who];
            if random.u8(..5) < 3 {
                let in_the_way = |cell: usize| {
                    let (theirs, has) = (held_as(counts[1 - who][cell]), held_as(mine[cell]));
                    let conflicts = theirs.is_some_and(|theirs| theirs.conflicts(mode));
                    // What is held alone already need not be shared.
                    conflicts && has != Some(Exclusive) && has != Some(mode)
                };
                let expected = !cells.clone().any(in_the_way);
                let outcome = match random.bool() {
                    true => all[who].try_lock(asked, mode),
                    false => block_on(all[who].try_lock_async_for(asked, mode, Duration::ZERO)),
                };
                assert_eq!(outcome.is_ok(), expected, "{outcome:?}");
                for cell in cells.filter(|_| expected) {
                    *count(&mut counts[who][cell], mode) += 1;
                }
            } else if cells
                .clone()
                .all(|cell| *count(&mut { mine[cell] }, mode) > 0)
            {
                all[who].unlock(asked, mode);
                for cell in cells {
                    *count(&mut counts[who][cell], mode) -= 1;
                }
            } else {
                let unlocks = AssertUnwindSafe(|| all[who].unlock(asked, mode));
                assert!(
                    catch_unwind(unlocks).is_err(),
                    "it is not locked as a whole"
                );
            }
            for key in 0..KEYS {
                let held = counts.map(|counts| held_as(counts[2 * key]));
                let at = range(key as u8, key as u8);
                let is_free = lock.try_write(at).is_some();
                assert_eq!(is_free, held == [None, None]);
                let at = range(key as u8, key as u8);
                assert_eq!(
                    lock.try_read(at).is_some(),
                    !held.contains(&Some(Exclusive))
                );
            }
        }
        drop(all);
        assert!(lock.try_write(..).is_some());
    }
}

#[test]
fn what_is_locked_again_agrees_with_counts() {
    agrees(&KeyRangeLock::new(), |first, last| first..=last);
    let reversed = KeyRangeLock::ordered_by(|a: &u8, b: &u8| b.cmp(a));
    agrees(&reversed, |first, last| last..=first);
}

#[test]
fn a_task_locks_again_what_its_owner_holds() {
    let lock = Arc::new(KeyRangeLock::<str>::new());
    let owner = Owner::new();
    let mut held = lock.by_arc(&owner).reentrant();
    block_on(held.lock_async(between("a", "m"), Shared)).expect("it is free");
    let reader = lock.read(point("c"));
    let refused = block_on(held.try_lock_async_for(between("b", "d"), Exclusive, SOON));
    assert_eq!(refused, Err(Refusal::Busy));
    let waker = Waker::noop();
    {
        let mut waits = pin!(held.lock_async(between("b", "z"), Exclusive));
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
    }
    assert!(
        lock.try_write(point("x")).is_some(),
        "what it gained is released"
    );
    drop(reader);
    block_on(held.lock_async(between("b", "d"), Exclusive)).expect("it is free");
    assert!(lock.try_read(point("c")).is_none() && lock.try_read(point("d")).is_some());
    held.unlock(between("b", "d"), Exclusive);
    assert!(lock.try_read(point("c")).is_some() && lock.try_write(point("c")).is_none());
    held.unlock(between("a", "m"), Shared);
    assert!(held.holding().is_empty() && owner.asks_or_holds() == 0);
}
