//! The list: insertion, validation, the fast path, downgrade.

use crate::world::{World, ex, rw};
use prim::clock::{Duration, Instant};
use prim::model;
use spanlock_loom::range::list::{Fairness, FastPath, Preference};
use spanlock_loom::range::raw::Wait;

const PATHS: [FastPath; 2] = [FastPath::On, FastPath::Off];
const PREFERENCES: [Preference; 2] = [Preference::Readers, Preference::Writers];

#[test]
fn exclusive_lock_two_overlapping() {
    for path in PATHS {
        model(None, move || {
            let world = World::new(ex().fast_path(path).build());
            let other = world.spawn(|world| world.write(0..2).done());
            world.write(1..3).done();
            other.join().unwrap();
        });
    }
}

#[test]
fn two_writers_overlapping() {
    for path in PATHS {
        model(None, move || {
            let world = World::new(rw().fast_path(path).build());
            let other = world.spawn(|world| world.write(0..2).done());
            world.write(1..3).done();
            other.join().unwrap();
        });
    }
}

#[test]
fn a_reader_and_a_writer() {
    for path in PATHS {
        for preference in PREFERENCES {
            model(None, move || {
                let world = World::new(rw().fast_path(path).preference(preference).build());
                let reader = world.spawn(|world| world.read(0..2).done());
                world.write(1..3).done();
                reader.join().unwrap();
            });
        }
    }
}

/// P1's Figure 1: a node between the places where the reader and the writer are inserted, so that they do not
/// compete for one link.
#[test]
fn figure_one() {
    for preference in PREFERENCES {
        model(Some(3), move || {
            let world = World::new(rw().preference(preference).build());
            let between = world.read(2..3);
            let reader = world.spawn(|world| world.read(1..6).done());
            let writer = world.spawn(|world| world.write(4..5).done());
            drop(between);
            reader.join().unwrap();
            writer.join().unwrap();
        });
    }
}

/// As above, with the separating node there to the end.
#[test]
fn figure_one_with_a_lasting_separator() {
    for preference in PREFERENCES {
        model(Some(3), move || {
            let world = World::new(rw().preference(preference).build());
            let between = world.read(2..3);
            let reader = world.spawn(|world| world.read(1..6).done());
            world.write(4..5).done();
            reader.join().unwrap();
            drop(between);
        });
    }
}

/// As above, and another request is inserted before the reader: the writer's walk leads over it.
#[test]
fn figure_one_with_a_detour() {
    model(Some(4), || {
        let world = World::new(rw().build());
        let between = world.read(2..3);
        let writer = world.spawn(|world| world.write(4..5).done());
        let reader = world.read(1..6);
        let detour = world.read(0..1);
        reader.done();
        detour.done();
        writer.join().unwrap();
        drop(between);
    });
}

/// A writer that fails validation starts over while a third thread unlinks what it left behind.
#[test]
fn a_writer_starts_over_with_a_fresh_node() {
    model(Some(2), || {
        let world = World::new(rw().fairness(Fairness::Unfair).build());
        let between = world.read(2..3);
        let reader = world.spawn(|world| world.read(1..6).done());
        let writer = world.spawn(|world| {
            world.write(4..5).done();
            world.write(4..5).done();
        });
        drop(between);
        world.read(3..5).done();
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn fast_path_against_regular_path() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let other = world.spawn(|world| {
            world.write(0..2).done();
            world.write(1..3).done();
        });
        world.write(1..2).done();
        world.read(0..3).done();
        other.join().unwrap();
    });
}

/// The fast path's node is used again at once, while another thread is about to demote it.
#[test]
fn fast_nodes_come_and_go_under_a_walk() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let other = world.spawn(|world| world.read(0..3).done());
        for at in 0..3 {
            world.write(at..at + 1).done();
        }
        other.join().unwrap();
    });
}

/// A walk that changes nothing, while the fast path's node comes, goes and is prepared again.
#[test]
fn a_snapshot_never_looks_at_a_fast_node() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let other = world.spawn(|world| drop(world.snapshot()));
        for at in 0..3 {
            world.write(at..at + 1).done();
        }
        other.join().unwrap();
    });
}

#[test]
fn disjoint_holders_coexist() {
    model(Some(2), || {
        let world = World::new(rw().build());
        let mine = world.write(0..2);
        let other = world.spawn(|world| world.write(2..4).done());
        // Joined while the range is held: a lock that excluded the other would deadlock here.
        other.join().unwrap();
        mine.touch();
    });
}

#[test]
fn overlapping_readers_coexist() {
    model(Some(2), || {
        let world = World::new(rw().build());
        let mine = world.read(0..3);
        let other = world.spawn(|world| world.read(1..4).done());
        other.join().unwrap();
        mine.touch();
    });
}

/// Three requests where each release is met by another thread's walk.
#[test]
fn releases_are_unlinked_by_others() {
    model(Some(2), || {
        let world = World::new(rw().fast_path(FastPath::Off).build());
        let left = world.spawn(|world| world.write(0..2).done());
        let right = world.spawn(|world| world.write(1..3).done());
        world.write(0..3).done();
        left.join().unwrap();
        right.join().unwrap();
    });
}

/// One who goes beyond unlinks what it passes; one who comes after that never meets the node, and still comes after
/// its holder.
#[test]
fn unlinked_by_one_who_goes_beyond() {
    model(Some(2), || {
        let world = World::new(ex().fast_path(FastPath::Off).build());
        let first = world.write(0..1);
        let second = world.write(2..3);
        let beyond = world.spawn(|world| world.write(4..5).done());
        let again = world.spawn(|world| world.write(0..1).done());
        first.done();
        beyond.join().unwrap();
        again.join().unwrap();
        drop(second);
    });
}

/// Neighbours released at the same time: the one unlinked first was what the other hung on.
#[test]
fn neighbours_are_unlinked_together() {
    model(Some(3), || {
        let world = World::new(rw().fast_path(FastPath::Off).build());
        let first = world.write(0..1);
        let second = world.write(1..2);
        let walker = world.spawn(|world| world.write(2..3).done());
        let reader = world.spawn(|world| world.read(0..3).done());
        drop(first);
        drop(second);
        walker.join().unwrap();
        reader.join().unwrap();
        world.write(0..3).done();
    });
}

#[test]
fn downgrade_lets_waiting_readers_in() {
    for path in PATHS {
        model(Some(2), move || {
            let world = World::new(rw().fast_path(path).build());
            let mine = world.write(0..2);
            let reader = world.spawn(|world| world.read(1..3).done());
            mine.touch();
            let mine = mine.downgrade();
            // Joined while the range is held.
            reader.join().unwrap();
            mine.touch();
        });
    }
}

#[test]
fn downgrade_keeps_writers_out() {
    model(Some(3), || {
        let world = World::new(rw().build());
        let mine = world.write(0..2);
        let writer = world.spawn(|world| world.write(1..3).done());
        mine.touch();
        mine.downgrade().done();
        writer.join().unwrap();
    });
}

#[test]
fn a_try_never_waits_and_never_intrudes() {
    for preference in PREFERENCES {
        model(Some(3), move || {
            let world = World::new(rw().preference(preference).build());
            let other = world.spawn(|world| {
                if let Some(hold) = world.write_within(0..2, Wait::Never) {
                    hold.touch();
                }
            });
            if let Some(hold) = world.read_within(1..3, Wait::Never) {
                hold.touch();
            }
            other.join().unwrap();
            // Whatever failed left nothing behind.
            assert!(world.write_within(0..8, Wait::Never).is_some());
        });
    }
}

/// The fast path's node is shared by its holder while another thread demotes it.
#[test]
fn downgrade_of_a_fast_node_under_a_demotion() {
    for preference in PREFERENCES {
        model(Some(5), move || {
            let world = World::new(rw().preference(preference).build());
            let other = world.spawn(|world| world.read(1..3).done());
            let mine = world.write(0..2);
            mine.touch();
            let mine = mine.downgrade();
            other.join().unwrap();
            mine.done();
        });
    }
}

/// Figure 1, and the writer shares its range while the reader validates.
#[test]
fn figure_one_with_a_downgrade() {
    for preference in PREFERENCES {
        model(Some(3), move || {
            let world = World::new(rw().preference(preference).build());
            let between = world.read(2..3);
            let reader = world.spawn(|world| world.read(1..6).done());
            let mine = world.write(4..5);
            mine.touch();
            let mine = mine.downgrade();
            // Joined while the range is held: the reader must get in.
            reader.join().unwrap();
            mine.done();
            drop(between);
        });
    }
}

/// Figure 1, and the reader has little time: what it leaves behind harms nobody.
#[test]
fn figure_one_timed() {
    for preference in PREFERENCES {
        model(Some(3), move || {
            let world = World::new(rw().preference(preference).build());
            let between = world.read(2..3);
            let reader = world.spawn(|world| {
                let soon = Wait::Until(Instant::now() + Duration::from_micros(3));
                if let Some(hold) = world.read_within(1..6, soon) {
                    hold.touch();
                }
            });
            world.write(4..5).done();
            drop(between);
            reader.join().unwrap();
            assert!(world.write_within(0..8, Wait::Never).is_some());
        });
    }
}

/// The first of several ranges asked for in one call is the fast path's, and the next is inserted behind it.
#[test]
fn many_begin_by_the_fast_path() {
    model(Some(3), || {
        // A thread's first acquisition, in any lock, is not by the fast path.
        World::new(rw().build()).write(0..1).done();
        let world = World::new(rw().build());
        let other = world.spawn(|world| world.write(3..5).done());
        world.write_many(&[0..1, 3..4]);
        other.join().unwrap();
    });
}
