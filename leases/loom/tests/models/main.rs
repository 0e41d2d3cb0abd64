//! Models of the blocks of a cache, run by loom under every schedule up to a bound on preemptions: they are found,
//! given up, lost and handed over. `mutants.rs` weakens each named edge, and expects the model named with it to fail.
//!
//! Machines share their blocks by a lock of few steps, [`Few`], so that loom explores the steps of the blocks and not
//! those of the lock, which has its own models. The first scenarios run on the library's lock as well, with fewer
//! preemptions.

mod handing_over;
mod mutants;
mod slots;
mod world;

use prim::atomic::{AtomicBool, Ordering};
use spanlock::range::RangeLock;
use spanlock::range::raw::Mode;
use spanlock_testkit_loom::{locks, models};
use std::sync::Arc;
use world::{Few, Inside, World};

/// A holder beside one who gives up the block, which is in a slot.
fn a_holder_beside_a_giving_up<L: Inside>(world: &Arc<World<L>>) {
    world.bring(0, 0..2);
    assert!(world.write(0..1));
    let other = world.spawn(|world| _ = world.write(0..1));
    assert!(world.give_up(0));
    other.join().expect("loom reports panics itself");
    assert!(!world.write(0..1), "it is found afterwards");
}

/// A holder puts the block into the slot while another one gives it up, and comes again.
fn a_block_is_found_anew_beside_a_giving_up<L: Inside>(world: &Arc<World<L>>) {
    world.bring(0, 0..2);
    let other = world.spawn(|world| {
        let found = [world.write(0..1), world.write(0..1)];
        assert_ne!(found, [false, true], "it comes back");
    });
    assert!(world.give_up(0));
    other.join().expect("loom reports panics itself");
}

/// Two holders of shared positions, and one who gives up.
fn two_readers_beside_a_giving_up<L: Inside>(world: &Arc<World<L>>) {
    world.bring(0, 0..2);
    let readers = [0..2, 1..2].map(|range| world.spawn(|world| _ = world.hit(range, Mode::Shared)));
    assert!(world.give_up(0));
    for reader in readers {
        reader.join().expect("loom reports panics itself");
    }
}

/// Two give up one block, beside a holder: one of them gets the token, and not before the holder has ended.
fn two_give_up<L: Inside>(world: &Arc<World<L>>) {
    world.bring(0, 0..2);
    let other = world.spawn(|world| world.give_up(0));
    let holder = world.spawn(|world| _ = world.write(1..2));
    let mine = world.give_up(0);
    holder.join().expect("loom reports panics itself");
    let others = other.join().expect("loom reports panics itself");
    assert!(mine != others, "one of them");
}

/// A giving-up is dropped where it waits. What the holder has stays, and who gives up all finds the block.
fn a_giving_up_is_dropped<L: Inside>(world: &Arc<World<L>>) {
    world.bring(0, 0..2);
    let holder = world.spawn(|world| _ = world.write(0..1));
    world.begin_to_give_up(0);
    assert!(!world.write(1..2), "a newcomer finds it");
    world.give_up_all();
    assert!(world.resource.is_released(0), "nobody gives it up");
    holder.join().expect("loom reports panics itself");
}

/// A giving-up is dropped where it waits, and nobody else gives the block up. What the holder has stays until it has
/// ended.
fn a_holder_after_a_dropped_giving_up<L: Inside>(world: &Arc<World<L>>) {
    world.bring(0, 0..2);
    let holder = world.spawn(|world| _ = world.write(0..1));
    world.begin_to_give_up(0);
    holder.join().expect("loom reports panics itself");
}

/// A lease is lost beside one who begins. Whoever was told begins nothing under it.
fn a_lost_lease<L: Inside>(world: &Arc<World<L>>) {
    let gate = world.bring(0, 0..2);
    assert!(world.write(0..1));
    let told = Arc::new(AtomicBool::new(false));
    let tells = Arc::clone(&told);
    let keeper = world.spawn(move |_| gate.close(|| tells.store(true, Ordering::Release)));
    let was_told = told.load(Ordering::Acquire);
    let began = world.write(0..1);
    assert!(
        !(was_told && began),
        "work begins under a lease that is lost"
    );
    keeper.join().expect("loom reports panics itself");
    assert!(!world.write(0..1), "work begins under a lease that is lost");
    assert!(world.give_up(0));
}

locks! {
    few: Few = Few::new();
    lock: Arc<RangeLock> = Arc::default();
}

models! {
    a_holder_beside_a_giving_up: 3 on few, 2 on lock;
    a_block_is_found_anew_beside_a_giving_up: 4 on few, 2 on lock;
    two_readers_beside_a_giving_up: 3 on few;
    two_give_up: 3 on few;
    a_giving_up_is_dropped: all on few, 2 on lock;
    a_holder_after_a_dropped_giving_up: all on few, 2 on lock;
    a_lost_lease: all on few;
}
