//! Rings of two, three and five, over different kinds of locks.

use super::pool::block_on;
use super::{Meeting, REPORT, lasting};
use spanlock::range::list::{ListEx, ListRw};
use spanlock::range::raw::Mode;
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::skip::SkipRw;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock, RangeMutex};

fn slots() -> &'static RangeLock {
    lasting(RangeLock::from_raw(
        RawSlots::builder().deadlocks(REPORT).build(),
    ))
}

fn list() -> &'static RangeLock<ListRw> {
    lasting(RangeLock::from_raw(
        ListRw::builder().deadlocks(REPORT).build(),
    ))
}

fn skip() -> &'static RangeLock<SkipRw> {
    lasting(RangeLock::from_raw(
        SkipRw::builder().deadlocks(REPORT).build(),
    ))
}

fn array() -> &'static RangeLock<SrlArray> {
    let array = SrlArray::builder().segments(16).deadlocks(REPORT);
    lasting(RangeLock::from_raw(array.build()))
}

#[test]
fn two_threads_in_one_lock() {
    let meeting = Meeting::of(2);
    let lock = slots();
    meeting.party(move |meet| {
        let (_held, line) = (lock.write(0..10), line!());
        meet(line, line!() + 1);
        drop(lock.write(20..30));
    });
    meeting.party(move |meet| {
        let (_held, line) = (lock.read(25..26), line!());
        meet(line, line!() + 1);
        drop(lock.read(0..100));
    });
    meeting.ring(file!());
}

#[test]
fn two_threads_over_slots_and_a_list() {
    let meeting = Meeting::of(2);
    let (files, pages) = (slots(), list());
    meeting.party(move |meet| {
        let (_held, line) = (files.write(0..10), line!());
        meet(line, line!() + 1);
        drop(pages.read(5..6));
    });
    meeting.party(move |meet| {
        let (_held, line) = (pages.write(0..10), line!());
        meet(line, line!() + 1);
        drop(files.write(3..5));
    });
    let ring = meeting.ring(file!());
    let asked: Vec<_> = ring
        .steps
        .iter()
        .map(|step| (step.span.start(), step.mode))
        .collect();
    assert!(
        asked.contains(&(5, Mode::Shared)) && asked.contains(&(3, Mode::Exclusive)),
        "{ring}"
    );
    for step in &ring.steps {
        let held = (
            step.held.span.start(),
            step.held.span.last(),
            step.held.mode,
        );
        assert_eq!(held, (0, 9, Mode::Exclusive), "{ring}");
        assert_eq!(step.owner.thread(), step.thread, "{ring}");
    }
    let text = ring.to_string();
    assert!(text.starts_with("deadlock of 2:\n  thread "), "{text}");
    assert!(
        text.contains("waits for 5..=5 shared of the lock 0x"),
        "{text}"
    );
    assert!(text.contains(" holds: 0..=9 exclusive"), "{text}");
}

#[test]
fn three_over_segments_a_skip_list_and_an_exclusive_list() {
    let meeting = Meeting::of(3);
    let (words, rows) = (array(), skip());
    let blocks = lasting(RangeMutex::from_raw(
        ListEx::builder().deadlocks(REPORT).build(),
    ));
    meeting.party(move |meet| {
        let (_held, line) = (words.read(0..3), line!());
        meet(line, line!() + 1);
        drop(rows.write(100..));
    });
    meeting.party(move |meet| {
        let me = Owner::new();
        let (_held, line) = (rows.by(&me).write(90..110), line!());
        meet(line, line!() + 1);
        drop(blocks.by(&me).write(7..=7));
    });
    meeting.party(move |meet| {
        let (_held, line) = (blocks.lock(..), line!());
        meet(line, line!() + 1);
        drop(words.write(2..5));
    });
    let ring = meeting.ring(file!());
    let owners = ring
        .steps
        .iter()
        .filter(|step| step.owner.thread().is_none());
    assert_eq!(owners.count(), 1, "{ring}");
}

#[test]
fn five_threads_owners_and_tasks() {
    let meeting = Meeting::of(5);
    let (words, lines, files, rows) = (array(), list(), slots(), skip());
    let tree = SrlTree::builder().fan_out(4).depth(2).deadlocks(REPORT);
    let tree = lasting(RangeLock::from_raw(tree.build()));
    meeting.party(move |meet| {
        let (_held, line) = (words.write(0..3), line!());
        meet(line, line!() + 1);
        drop(lines.write(4..9));
    });
    meeting.party(move |meet| {
        let me = Owner::new();
        let (_held, line) = (lines.by(&me).read(0..5), line!());
        meet(line, line!() + 1);
        drop(files.by(&me).write(0..5));
    });
    meeting.party(move |meet| {
        let me = Owner::new();
        let (_held, line) = (block_on(files.by(&me).write_async(4..5)), line!());
        meet(line, line!() + 1);
        drop(block_on(rows.by(&me).write_async(50..60)));
    });
    meeting.party(move |meet| {
        let (_held, line) = (rows.write(55..56), line!());
        meet(line, line!() + 1);
        drop(tree.read(1..2));
    });
    meeting.party(move |meet| {
        let (_held, line) = (tree.write(0..16), line!());
        meet(line, line!() + 1);
        drop(words.read(2..3));
    });
    let ring = meeting.ring(file!());
    let tasks = ring.steps.iter().filter(|step| step.thread.is_none());
    assert_eq!(tasks.count(), 1, "{ring}");
}
