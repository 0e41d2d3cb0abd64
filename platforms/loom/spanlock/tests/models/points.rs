//! Single keys that are shared, where no range is: a writer that is inserted does not walk again.

use prim::cell::UnsafeCell;
use prim::thread::{self, JoinHandle};
use prim::{Model, model};
use spanlock_loom::range::Owner;
use spanlock_loom::range::keys::{KeyRangeLock, point};
use spanlock_loom::range::list::FastPath;
use spanlock_loom::range::raw::Mode::Exclusive;
use std::sync::Arc;

/// A lock, and what it protects.
struct World {
    lock: KeyRangeLock<u64>,
    value: UnsafeCell<u64>,
}

// SAFETY: threads reach the value under the lock alone. The models check that this suffices.
unsafe impl Sync for World {}
// SAFETY: the value is a number, which any thread may own and drop.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        let builder = KeyRangeLock::builder().levels(1, 0);
        let lock = builder.fast_path(FastPath::Off).build();
        let value = UnsafeCell::new(0);
        Arc::new(Self { lock, value })
    }

    fn change(&self) {
        // SAFETY: it is held alone; loom checks.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn look(&self) {
        // SAFETY: it is shared; loom checks.
        self.value.with(|value| unsafe { *value });
    }

    /// Readers of one key on threads of their own.
    fn readers<const N: usize>(self: &Arc<Self>) -> [JoinHandle<()>; N] {
        [(); N].map(|()| {
            let world = Arc::clone(self);
            thread::spawn(move || {
                let held = world.lock.read(point(&2));
                world.look();
                drop(held);
            })
        })
    }
}

fn finish<const N: usize>(threads: [JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().expect("loom reports panics itself");
    }
}

/// A node leaves behind which both may be inserted.
fn behind_one_that_leaves(write: impl Fn(&World) + Sync + Send + 'static) {
    model(Some(2), move || {
        let world = World::new();
        let before = world.lock.write(point(&0));
        let readers = world.readers::<1>();
        let leaves = world.lock.read(point(&1));
        drop(before);
        drop(leaves);
        write(&world);
        finish(readers);
    });
}

#[test]
fn a_writer_of_a_range() {
    behind_one_that_leaves(|world| {
        let held = world.lock.write(1..=3);
        world.change();
        drop(held);
    });
}

#[test]
fn a_writer_of_the_key() {
    behind_one_that_leaves(|world| {
        let held = world.lock.write(point(&2));
        world.change();
        drop(held);
    });
}

#[test]
fn a_writer_of_a_range_among_two_readers() {
    Model::new(Some(1)).check(|| {
        let world = World::new();
        let readers = world.readers::<2>();
        let held = world.lock.write(1..=3);
        world.change();
        drop(held);
        finish(readers);
    });
}

/// The reader is inserted before the node that the writer replaces, and the writer behind it.
#[test]
fn an_upgrade() {
    model(Some(2), || {
        let world = World::new();
        let owner = Owner::new();
        let mut held = world
            .lock
            .by(&owner)
            .read(point(&2))
            .expect("nobody has it");
        let readers = world.readers::<1>();
        held.convert(point(&2), Exclusive)
            .expect("nobody cancels it");
        world.change();
        drop(held);
        finish(readers);
    });
}
