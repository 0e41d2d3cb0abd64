//! Owners that are no threads: what they hold is released, cut and converted, and their waits are cancelled.

use super::giving_up::beside_a_holder;
use super::*;
use spanlock::range::{By, Holding, Owner};
use std::ops::RangeBounds;
use std::slice;

/// A range lock whose ranges owners can hold.
pub trait Owned: RawOwned + Shared {}
impl<L: RawOwned + Shared> Owned for L {}

/// The lock of a world.
pub struct LockOf<L>(Arc<World<L>>);

impl<L> Deref for LockOf<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.0.lock
    }
}

pub(super) type Lock<L> = Arc<RangeLock<Lent<LockOf<L>>>>;

/// What an owner holds of a world, and the world.
pub(super) struct Held<L: Owned> {
    pub(super) world: Arc<World<L>>,
    pub(super) holding: Holding<Lock<L>>,
}

impl<L: Owned> Held<L> {
    /// Reads what is shared, and changes what is held alone.
    fn touch(&self) {
        for (span, mode) in self.holding.pieces() {
            let range = span.start()..span.last() + 1;
            self.world.touch(slice::from_ref(&range), mode);
        }
    }

    /// What is in a slot that is held.
    fn slot(&self, at: usize) -> u64 {
        // SAFETY: the slot is held; loom checks.
        self.world.slots[at].with(|slot| unsafe { *slot })
    }

    pub(super) fn done(self) {
        self.touch();
    }
}

/// The lock as an owner sees it.
pub(super) fn by<'a, L: Owned>(world: &Arc<World<L>>, owner: &'a Owner) -> By<'a, Lock<L>> {
    let lock = RangeLock::from_raw(Lent(LockOf(Arc::clone(world))));
    Arc::new(lock).by_arc(owner)
}

fn held<L: Owned>(
    world: &Arc<World<L>>,
    range: impl RangeBounds<u64>,
    mode: Mode,
) -> Result<Held<L>, Refusal> {
    let holding = by(world, &Owner::new()).lock(range, mode)?;
    let world = Arc::clone(world);
    Ok(Held { world, holding })
}

fn owned<L: Owned>(world: &Arc<World<L>>, range: Range<u64>, mode: Mode) -> Held<L> {
    held(world, range, mode).expect("nobody cancels it")
}

/// Another thread releases what an owner has locked, beside a thread that wants it.
pub fn another_thread_releases<L: Owned>(world: &Arc<World<L>>) {
    let mine = owned(world, 0..2, Mode::Exclusive);
    mine.touch();
    let releases = act(move |_: &Arc<World<L>>| mine.done());
    world.meet([releases, write(1..3)]);
    world.is_free();
}

/// The same, where the thread that releases uses what it has taken over for a range of its own.
pub fn another_thread_releases_and_locks<L: Owned>(world: &Arc<World<L>>) {
    let mine = owned(world, 0..2, Mode::Exclusive);
    mine.touch();
    let locks = act(move |world: &Arc<World<L>>| {
        mine.done();
        owned(world, 2..3, Mode::Exclusive).done();
    });
    world.meet([locks, write(1..3)]);
    world.is_free();
}

/// What an owner holds is released beside another owner, which may get the place where it was held, and a thread.
pub fn what_was_lent_is_lent_again<L: Owned>(world: &Arc<World<L>>) {
    let other = world.start([act(|world: &Arc<World<L>>| {
        owned(world, 2..3, Mode::Exclusive).done();
    })]);
    owned(world, 0..1, Mode::Exclusive).done();
    world.write(2..3).done();
    other.join();
    world.is_free();
}

/// Another thread releases, while the one that has locked it for an owner locks more for another one.
pub fn another_thread_releases_beside_the_first<L: Owned>(world: &Arc<World<L>>) {
    let mine = owned(world, 0..1, Mode::Exclusive);
    let other = world.start([act(move |world: &Arc<World<L>>| {
        mine.done();
        world.write(2..3).done();
    })]);
    owned(world, 2..3, Mode::Exclusive).done();
    other.join();
    world.is_free();
}

/// A part is released beside a writer of it, and one of a part that is kept.
pub fn a_part_is_released<L: Owned>(world: &Arc<World<L>>) {
    let mut mine = owned(world, 0..4, Mode::Exclusive);
    let others = world.start([write(1..2), write(2..3)]);
    mine.touch();
    mine.holding.release(1..2);
    mine.touch();
    mine.done();
    others.join();
    world.is_free();
}

/// A part of a shared range is released beside a writer of a part that is kept.
pub fn a_part_that_is_shared_is_released<L: Owned>(world: &Arc<World<L>>) {
    let mut mine = owned(world, 0..4, Mode::Shared);
    let other = world.start([write(2..4)]);
    mine.holding.release(1..2);
    mine.done();
    other.join();
    world.is_free();
}

/// The first part is kept, and is where a search for the last part may begin.
pub fn a_writer_begins_behind_a_piece<L: Owned>(world: &Arc<World<L>>) {
    let mut mine = owned(world, 0..4, Mode::Exclusive);
    let other = world.start([try_write(3..4)]);
    let before = mine.slot(3);
    mine.holding.release(1..2);
    assert_eq!(mine.slot(3), before, "a writer came between");
    mine.done();
    other.join();
    world.is_free();
}

/// A part is shared, and a reader comes in while the rest is held.
pub fn a_part_is_shared<L: Owned>(world: &Arc<World<L>>) {
    let mut mine = owned(world, 0..3, Mode::Exclusive);
    mine.touch();
    let reader = world.start([read(1..2)]);
    mine.holding
        .convert(1..2, Mode::Shared)
        .expect("nobody cancels it");
    // Joined while the rest is held.
    reader.join();
    mine.done();
    world.is_free();
}

/// An owner that shares a range wants it alone, beside a reader.
pub fn an_upgrade_beside_a_reader<L: Owned>(world: &Arc<World<L>>) {
    upgrade_beside(world, read(0..1));
}

/// The same, beside a writer that waits, or comes first.
pub fn an_upgrade_beside_a_writer<L: Owned>(world: &Arc<World<L>>) {
    upgrade_beside(world, write(1..3));
}

fn upgrade_beside<L: Owned>(world: &Arc<World<L>>, other: Act<L>) {
    let other = world.start([other]);
    let mut mine = owned(world, 0..2, Mode::Shared);
    mine.touch();
    mine.holding.upgrade().expect("no other owner upgrades");
    mine.done();
    other.join();
    world.is_free();
}

/// Two owners that share a range want it alone. If both have it, one is refused, and releases what it shares.
pub fn two_upgrades<L: Owned>(world: &Arc<World<L>>) {
    let upgrade = |mut mine: Held<L>| {
        let outcome = mine.holding.upgrade();
        assert!(matches!(outcome, Ok(()) | Err(Refusal::OtherUpgrade)));
        mine.touch();
    };
    let (mine, other) = (
        owned(world, 0..1, Mode::Shared),
        owned(world, 0..1, Mode::Shared),
    );
    let other = world.start([act(move |_: &Arc<World<L>>| upgrade(other))]);
    upgrade(mine);
    other.join();
    world.is_free();
}

/// An owner waits for what is held until it is cancelled, and a writer behind it goes on.
pub fn a_wait_is_cancelled<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let owner = Owner::new();
    let waits = {
        let owner = owner.clone();
        act(move |world: &Arc<World<L>>| {
            let refused = by(world, &owner).write(0..2).map(drop);
            assert_eq!(refused, Err(Refusal::Cancelled));
        })
    };
    let waits = world.start([waits]);
    owner.cancel();
    // Joined while the range is held.
    waits.join();
    mine.done();
    world.is_free();
}

/// A wait is cancelled while its range is released. A writer behind it is not forgotten.
pub fn a_cancellation_beside_a_grant<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let owner = Owner::new();
    let waits = {
        let owner = owner.clone();
        act(move |world: &Arc<World<L>>| {
            let outcome = by(world, &owner).write(0..1).map(drop);
            assert!(matches!(outcome, Ok(()) | Err(Refusal::Cancelled)));
        })
    };
    let others = world.start([waits, write(0..1)]);
    mine.done();
    owner.cancel();
    others.join();
    world.is_free();
}

/// An owner locks again what it holds, and unlocks it, beside a writer of some of it.
pub fn what_is_locked_again_beside_a_writer<L: Owned>(world: &Arc<World<L>>) {
    let owner = Owner::new();
    let mut mine = by(world, &owner).reentrant();
    mine.lock(0..2, Mode::Exclusive).expect("nobody cancels it");
    let other = world.start([write(1..3)]);
    world.touch(slice::from_ref(&(0..2)), Mode::Exclusive);
    mine.lock(1..2, Mode::Shared).expect("it is held");
    mine.unlock(0..2, Mode::Exclusive);
    world.touch(slice::from_ref(&(1..2)), Mode::Shared);
    mine.unlock(1..2, Mode::Shared);
    other.join();
    world.is_free();
}

/// The only one that shares a range gets it alone, beside tries that it refuses.
pub fn an_upgrade_beside_refused_tries<L: Owned>(world: &Arc<World<L>>) {
    let mut mine = owned(world, 0..1, Mode::Shared);
    let other = world.start([act(|world: &Arc<World<L>>| {
        is_refused(0..3)(world);
        assert!(by(world, &Owner::new()).try_write(0..3).is_err());
    })]);
    let upgraded = mine.holding.try_convert(0..1, Mode::Exclusive);
    upgraded.expect("nobody else holds it");
    other.join();
    mine.done();
    world.is_free();
}

/// An owner's try that is refused for as long as it lasts refuses nobody.
pub fn an_owner_s_refused_try_refuses_nobody<L: Owned>(world: &Arc<World<L>>) {
    beside_a_holder(world, |world| {
        assert!(by(world, &Owner::new()).try_write(0..3).is_err());
    });
}

/// The same of an owner that asks for more on both sides of what it holds.
pub fn a_refused_extension_refuses_nobody<L: Owned>(world: &Arc<World<L>>) {
    beside_a_holder(world, |world| {
        let mut mine = owned(world, 1..2, Mode::Exclusive);
        assert!(mine.holding.try_extend(0..3).is_err());
        mine.done();
    });
}
