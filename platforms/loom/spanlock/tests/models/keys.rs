//! Locks over keys: the scenarios of all range locks, and what only keys do. Here keys are numbers.

use crate::locks::*;
use spanlock_testkit_loom::models;
use spanlock_testkit_loom::range::*;
use std::sync::Arc;

type Keys = spanlock_loom::range::keys::KeyRangeLock<u64>;

models! {
    two_writers_overlapping: 3 on keys slow_keys;
    a_reader_and_a_writer: 3 on keys, 2 on slow_keys;
    overlapping_readers_coexist: 2 on keys;
    disjoint_holders_coexist: 2 on keys;
    nodes_return_under_a_walk: 2 on slow_keys;
    figure_one: 2 on keys;
    figure_one_with_a_lasting_separator: 2 on keys slow_keys;
    figure_one_with_a_downgrade: 2 on keys;
    a_writer_starts_over_with_a_fresh_node: 1 on unfair_keys;
    sleepers_are_woken_one_after_another: 2 on fair_keys unfair_keys;
    a_waiting_reader_blocks_nobody: 2 on unfair_keys;
    a_try_never_waits_and_never_intrudes: 2 on keys;
    giving_up_passes_the_turn_on: 1 on fair_keys unfair_keys;
    downgrade_lets_waiting_readers_in: 2 on keys;
    a_holder_does_not_give_way_to_a_request_behind_it: 1 on fair_keys;
    another_thread_releases: 2 on keys slow_keys;
    a_part_is_shared: 1 on unfair_keys;
    an_upgrade_beside_a_reader: 1 on unfair_keys fair_keys;
    two_upgrades: 1 on unfair_keys;
    a_task_and_a_thread: 1 on unfair_keys fair_keys;
    a_writing_task_is_dropped: 1 on unfair_keys;
    a_woken_task_is_never_polled: 1 on unfair_keys;
    a_waiting_task_is_cancelled: 1 on unfair_keys;
}

mod wrapped {
    use super::*;

    models! {
        two_writers_overlapping: 2 on limited_keys;
        a_reader_and_a_writer: 2 on limited_keys;
        another_thread_releases: 1 on limited_keys;
        an_upgrade_beside_a_reader: 1 on limited_keys;
        a_task_and_a_thread: 1 on limited_keys;
        a_writing_task_is_dropped: 1 on limited_keys;
        what_is_locked_again_beside_a_writer: 1 on limited_keys;
        a_task_locks_again_beside_a_writer: 1 on limited_keys;
    }
}

/// A thread compares a key while its holder leaves, and has the next key written where it needs one.
fn a_key_is_compared_while_its_holder_leaves(world: &Arc<World<Keys>>) {
    let leaves = act(|world: &Arc<World<Keys>>| {
        world.write(0..1).done();
        world.write(2..3).done();
    });
    world.meet([leaves, write(4..5)]);
}

/// A writer begins its walk behind the place of a scan that is over.
fn a_writer_begins_behind_a_scan_that_is_over(world: &Arc<World<Keys>>) {
    let writer = world.start([write(3..4)]);
    let scan = world.read(0..4);
    let hint = world.read(1..2);
    scan.done();
    writer.join();
    drop(hint);
}

/// A scan is shared by a writer that has it alone, while another writer begins behind a start hint.
fn a_scan_that_was_a_writer(world: &Arc<World<Keys>>) {
    let shares = act(|world: &Arc<World<Keys>>| {
        let scan = world.write(0..4).downgrade();
        let hint = world.read(1..2);
        scan.done();
        drop(hint);
    });
    world.meet([shares, write(3..4)]);
}

/// A request walks, and finds that nobody else is there: its node gets the mark of the fast path, and is used again as
/// soon as it is released.
fn a_node_alone_is_used_again(world: &Arc<World<Keys>>) {
    let first = world.write(0..1);
    world.write(1..2).done();
    first.done();
    world.write(0..1).done(); // It walks, since the last one did.
    world.meet([write(1..3), write(2..4)]);
}

models! {
    a_key_is_compared_while_its_holder_leaves: 2 on keys slow_keys;
    a_node_alone_is_used_again: 2 on keys;
    a_task_waits_while_its_thread_goes_on: 1 on unfair_keys;
    a_scan_that_was_a_writer: 2 on slow_keys;
}

/// The scan is in no level of the index, so a writer that begins at the start hint does not come by it.
mod of_different_heights {
    use super::*;

    models! {
        [.wins(&[0, 1, 1])]
        a_writer_begins_behind_a_scan_that_is_over: 2 on slow_keys;
    }
}

mod uses {
    //! Keys that several users have, and who writes the next ones over them.

    use prim::{Model, thread};
    use spanlock_loom::range::keys::KeyRangeLock;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    fn lock() -> Arc<KeyRangeLock<u64>> {
        Arc::new(KeyRangeLock::builder().levels(1, 0).build())
    }

    /// The keys of a task that waits are in a node of the thread that has polled it. Another thread polls it again, and
    /// leaves them. Then the first thread writes other keys there.
    #[test]
    fn the_last_user_writes_the_next_keys() {
        Model::new(Some(2)).check(|| {
            let [lock, elsewhere] = [lock(), lock()];
            let held = lock.write(0..1);
            let mut task = Box::pin(lock.read_owned_async(0..2));
            let mut context = Context::from_waker(Waker::noop());
            assert!(task.as_mut().poll(&mut context).is_pending());
            drop(held);
            let other = thread::spawn(move || {
                let mut context = Context::from_waker(Waker::noop());
                while Pin::new(&mut task).poll(&mut context).is_pending() {
                    prim::loom::thread::yield_now();
                }
                drop(task);
                drop(lock.write(0..1));
            });
            drop(elsewhere.write(4..5));
            drop(elsewhere.write(5..6));
            other.join().expect("loom reports panics itself");
        });
    }
}

mod tables {
    //! Tasks that lock ranges of several tables.

    use crate::locks::unfair_keys;
    use prim::cell::UnsafeCell;
    use prim::model;
    use prim::thread::{self, JoinHandle};
    use spanlock_loom::range::keys::{KeySpace, Natural, Table};
    use spanlock_loom::range::raw::Mode::Exclusive;
    use spanlock_loom::range::{Owner, Refusal};
    use spanlock_testkit_loom::range::finish;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    /// Two tables, and what each protects.
    struct World {
        space: KeySpace<u64>,
        tables: [Table<u64, Natural>; 2],
        values: [UnsafeCell<u64>; 2],
    }

    // SAFETY: threads reach the values under the locks alone. The models check that they suffice for that.
    unsafe impl Sync for World {}
    // SAFETY: the values are numbers, which any thread may own and drop.
    unsafe impl Send for World {}

    impl World {
        fn new() -> Arc<Self> {
            let space = KeySpace::new();
            let tables = [(); 2].map(|()| space.table_of(unfair_keys()));
            let values = [(); 2].map(|()| UnsafeCell::new(0));
            Arc::new(Self {
                space,
                tables,
                values,
            })
        }

        /// A task on a thread of its own locks in both tables, named in that order, and changes what they protect.
        fn start(
            self: &Arc<Self>,
            owner: &Owner,
            order: [usize; 2],
        ) -> JoinHandle<Result<(), Refusal>> {
            let (world, owner) = (Arc::clone(self), owner.clone());
            thread::spawn(move || {
                let wanted = order.map(|at| (&world.tables[at], 2..3, Exclusive));
                let mut locked = pin!(world.space.lock_many_async(&owner, wanted));
                let held = finish(|waker| locked.as_mut().poll(&mut Context::from_waker(waker)))?;
                for value in &world.values {
                    // SAFETY: it is held; loom checks.
                    value.with_mut(|value| unsafe { *value += 1 });
                }
                drop(held);
                Ok(())
            })
        }

        fn is_free(&self) {
            let free = |table: &Table<u64, Natural>| table.try_write(..).is_some();
            assert!(self.tables.iter().all(free), "something is held");
        }
    }

    /// Each finds the second table taken at first, and so holds the first one at last while it waits.
    #[test]
    fn two_tasks_name_two_tables_in_different_orders() {
        model(Some(2), || {
            let world = World::new();
            let held = world.tables[1].write(2..3);
            let tasks = [[0, 1], [1, 0]].map(|order| world.start(&Owner::new(), order));
            drop(held);
            for task in tasks {
                assert_eq!(task.join().expect("loom reports panics itself"), Ok(()));
            }
            world.is_free();
        });
    }

    /// A task that is dropped while it holds the first table and waits for the second leaves nothing behind, and the
    /// other goes on.
    #[test]
    fn one_of_two_tasks_is_dropped() {
        model(Some(2), || {
            let world = World::new();
            let held = world.tables[1].write(2..3);
            let owner = Owner::new();
            let wanted = world
                .tables
                .each_ref()
                .map(|table| (table, 2..3, Exclusive));
            let mut dropped = Box::pin(world.space.lock_many_async(&owner, wanted));
            let mut context = Context::from_waker(Waker::noop());
            assert!(dropped.as_mut().poll(&mut context).is_pending());
            assert!(
                world.tables[0].try_write(2..3).is_none(),
                "it keeps what it has"
            );
            let other = world.start(&Owner::new(), [1, 0]);
            drop(held);
            drop(dropped);
            assert_eq!(other.join().expect("loom reports panics itself"), Ok(()));
            world.is_free();
        });
    }
}

mod panics {
    //! Comparators that panic.

    use prim::Model;
    use prim::atomic::{AtomicUsize, Ordering};
    use prim::thread;
    use spanlock_loom::range::keys::{Builder, Compare, KeyRangeLock};
    use spanlock_loom::range::list::{Fairness, FastPath};
    use std::cmp;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;

    /// Compares numbers, and panics after so many comparisons.
    #[derive(Clone)]
    struct Fragile {
        /// One more than are left, or 0: it does not panic.
        left: Arc<AtomicUsize>,
    }

    impl Fragile {
        fn new() -> Self {
            let left = Arc::new(AtomicUsize::new(0));
            Self { left }
        }
    }

    impl Compare<u64> for Fragile {
        fn compare(&self, one: &u64, other: &u64) -> cmp::Ordering {
            let left = self.left.load(Ordering::Relaxed);
            if left > 0 {
                self.left.store(left - 1, Ordering::Relaxed);
            }
            if left == 1 {
                // Without a word of the panic hook.
                resume_unwind(Box::new("a comparison panics"));
            }
            one.cmp(other)
        }
    }

    type Lock = KeyRangeLock<u64, Fragile>;

    fn lock(compare: &Fragile, fast_path: FastPath, levels: u32) -> Arc<Lock> {
        let builder = Builder::new().ordered_by(compare.clone());
        let builder = builder.fast_path(fast_path).fairness(Fairness::Unfair);
        Arc::new(builder.levels(levels, 0).build())
    }

    /// Whether it returns, and does not panic.
    fn returns(f: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(f)).is_ok()
    }

    /// Whichever comparison of a request panics, nothing of the request is left.
    #[test]
    fn a_comparison_panics_anywhere() {
        Model::new(Some(1)).check(|| {
            let compare = Fragile::new();
            let lock = lock(&compare, FastPath::Off, 1);
            let held = (lock.read(1..=1), lock.read(4..=6));
            let requests: [&dyn Fn(); 3] = [
                &|| drop(lock.read(2..6)),
                &|| drop(lock.write(2..=3)),
                &|| drop(lock.try_write(2..=5)),
            ];
            for request in requests {
                for count in 1.. {
                    compare.left.store(count, Ordering::Relaxed);
                    let has_returned = returns(request);
                    let panicked = compare.left.swap(0, Ordering::Relaxed) == 0;
                    assert!(has_returned || panicked);
                    assert_eq!(lock.snapshot().holders.len(), 2);
                    if !panicked {
                        break;
                    }
                }
            }
            drop(held);
            assert!(lock.try_write(..).is_some());
        });
    }

    /// A request that is woken panics, and the request behind it goes on. (Without an index, where a panic only ends a
    /// search.)
    #[test]
    fn a_sleeper_that_panics_passes_the_turn_on() {
        Model::new(Some(1)).check(|| {
            let compare = Fragile::new();
            let lock = lock(&compare, FastPath::On, 0);
            let held = lock.write(3..=3);
            let until_asleep = |count| {
                while lock.snapshot().waiters.len() < count {
                    prim::loom::thread::yield_now();
                }
            };
            let first = thread::spawn({
                let (lock, compare) = (Arc::clone(&lock), compare.clone());
                move || {
                    let _ = returns(|| drop(lock.write(2..=3)));
                    compare.left.store(0, Ordering::Relaxed);
                }
            });
            until_asleep(1);
            let second = thread::spawn({
                let lock = Arc::clone(&lock);
                move || {
                    // If the first one was faster, the panic is this one's.
                    if !returns(|| drop(lock.write(3..=4))) {
                        drop(lock.write(3..=4));
                    }
                }
            });
            until_asleep(2);
            let other = lock.write(1..=1);
            drop(held);
            compare.left.store(1, Ordering::Relaxed);
            first.join().expect("it is caught");
            second.join().expect("it goes on");
            drop(other);
        });
    }

    /// A thread that releases a range, and so dispatches those that wait for it, does not get their panics.
    #[test]
    fn an_innocent_thread_does_not_panic() {
        Model::new(Some(1)).check(|| {
            let compare = Fragile::new();
            let lock = lock(&compare, FastPath::On, 0);
            let held = lock.write(3..=3);
            let sleepers: Vec<_> = [2..=3, 3..=4]
                .into_iter()
                .map(|range| {
                    let lock = Arc::clone(&lock);
                    thread::spawn(move || drop(lock.write(range)))
                })
                .collect();
            while lock.snapshot().waiters.len() < 2 {
                prim::loom::thread::yield_now();
            }
            compare.left.store(1, Ordering::Relaxed);
            assert!(returns(|| drop(held)), "it is innocent");
            compare.left.store(0, Ordering::Relaxed);
            for sleeper in sleepers {
                let _ = sleeper.join();
            }
        });
    }
}
