//! Slices that owners borrow from, and guards that may be sent.

use super::common::{assert_nothing_held, elsewhere};
use spanlock::range::{LentRead, LentWrite, Owner, RangeLocked, Refusal};
use std::sync::Arc;
use std::thread;

fn pages() -> Arc<RangeLocked<u32>> {
    Arc::new(RangeLocked::from([0, 1, 2, 3, 4, 5, 6, 7]))
}

fn may_write(pages: &RangeLocked<u32>, at: usize) -> bool {
    elsewhere(|| pages.try_write(at..=at).is_some())
}

#[test]
fn what_is_lent_is_written_and_released_on_another_thread() {
    let pages = pages();
    let mut mine = pages.write_owned(2..4);
    let fills = thread::spawn(move || mine.fill(9));
    fills.join().expect("it is filled");
    assert_eq!(pages.read(1..5)[..], [1, 9, 9, 4]);
    assert_nothing_held(pages.lock().raw());
}

#[test]
fn what_is_lent_keeps_the_slice() {
    let mine = {
        let pages = pages();
        pages.read_owned(2..4)
    };
    assert_eq!(mine[..], [2, 3]);
}

#[test]
fn each_half_is_released_by_itself() {
    let pages = pages();
    let (mut first, mut others) = pages.write_owned(1..7).split_at(2);
    (first[1], others[0]) = (20, 30);
    assert_eq!((first.len(), others.len()), (2, 4));
    drop(first);
    assert!(may_write(&pages, 2) && !may_write(&pages, 3));
    let (first, others) = others.downgrade().split_at(4);
    assert!(others.is_empty());
    drop(others);
    assert!(!may_write(&pages, 6));
    let (none, first) = first.split_at(0);
    assert!(none.is_empty());
    assert_eq!(first[..], [30, 4, 5, 6]);
    drop((none, first));
    assert_nothing_held(pages.lock().raw());
}

#[test]
#[should_panic(expected = "split at one of its elements")]
fn a_slice_is_not_split_beyond_its_end() {
    let _ = pages().write_owned(1..3).split_at(3);
}

#[test]
fn elements_without_a_size_are_split() {
    let units = Arc::new(RangeLocked::from([(), (), ()]));
    let (first, others) = units.write_owned(..).split_at(1);
    assert_eq!((first.len(), others.len()), (1, 2));
    drop(others);
    assert!(elsewhere(|| units.try_write(1..).is_some()));
    drop(first);
}

#[test]
fn a_reader_upgrades_or_keeps_what_it_has() {
    let pages = pages();
    let (mine, theirs) = (pages.read_owned(0..4), pages.read_owned(3..5));
    let (mine, refusal) = mine.try_upgrade().expect_err("another one reads");
    assert_eq!((refusal, mine[0]), (Refusal::Busy, 0));
    drop(theirs);
    let mut mine = mine.upgrade().expect("nobody cancels it");
    mine[0] = 5;
    let (mut first, _others) = mine.downgrade().split_at(1);
    first = first.try_upgrade().expect("nobody else reads").downgrade();
    assert_eq!(first[0], 5);
}

#[test]
fn a_map_keeps_the_whole_range() {
    let pages = pages();
    let mut third = LentWrite::map(pages.write_owned(1..5), |pages| &mut pages[2]);
    *third = 33;
    assert!(!may_write(&pages, 1) && !may_write(&pages, 4));
    let again = LentWrite::map(third, |page| page);
    drop(again);
    assert_eq!(*LentRead::map(pages.read(..), |pages| &pages[3]), 33);
    let found = LentRead::try_map(pages.read(0..2), |pages| pages.get(7));
    assert_eq!(found.expect_err("there is none")[..], [0, 1]);
    let found = LentWrite::try_map(pages.write(0..2), |pages| pages.get_mut(1));
    assert_eq!(*found.expect("there is one"), 1);
    assert_nothing_held(pages.lock().raw());
}

#[test]
fn owners_borrow_by_name() {
    let pages = pages();
    let owner = Owner::with_limit(1);
    let mine = pages.by(&owner).write(0..4).expect("it is free");
    assert_eq!(pages.lock().snapshot().holders[0].owner, owner.id());
    assert_eq!(
        pages.by(&owner).try_read(5..6).map(drop),
        Err(Refusal::TooMany)
    );
    let other = Owner::new();
    assert_eq!(
        pages.by_arc(&other).try_write(3..5).map(drop),
        Err(Refusal::Busy)
    );
    other.cancel();
    assert_eq!(
        pages.by(&other).read(3..5).map(drop),
        Err(Refusal::Cancelled)
    );
    drop(mine);
    assert_nothing_held(pages.lock().raw());
}
