//! What the measurements of large objects are made of.

#[path = "../../src/blob/lock.rs"]
mod lock;
#[path = "../../src/blob/stored.rs"]
mod stored;

use lock::{Alone, Timed, took};
use spanlock_structures::blob::AliasArea;
use spanlock_structures::blob::raw::Ranges;
use spanlock_workbench::blob::RECORD_BYTES;
use std::time::Duration;
use stored::{Stored, is_record};

#[test]
fn a_thread_alone_holds_one_range_at_a_time() {
    let lock = Timed(Alone::default());
    let held = lock.try_take(0..1);
    assert!(held.is_some() && lock.try_take(5..6).is_none());
    drop(held);
    assert!(lock.try_take(5..6).is_some());
    assert!(took() > Duration::ZERO);
    assert_eq!(took(), Duration::ZERO);
}

#[test]
fn a_foreign_byte_is_seen_and_so_are_extents_in_another_order() {
    let stored = Stored::of(2).unwrap();
    let area = AliasArea::new(&stored.pool, 4 * RECORD_BYTES).unwrap();
    let [first, second] = &stored.records[..] else {
        panic!("there are two")
    };
    let copy = |extents| area.map(extents).unwrap().to_vec();
    let mut bytes = copy(first);
    assert_eq!(bytes.len(), RECORD_BYTES);
    assert!(is_record(&bytes, 0) && !is_record(&bytes, 1));
    assert!(is_record(&copy(second), 1));
    for at in [0, 4095, RECORD_BYTES / 2, RECORD_BYTES - 1] {
        bytes[at] ^= 1;
        assert!(!is_record(&bytes, 0));
        bytes[at] ^= 1;
    }
    let (head, tail) = bytes.split_at_mut(4096);
    head.swap_with_slice(&mut tail[..4096]);
    assert!(!is_record(&bytes, 0));
}
