//! Two blocks of one slot: all positions of a model have the same.

use crate::world::{Few, World};
use prim::Model;

/// Both are found in turns, so the slot changes while it is read. Who holds a range finds the block that covers it.
#[test]
fn two_blocks_of_one_slot() {
    Model::new(Some(3)).check(|| {
        let world = World::new(Few::new());
        world.bring(0, 0..2);
        world.bring(1, 2..4);
        assert!(world.write(0..1));
        let other = world.spawn(|world| assert!(world.write(2..3)));
        assert!(world.write(1..2));
        other.join().expect("loom reports panics itself");
    });
}

/// One of them is given up while the other one comes into its slot.
#[test]
fn one_of_two_is_given_up() {
    Model::new(Some(3)).check(|| {
        let world = World::new(Few::new());
        world.bring(0, 0..2);
        world.bring(1, 2..4);
        assert!(world.write(0..1));
        let other = world.spawn(|world| assert!(world.write(2..3)));
        assert!(world.give_up(0));
        assert!(!world.write(0..1));
        other.join().expect("loom reports panics itself");
        assert!(world.write(3..4));
    });
}
