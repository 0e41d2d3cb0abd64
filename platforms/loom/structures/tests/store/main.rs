//! Models of files in a store, run by loom under every schedule up to a bound on preemptions.
//!
//! A log page has two slots here, and a node of the index two items, so that few writes reach every path. The medium
//! reports what is read and written, so loom finds each race for a page or a slot. `mutants.rs` weakens each edge of
//! memory ordering, and expects the model named with it to fail. The edges of crashes have their mutants in
//! `spanlock-structures-sim`.
#![cfg(target_os = "linux")]

mod mutants;
mod world;

use prim::Model;
use spanlock_structures_loom::store::{Durability, Durable, PAGE};
use world::*;

fn check(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    Model::new(Some(preemptions)).check(f);
}

/// Two writers fill log pages: each adds one, prepares one, and writes in one that the other has added.
#[test]
fn two_writers_and_new_log_pages() {
    check(2, || {
        let world = World::written(&[0, 1]);
        let other = world.spawn(|world| {
            world.write(0, 11);
            world.write(0, 12);
        });
        world.write(1, 21);
        world.write(1, 22);
        other.join().unwrap();
        world.is(&[12, 22]);
    });
}

/// A reader beside a writer that replaces its page twice: the second time, in the page that was free after the first.
#[test]
fn a_reader_beside_a_writer() {
    check(3, || {
        let world = World::written(&[0]);
        let other = world.spawn(|world| {
            world.write(0, 11);
            world.write(0, 12);
        });
        let seen = [world.read(0), world.read(0)];
        assert!(seen[0] <= seen[1], "{seen:?}");
        other.join().unwrap();
        world.is(&[12]);
    });
}

/// Two writers make the same nodes of the index, beside a hole that is read.
#[test]
fn the_index_grows() {
    check(2, || {
        let world = World::written(&[7]);
        let other = world.spawn(|world| world.write(2, 11));
        world.write(3, 21);
        assert!([0, 11].contains(&world.read(2)));
        other.join().unwrap();
        world.is(&[0, 0, 11, 21, 0, 0, 0, 8]);
    });
}

/// The log is rewritten beside a writer, whose entry is in the part that is rewritten or behind it.
#[test]
fn a_rewriting_beside_a_writer() {
    check(2, || {
        let world = World::written(&[0, 1, 0, 1, 0]);
        let other = world.spawn(|world| world.write(0, 11));
        world.write(1, 21);
        other.join().unwrap();
        world.is(&[11, 21]);
    });
}

/// A truncation beside a writer of the page that it cuts off.
#[test]
fn a_truncation_beside_a_writer() {
    check(3, || {
        let world = World::written(&[0, 1]);
        let other = world.spawn(|world| world.file.truncate(PAGE as u64).expect("room"));
        world.write(1, 21);
        other.join().unwrap();
        match world.file.stat().expect("known").size == PAGE as u64 {
            true => world.is(&[1]),
            false => world.is(&[1, 21]),
        }
    });
}

/// Pages are counted beside one who adds a page and then cuts all off: no page is subtracted that is not added.
#[test]
fn a_count_beside_a_truncation() {
    check(2, || {
        let world = World::written(&[0]);
        let other = world.spawn(|world| {
            world.write(1, 11);
            world.file.truncate(0).expect("room");
        });
        let pages = world.file.stat().expect("known").pages;
        assert!(pages <= 2, "{pages}");
        other.join().unwrap();
        assert_eq!(world.file.stat().expect("known").pages, 0);
    });
}

/// Two writers extend a file. Its size is the larger end, and its time the later one.
#[test]
fn two_writers_extend() {
    check(3, || {
        let world = World::written(&[0]);
        let other = world.spawn(|world| world.write(1, 11));
        world.write(2, 21);
        other.join().unwrap();
        world.is(&[1, 11, 21]);
    });
}

/// Attributes are set beside a writer, whose time of writing stays.
#[test]
fn attributes_beside_a_writer() {
    check(2, || {
        let world = World::written(&[0]);
        let before = world.modified();
        let other = world.spawn(|world| world.write(0, 11));
        world.set_mode(0o400);
        other.join().unwrap();
        assert!(world.modified() > before, "the write has left no time");
    });
}

/// Two appends are one behind the other.
#[test]
fn two_appends() {
    check(3, || {
        let world = World::written(&[]);
        let append = |world: &World, byte| world.file.append(&[byte; PAGE]).expect("room");
        let other = world.spawn(move |world| append(world, 11));
        let mine = append(&world, 21);
        match (mine, other.join().unwrap()) {
            (0, 4096) => world.is(&[21, 11]),
            (4096, 0) => world.is(&[11, 21]),
            places => panic!("{places:?}"),
        }
    });
}

/// Writers share syncs: when one returns, a sync has seen its entry.
#[test]
fn a_sync_for_two() {
    check(2, || {
        let world = World::on(Durable::AtSync, Durability::Sync);
        let before = world.entries().0;
        let other = world.spawn(|world| world.write(1, 11));
        world.write(0, 21);
        other.join().unwrap();
        assert_eq!(
            world.entries(),
            (before + 2, before + 2),
            "not all are durable"
        );
    });
}

/// Pages that are replaced come back, to the stocks of both threads.
#[test]
fn pages_come_back() {
    check(2, || {
        let world = World::written(&[0, 1]);
        let before = world.free_pages();
        let other = world.spawn(|world| world.write(0, 11));
        world.write(1, 21);
        other.join().unwrap();
        // A page that is prepared for the log; and one for that of the other's group, if it begins, and its next.
        assert!(matches!(before - world.free_pages(), 1 | 3));
    });
}
