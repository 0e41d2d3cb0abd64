//! What every range lock has to stand: written once, and run on each lock.
//!
//! The bounds: as many preemptions as the table at the end says, where two threads meet as a rule two, where three do one or
//! two; spins, where there are any, of one round, and ten of them explored; a timed wait sleeps for one turn of the others.

use crate::world::{World, ex, rw};
use prim::clock::{Duration, Instant};
use prim::{Model, model};
use spanlock_loom::range::list::{Fairness, FastPath, ListEx, ListRw};
use spanlock_loom::range::raw::{RawRangeLock, RawRangeMutex, Wait};
use spanlock_loom::range::segment::{SrlArray, SrlTree};
use spanlock_loom::range::skip::{SkipEx, SkipRw};

/// Every request that sleeps has a claim at once.
const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

fn list() -> ListRw {
    rw().fairness(AT_ONCE).build()
}

fn unfair_list() -> ListRw {
    rw().fairness(Fairness::Unfair)
        .fast_path(FastPath::Off)
        .build()
}

fn exclusive_list() -> ListEx {
    ex().fairness(AT_ONCE).build()
}

fn skip_list() -> SkipRw {
    SkipRw::builder().height(2).fairness(AT_ONCE).build()
}

fn exclusive_skip_list() -> SkipEx {
    SkipEx::builder()
        .height(2)
        .fairness(Fairness::Unfair)
        .build()
}

/// Eight segments of one position.
fn segments() -> SrlArray {
    SrlArray::builder().segments(8).fairness(AT_ONCE).build()
}

fn tree() -> SrlTree {
    let tree = SrlTree::builder().fan_out(2).depth(3);
    tree.fairness(AT_ONCE).build()
}

trait Exclusive: RawRangeMutex + Send + Sync + 'static {}
impl<L: RawRangeMutex + Send + Sync + 'static> Exclusive for L {}

trait Shared: RawRangeLock + Exclusive {}
impl<L: RawRangeLock + Exclusive> Shared for L {}

fn soon() -> Wait {
    Wait::Until(Instant::now() + Duration::from_micros(3))
}

/// A request with a deadline, granted or not.
fn write_soon<L: Exclusive>(world: &World<L>) {
    if let Some(hold) = world.write_within(0..2, soon()) {
        hold.touch();
    }
}

/// Whatever failed has left nothing behind.
fn is_free<L: Exclusive>(world: &World<L>) {
    assert!(world.write_within(0..8, Wait::Never).is_some());
}

/// Two calls ask for the same two ranges.
fn many_against_each_other<L: Exclusive>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let other = world.spawn(|world| world.write_many(&[0..1, 3..4]));
        world.write_many(&[0..2, 3..5]);
        other.join().unwrap();
    });
}

/// And a third request for all of both.
fn many_against_each_other_and_a_wide_one<L: Exclusive>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let other = world.spawn(|world| world.write_many(&[0..1, 3..4]));
        let wide = world.spawn(|world| world.write(0..5).done());
        world.write_many(&[0..2, 3..5]);
        other.join().unwrap();
        wide.join().unwrap();
    });
}

/// A reader of everything, inserted before another reader, meets the first of many ranges or the last. (The last was not
/// looked for from the beginning.)
fn many_beside_a_reader_of_all<L: Shared>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let between = world.read(1..2);
        let reader = world.spawn(|world| world.read(0..6).done());
        world.write_many(&[2..3, 4..5]);
        reader.join().unwrap();
        drop(between);
    });
}

fn many_shared_beside_a_writer<L: Shared>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let writer = world.spawn(|world| world.write(1..4).done());
        world.read_many(&[0..2, 3..5]);
        writer.join().unwrap();
    });
}

/// A request times out while it is woken, and another sleeps behind it.
fn a_time_out_beside_an_inheritance<L: Exclusive>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let mine = world.write(0..2);
        let hasty = world.spawn(write_soon);
        let patient = world.spawn(|world| world.write(1..2).done());
        mine.done();
        hasty.join().unwrap();
        patient.join().unwrap();
        is_free(&world);
    });
}

/// A writer times out while a reader sleeps behind the same holder, or behind the writer, and the holder shares.
fn a_time_out_beside_a_downgrade<L: Shared>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let mine = world.write(0..2);
        let hasty = world.spawn(write_soon);
        let reader = world.spawn(|world| world.read(1..2).done());
        mine.touch();
        mine.downgrade().done();
        hasty.join().unwrap();
        reader.join().unwrap();
        is_free(&world);
    });
}

fn two_that_give_up<L: Exclusive>(lock: fn() -> L, bound: usize) {
    model(Some(bound), move || {
        let world = World::new(lock());
        let mine = world.write(0..1);
        let one = world.spawn(write_soon);
        let other = world.spawn(write_soon);
        mine.done();
        one.join().unwrap();
        other.join().unwrap();
        is_free(&world);
    });
}

/// The holder leaves while two others spin, or have just begun to sleep.
fn two_that_spin<L: Exclusive>(lock: fn() -> L, bound: usize) {
    Model::new(Some(bound)).spinning().check(move || {
        let world = World::new(lock());
        let mine = world.write(0..2);
        let one = world.spawn(|world| world.write(0..1).done());
        let other = world.spawn(|world| world.write(0..2).done());
        mine.done();
        one.join().unwrap();
        other.join().unwrap();
    });
}

/// As two meet: each is the other's holder.
fn one_that_spins<L: Exclusive>(lock: fn() -> L, bound: usize) {
    Model::new(Some(bound)).spinning().check(move || {
        let world = World::new(lock());
        let other = world.spawn(|world| world.write(0..2).done());
        world.write(1..3).done();
        other.join().unwrap();
    });
}

/// A reader and a writer spin behind a holder that shares, and then leaves.
fn a_downgrade_before_those_who_spin<L: Shared>(lock: fn() -> L, bound: usize) {
    Model::new(Some(bound)).spinning().check(move || {
        let world = World::new(lock());
        let mine = world.write(0..2);
        let reader = world.spawn(|world| world.read(0..1).done());
        let writer = world.spawn(|world| world.write(1..3).done());
        mine.touch();
        mine.downgrade().done();
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

/// One test for each of the scenarios and each of the locks, with so many preemptions.
macro_rules! on_each {
    ($($scenario:ident: $($bound:literal on $($lock:ident)+),+;)+) => {
        $(mod $scenario {
            $($(#[test]
            fn $lock() {
                super::$scenario(super::$lock, $bound);
            })+)+
        })+
    };
}

on_each! {
    many_against_each_other:
        2 on list unfair_list exclusive_list skip_list exclusive_skip_list segments tree;
    many_against_each_other_and_a_wide_one:
        0 on list exclusive_list,
        1 on segments;
    many_beside_a_reader_of_all:
        2 on list unfair_list skip_list segments tree;
    many_shared_beside_a_writer:
        2 on list unfair_list skip_list,
        3 on segments tree;
    a_time_out_beside_an_inheritance:
        1 on skip_list exclusive_skip_list,
        2 on list unfair_list exclusive_list segments tree;
    a_time_out_beside_a_downgrade:
        1 on skip_list,
        2 on list unfair_list segments;
    two_that_give_up:
        1 on skip_list exclusive_skip_list,
        2 on list unfair_list exclusive_list segments;
    two_that_spin:
        1 on list unfair_list exclusive_list skip_list exclusive_skip_list,
        2 on segments;
    one_that_spins:
        3 on list unfair_list exclusive_list skip_list exclusive_skip_list segments;
    a_downgrade_before_those_who_spin:
        1 on list unfair_list,
        2 on segments;
}
