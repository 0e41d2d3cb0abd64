//! Who gives way to a request that has waited too long, and for how long. Each scenario, for each lock that is fair.
//!
//! Time hardly passes on loom, so a claim once granted stays in force; but whoever sleeps for a limited time may wake at
//! any moment, and then goes on.

use crate::world::{World, rw};
use prim::clock::Duration;
use prim::model;
use spanlock_loom::range::list::{FastPath, Preference};
use spanlock_loom::range::raw::{RawRangeLock, Wait};
use spanlock_loom::range::segment::{Fairness, SrlArray};
use std::sync::Arc;

/// Every request that sleeps has a claim at once.
const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

/// Makes each scenario a model of each lock.
macro_rules! for_each_fair_lock {
    ($($scenario:ident)+) => {
        for_each_fair_lock!(@list (rw().fairness(AT_ONCE).build()): $($scenario)+);
        for_each_fair_lock!(@writers_first (rw().preference(Preference::Writers).build()): $($scenario)+);
        for_each_fair_lock!(@slow_path (rw().fairness(AT_ONCE).fast_path(FastPath::Off).build()): $($scenario)+);
        for_each_fair_lock!(@segments (SrlArray::builder().segments(4).fairness(AT_ONCE).build()): $($scenario)+);
    };
    (@$name:ident ($make:expr): $($scenario:ident)+) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $scenario() {
                    model(Some(2), || super::$scenario(&World::new($make)));
                }
            )+
        }
    };
}

for_each_fair_lock!(
    a_holder_joins_a_worker
    a_holder_joins_a_worker_that_sleeps
    a_holder_does_not_give_way_to_who_waits_for_it
    a_holder_elsewhere_gives_way
    newcomers_give_way_and_are_not_forgotten
);

/// A lock with readers that threads can share.
trait Lock: RawRangeLock + Send + Sync + 'static {}
impl<L: RawRangeLock + Send + Sync + 'static> Lock for L {}

/// A holder waits for a thread that holds nothing, and that asks for a free part of what another waits for: that one
/// waits for the holder. Giving way for ever would close the circle.
fn a_holder_joins_a_worker<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let wide = world.spawn(|world| world.write(0..2).done());
    world.until_asleep(1);
    let worker = world.spawn(|world| world.write(1..2).done());
    worker.join().unwrap();
    drop(mine);
    wide.join().unwrap();
}

/// The same, where the worker slept behind a holder before, and is woken when that one leaves.
fn a_holder_joins_a_worker_that_sleeps<L: Lock>(world: &Arc<World<L>>) {
    let far = world.write(1..2);
    let worker = world.spawn(|world| world.write(1..2).done());
    world.until_asleep(1);
    let again = Arc::clone(world);
    let holder = world.spawn(move |world| {
        let mine = world.write(0..1);
        let wide = again.spawn(|world| world.write(0..2).done());
        worker.join().unwrap();
        drop(mine);
        wide.join().unwrap();
    });
    drop(far);
    holder.join().unwrap();
}

/// A holder asks for more while a request with a claim to that waits for what it holds: it is granted at once.
fn a_holder_does_not_give_way_to_who_waits_for_it<L: Lock>(world: &Arc<World<L>>) {
    let first = world.write(0..1);
    let waiter = world.spawn(|world| world.write(0..2).done());
    world.until_asleep(1);
    let second = world.write_within(1..2, Wait::Never);
    second.expect("nobody holds it").done();
    drop(first);
    waiter.join().unwrap();
}

/// Who holds something that the request with a claim does not wait for gives way like others, and goes on in the end.
fn a_holder_elsewhere_gives_way<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.read(0..1);
    let writer = world.spawn(|world| world.write(0..2).done());
    world.until_asleep(1);
    let reader = world.spawn(|world| {
        let elsewhere = world.write(3..4);
        assert!(
            world.read_within(0..1, Wait::Never).is_none(),
            "a reader overtook"
        );
        world.read(0..1).done();
        drop(elsewhere);
    });
    reader.join().unwrap();
    drop(mine);
    writer.join().unwrap();
}

/// Readers that come later are refused, or wait, and get their turn.
fn newcomers_give_way_and_are_not_forgotten<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.read(0..1);
    let writer = world.spawn(|world| world.write(0..2).done());
    world.until_asleep(1);
    let early = world.spawn(|world| world.read_within(0..1, Wait::Never).is_some());
    assert!(!early.join().unwrap(), "a reader overtook");
    let reader = world.spawn(|world| world.read(0..1).done());
    drop(mine);
    writer.join().unwrap();
    reader.join().unwrap();
}
