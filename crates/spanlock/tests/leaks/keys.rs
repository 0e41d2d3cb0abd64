//! What locks over byte strings keep.

use super::{FLAT, allocations_when_warm, growth};
use spanlock::range::Owner;
use spanlock::range::keys::{KeyRangeLock, between, point};
use std::fmt::Write;

/// How many keys are locked; `SPANLOCK_KEYS` has another number.
fn count() -> u64 {
    let count = std::env::var("SPANLOCK_KEYS").ok();
    count.map_or(100_000, |count| count.parse().expect("a number"))
}

/// A key with that number, of some 20 to 120 bytes.
fn write_key(key: &mut String, number: u64) {
    key.clear();
    let length = (number % 100) as usize;
    write!(key, "key {number:016} {:length$}", "").expect("a string takes it");
}

/// Keys that differ are written where earlier ones were.
pub fn warm_threads_allocate_nothing() {
    let table = KeyRangeLock::<str>::new();
    let (mut key, mut end, mut number) = (String::new(), String::new(), 0);
    let mut next = || {
        number += 1;
        write_key(&mut key, number);
        write_key(&mut end, number + 7);
        drop(table.write(point(&key)));
        drop(table.read(point(&key)));
        drop(table.read(between(&key, &end)));
        let held = table.write(point(&key));
        drop(table.write(point(&end)));
        drop(held);
    };
    // Until each cell had a long key.
    super::repeat(100_000, &mut next);
    assert_eq!(allocations_when_warm(next), 0);
}

pub fn many_keys_leave_nothing() {
    let table = KeyRangeLock::<str>::new();
    let owner = Owner::new();
    let (mut key, mut end, mut number) = (String::new(), String::new(), 0);
    let grown = growth(count(), || {
        number += 1;
        write_key(&mut key, number);
        write_key(&mut end, number + 7);
        let held = table.write(point(&key));
        drop(table.try_read(between(&key, &end)));
        drop(held);
        if number % 16 == 0 {
            let mut held = table
                .by(&owner)
                .read(between(&key, &end))
                .expect("nobody cancels it");
            held.upgrade().expect("nobody is in the way");
            held.release(point(&key));
        }
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// Large keys are not kept.
pub fn large_keys_leave_nothing() {
    let table = KeyRangeLock::<[u8]>::new();
    let mut large = vec![0_u8; 1 << 16];
    let grown = growth(300, || {
        large[0] = large[0].wrapping_add(1);
        drop(table.write(point(large.as_slice())));
        // Then each node of the pool bears another key.
        for small in 0..200_u8 {
            drop(table.write(point([small].as_slice())));
        }
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}
