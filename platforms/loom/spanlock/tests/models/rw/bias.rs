//! What only a bias does: a reader that keeps its slot, a slot that the next lock takes, a lock that moves.

use super::{Biased, EAGER, Futex, biased, futex};
use lock_api::RawRwLock;
use prim::{Model, model};
use spanlock_loom::rw::{Bias, Bravo, Counted, Policy};
use spanlock_testkit_loom::rw::*;
use spanlock_testkit_loom::{locks, models};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

locks! {
    counted: Bravo<Futex, Counted<Bias>> = Bravo::with_policy(futex(), Counted::new(EAGER));
    /// A lock that has no bias from birth, but by the first reader.
    late: Bravo<Futex, Late> = Bravo::with_policy(futex(), Late { made: AtomicBool::new(false) });
}

/// A write that gives up while it revokes leaves the bias as it was.
fn a_writer_gives_up_while_it_revokes(world: &Arc<World<Bravo<Futex, Counted<Bias>>>>) {
    let mine = world.read();
    world.run([|world| assert!(world.write_soon().is_none())]);
    assert!(world.try_write().is_none());
    read(world);
    mine.done();
    assert_eq!(world.lock.policy().counts().fast_reads, 2);
}

/// An upgrade that gives up leaves the bias as it was, and its reader inside.
fn an_upgrade_gives_up_while_it_revokes(world: &Arc<World<Bravo<Futex, Counted<Bias>>>>) {
    let mine = world.read();
    world.run([|world| {
        let kept = world.upgradable().upgrade_soon().err();
        assert_eq!(kept.expect("a reader is inside").get(), 0);
    }]);
    read(world);
    mine.done();
    let counts = world.lock.policy().counts();
    assert_eq!((counts.fast_reads, counts.withdrawals), (2, 1));
}

/// A writer sleeps until its reader leaves the slot, not until the next one does, though another writer awaits that.
fn a_writer_does_not_wait_for_the_next_in_the_slot(first: &Arc<World<Biased<Futex>>>) {
    let second = World::new(biased());
    let mine = first.read();
    let writer = first.start([write]);
    let other = second.start([write]);
    mine.done();
    let mine = second.read();
    writer.join();
    mine.done();
    other.join();
}

/// A writer finds the slot of its reader taken for another lock already, and that is all it sees of the departure.
fn the_next_in_the_slot_brings_what_the_one_before_did(first: &Arc<World<Biased<Futex>>>) {
    let second = World::new(biased());
    let mine = first.read();
    let writer = first.start([write]);
    mine.done();
    read(&second);
    writer.join();
}

/// Another thread releases.
fn the_next_in_the_slot_brings_what_another_thread_did(first: &Arc<World<Biased<Futex>>>) {
    let second = World::new(biased());
    let token = first.read().into_token();
    let writer = first.start([write]);
    let other = first.spawn(|first| first.reading(token).done());
    read(&second);
    writer.join();
    other.join().unwrap();
}

models! {
    a_writer_gives_up_while_it_revokes: 3 on counted;
    an_upgrade_gives_up_while_it_revokes: 2 on counted;
    a_writer_does_not_wait_for_the_next_in_the_slot: 4 on biased;
    the_next_in_the_slot_brings_what_the_one_before_did: 3 on biased;
    the_next_in_the_slot_brings_what_another_thread_did: 3 on biased;
}

/// Runs a scenario where the fences of readers by plain stores meet only those of writers that interrupt all threads.
fn by_grades(
    preemptions: usize,
    scenario: impl Fn(&Arc<World<Biased<Futex>>>) + Send + Sync + 'static,
) {
    let model = Model::new(prim::one_more_in_mutants(preemptions)).barrier_apart();
    model.check(move || scenario(&World::new(biased())));
}

/// A reader publishes by a plain store while a writer closes the path and opens it again: from then on writers do not
/// interrupt it.
#[test]
fn a_plain_store_under_a_fenced_bias() {
    by_grades(2, |world| {
        read(world);
        let writer: Act<Biased<Futex>> = |world| {
            write(world);
            write(world);
        };
        let others = world.start([writer]);
        read(world);
        others.join();
    });
}

/// Three reads at a time in rows of two slots: the third takes the slow path.
#[test]
fn a_full_row_sends_readers_to_the_underlying_lock() {
    model(Some(2), || {
        let worlds = [(); 3].map(|()| World::new(biased()));
        let held: Vec<_> = worlds.iter().map(|world| world.read()).collect();
        let writers = worlds.each_ref().map(|world| world.start([try_write]));
        drop(held);
        writers.into_iter().for_each(Crew::join);
    });
}

/// A guard is leaked, and its lock dropped. The next lock at the same place does not wait for it.
#[test]
fn a_lock_that_is_dropped_forgets_leaked_readers() {
    model(None, || {
        let mut place = Box::new(biased());
        let _leaked = RawRwLock::lock_shared(&*place);
        *place = biased();
        let token = RawRwLock::lock_exclusive(&*place);
        // SAFETY: the token is this lock's, and no other hold has it.
        unsafe { RawRwLock::unlock_exclusive(&*place, token) };
    });
}

/// A policy as eager as [`EAGER`] once the lock is made.
#[derive(Debug)]
struct Late {
    made: AtomicBool,
}

impl Policy for Late {
    const INIT: Self = panic!("not in a constant");

    fn bias(&self) -> Bias {
        let is_made = self.made.swap(true, Ordering::Relaxed);
        let adaptive = Bias::Adaptive { bound: 0 };
        if is_made { EAGER } else { adaptive }
    }
}

/// A lock is moved away from where a guard of it was leaked. The next lock there gets no bias, for its writers would
/// wait for that guard.
#[test]
fn a_lock_where_a_leaked_reader_is_published() {
    model(Some(3), || {
        let mut world = World::new(late());
        read(&world);
        let _leaked = world.read().into_token();
        let place = &mut Arc::get_mut(&mut world).unwrap().lock;
        drop(mem::replace(place, late()));
        world.meet([write, read]);
        assert!(!world.lock.is_locked(), "a hold is left");
    });
}
