//! The tables of locks, and how locks are named.

use spanlock_bench::registry::{FLOORS, LOCKS, find, parse};
use spanlock_bench::rw::locks as rw;
use spanlock_records::record::lock::FLOOR;
use spanlock_report::compare::OURS;
use std::collections::HashSet;

#[test]
fn names_are_distinct_and_found() {
    let all = || LOCKS.iter().chain(FLOORS.iter());
    let names: HashSet<_> = all().map(|lock| lock.name).collect();
    assert_eq!(names.len(), all().count());
    assert!(find(OURS).is_some_and(|lock| lock.name == OURS));
}

#[test]
fn every_lock_says_when_to_use_it_and_what_it_costs() {
    for lock in LOCKS.iter().chain(FLOORS.iter()) {
        let texts = [
            lock.family,
            lock.about,
            lock.when,
            lock.avoid,
            lock.rmw,
            lock.memory,
            lock.source,
        ];
        assert!(
            texts.iter().all(|text| !text.is_empty()),
            "{}: {texts:?}",
            lock.name
        );
        assert!(
            !lock.name.starts_with(|c: char| c.is_ascii_digit()),
            "{}",
            lock.name
        );
    }
}

#[test]
fn parameters_make_a_lock_of_their_own_name() {
    let named = |text| {
        let locks = parse(text, &[&LOCKS]).unwrap().into_iter();
        locks
            .map(|lock| (lock.name, lock.values.get("h")))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("song:h=4"), [("song:h=4", Some(4))]);
    assert_eq!(named("null,song"), [("null", None), ("song", None)]);
    let swept = [
        ("song:h=1", Some(1)),
        ("song:h=2", Some(2)),
        ("song:h=9", Some(9)),
    ];
    assert_eq!(named("song:h=1,2,9"), swept);
    assert_eq!(named("song:h=1..2,9"), swept);
    assert_eq!(named("song:h=1..=2,song:h=9"), swept);
    assert_eq!(named("song:h=4,null").len(), 2);
    for (wrong, expected) in [
        ("song:h=99", "h=1..=16"),
        ("song:", "h=1..=16"),
        ("bitmap:h=4", "block=1.."),
        ("null:h=4", "takes no parameters"),
        ("sung:h=4", "'sung' is not one of list-rw"),
        ("floor", "'floor' is not one of list-rw"),
        ("song:h=4..2", "h=4..2"),
        ("song:h=1..99", "h=1..99"),
        ("song,7", "'song,7' is not one of"),
        ("7", "'7' is not one of"),
        ("", "'' is not one of"),
        ("song,,null", "'' is not one of"),
    ] {
        let error = parse(wrong, &[&LOCKS]).err().unwrap();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn names_of_reader_writer_locks_are_distinct_and_bases_are_there() {
    let names: HashSet<_> = rw::known().map(|lock| lock.name).collect();
    assert_eq!(names.len(), rw::known().count());
    assert!(rw::find(FLOOR).is_some());
    for lock in rw::known() {
        if let Some(over) = lock.over {
            assert!(names.contains(over.lock), "{}", lock.name);
        }
    }
}
