//! What only segment locks do: ranges share words, a tree grows, and a sleeper may have to age where it sleeps.

use crate::locks::*;
use prim::atomic::{AtomicBool, Ordering};
use prim::thread;
use spanlock_loom::range::raw::Wait;
use spanlock_loom::range::segment::{SrlArray, SrlTree};
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;
use std::sync::Arc;

/// The positions of two writers are disjoint, their segments are not.
fn two_writers_in_one_segment(world: &Arc<World<SrlArray>>) {
    world.meet([write(1..3), write(3..4)]);
}

/// A reader and a writer both make the nodes that they find missing, and a later writer finds them all.
fn a_reader_and_a_writer_race_to_grow(world: &Arc<World<SrlTree>>) {
    world.meet([read(0..3), write(2..4)]);
    world.write(0..8).done();
}

/// A writer that gave way to a reader sleeps behind the segment when the reader has it. There, too, it ages, though it
/// has not waited for the segment before.
fn a_writer_that_gave_way_ages(world: &Arc<World<SrlArray>>) {
    let mine = world.write(0..1);
    let was_in = Arc::new(AtomicBool::new(false));
    let is_in = Arc::clone(&was_in);
    let first = world.spawn(move |world| {
        let hold = world.read(0..1);
        // Until the writer has its reservation, or was faster, there is always a reader inside.
        world.run([act(move |world: &Arc<World<SrlArray>>| {
            while world.read_within(0..1, Wait::Never).is_some() && !was_in.load(Ordering::Relaxed)
            {
                thread::yield_now();
            }
        })]);
        hold.done();
    });
    world.until_asleep(1);
    let writer = world.spawn(move |world| {
        world.write(0..1).done();
        is_in.store(true, Ordering::Relaxed);
    });
    world.until_asleep(2);
    drop(mine);
    first.join().unwrap();
    writer.join().unwrap();
}

models! {
    two_writers_in_one_segment: 3 on segments_of_two;
    a_reader_and_a_writer_race_to_grow: 2 on tree;
    a_writer_that_gave_way_ages: 2 on segments;
}
