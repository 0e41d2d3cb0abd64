//! One thread, or two: what is in the way of what.

use spanlock::range::keys::{KeyRangeLock, between, point, prefix};
use std::cmp::Ordering;
use std::ops::Bound::{Excluded, Included, Unbounded};

#[test]
fn ranges_of_keys_exclude_each_other_where_they_overlap() {
    let table = KeyRangeLock::<[u8]>::new();
    let held = table.write(between(b"b", b"d"));
    for free in ["a", "d", "da"] {
        assert!(table.try_write(point(free.as_bytes())).is_some(), "{free}");
    }
    for taken in ["b", "ba", "c", "czzz"] {
        assert!(table.try_read(point(taken.as_bytes())).is_none(), "{taken}");
    }
    drop(held);
    assert!(table.try_write(..).is_some());
}

#[test]
fn each_end_is_what_it_says() {
    let table = KeyRangeLock::<u32>::new();
    let held = table.write((Excluded(3), Included(6)));
    assert!(table.try_write(3..=3).is_some());
    assert!(table.try_write(4..=4).is_none());
    assert!(table.try_write(6..=6).is_none());
    assert!(table.try_write((Excluded(6), Unbounded)).is_some());
    assert!(table.try_write(..=3).is_some());
    // Between 3 and 4 there might be a key, as far as the lock knows.
    assert!(table.try_write(..4).is_none());
    assert!(table.try_read(..).is_none());
    drop(held);
    // Nobody knows whether there is a key between them, so there is one.
    let gap = table.write((Excluded(3), Excluded(4)));
    assert!(table.try_write((Excluded(3), Excluded(4))).is_none());
    assert!(table.try_write(3..=3).is_some() && table.try_write(4..).is_some());
    drop(gap);
}

#[test]
fn an_empty_range_is_granted_at_once() {
    let table = KeyRangeLock::<u32>::new();
    let all = table.write(..);
    drop(table.try_write(5..5).expect("it is empty"));
    drop(
        table
            .try_write((Excluded(5), Included(5)))
            .expect("it is empty"),
    );
    drop(all);
}

#[test]
#[should_panic(expected = "range 5..=3 is reversed")]
fn a_reversed_range_panics() {
    let table = KeyRangeLock::<u32>::new();
    drop(table.write((Included(5), Included(3))));
}

#[test]
#[should_panic(expected = "range >5..5 is reversed")]
fn an_open_range_between_one_key_is_reversed() {
    let table = KeyRangeLock::<u32>::new();
    drop(table.write((Excluded(5), Excluded(5))));
}

#[test]
fn readers_share_and_a_writer_can_become_one() {
    let table = KeyRangeLock::<str>::new();
    let first = table.read(between("a", "m"));
    let second = table.read(between("c", "z"));
    assert!(table.try_write(point("d")).is_none());
    drop(first);
    assert!(table.try_write(point("b")).is_some());
    drop(second);
    let writer = table.write(..);
    let reader = writer.downgrade();
    assert!(table.try_read(point("b")).is_some());
    assert!(table.try_write(point("b")).is_none());
    drop(reader);
}

#[test]
fn the_order_is_the_comparator_s() {
    let reversed = |a: &u32, b: &u32| b.cmp(a);
    let table = KeyRangeLock::<u32, _>::ordered_by(reversed);
    let held = table.write(between(&9, &4));
    assert!(table.try_write(9..=9).is_none());
    assert!(table.try_write(4..=4).is_some());
    assert!(table.try_write(10..=10).is_some());
    drop(held);
    let folded = |a: &str, b: &str| -> Ordering {
        let folded = |key: &str| key.to_ascii_lowercase();
        folded(a).cmp(&folded(b))
    };
    let names = KeyRangeLock::<str, _>::ordered_by(folded);
    let held = names.write(point("Anna"));
    assert!(names.try_read(point("ANNA")).is_none());
    assert!(names.try_read(point("Annb")).is_some());
    drop(held);
}

#[test]
fn prefixes_are_ranges() {
    let table = KeyRangeLock::<[u8]>::new();
    let held = table.write(prefix(&[1, 255]));
    assert!(table.try_read(point([1, 255].as_slice())).is_none());
    assert!(
        table
            .try_read(point([1, 255, 255, 255].as_slice()))
            .is_none()
    );
    assert!(table.try_read(point([2].as_slice())).is_some());
    assert!(table.try_read(point([1, 254, 255].as_slice())).is_some());
    drop(held);
    let last = table.write(prefix(&[255, 255]));
    assert!(table.try_read(point([255, 255, 7].as_slice())).is_none());
    assert!(table.try_read(point([255, 254].as_slice())).is_some());
    drop(last);
    let all = table.write(prefix(&[]));
    assert!(table.try_read(point([].as_slice())).is_none());
    drop(all);
}

#[test]
fn a_listing_is_printed() {
    let table = KeyRangeLock::<str>::new();
    let held = table.write(between("a", "c"));
    let reads = std::thread::scope(|scope| {
        let waits = scope.spawn(|| drop(table.read(point("b"))));
        while table.snapshot().waiters.is_empty() {
            std::thread::yield_now();
        }
        let printed = table.snapshot().to_string();
        drop(held);
        waits.join().expect("it does not panic");
        printed
    });
    let lines: Vec<_> = reads.lines().collect();
    assert_eq!(
        (lines[0], lines[2]),
        ("held by 1", "awaited by 1"),
        "{reads}"
    );
    assert!(lines[1].ends_with(r#": "a".."c" exclusive"#), "{reads}");
    assert!(
        lines[3].contains(r#": "b"..="b" shared, behind thread "#),
        "{reads}"
    );
    assert!(lines[3].ends_with(r#": "a".."c" exclusive"#), "{reads}");
}

#[test]
fn many_are_held_at_a_time() {
    let table = KeyRangeLock::<[u8]>::new();
    let key = |number: u32| number.wrapping_mul(2_654_435_761).to_be_bytes();
    let held: Vec<_> = (0..1000)
        .map(|n| table.write(point(key(n).as_slice())))
        .collect();
    assert!(table.try_read(point(key(500).as_slice())).is_none());
    assert!(table.try_read(..).is_none());
    drop(held);
    assert!(table.try_write(..).is_some());
}

#[test]
#[cfg(debug_assertions)]
fn a_thread_that_waits_for_itself_is_told() {
    let table = KeyRangeLock::<str>::new();
    let held = table.write(between("a", "c"));
    let waits = std::panic::AssertUnwindSafe(|| drop(table.read(point("b"))));
    let panic = std::panic::catch_unwind(waits).expect_err("it waits for itself");
    let message = panic.downcast_ref::<String>().expect("it says why");
    assert!(message.contains(r#""b"..="b" shared"#), "{message}");
    assert!(message.contains(r#""a".."c" exclusive"#), "{message}");
    assert!(message.contains("basics.rs"), "{message}");
    drop(held);
    assert!(table.try_write(..).is_some());
}
