//! Many writers of one file.

use crate::cases::{fresh, reopen};
use spanlock::range::raw::RawRangeLock;
use spanlock_structures::store::{Geometry, Memory, Options, Store, locks, make};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Operations of each thread: `SPANLOCK_STRESS_OPS`, or a few.
fn operations() -> u64 {
    spanlock_testkit::setting("SPANLOCK_STRESS_OPS", 2000)
}

#[test]
fn byte_disjoint_writers_of_the_same_pages_lose_nothing() {
    bytes_of_each(locks::slots);
    bytes_of_each(locks::list_rw);
    bytes_of_each(locks::srl_tree);
    bytes_of_each(locks::inode);
}

fn bytes_of_each<L: RawRangeLock + Send + Sync>(lock: fn() -> L) {
    let medium = Arc::new(Memory::new(1 << 20));
    make(&medium, &Geometry::default()).expect("it fits");
    let (store, _) =
        Store::open(Arc::clone(&medium), Options::with_lock(lock)).expect("it is sound");
    let file = store.create("/shared", 0o644).expect("room");
    thread::scope(|scope| {
        for number in 0..4_u8 {
            let file = &file;
            scope.spawn(move || {
                for round in 0..operations() {
                    let at = round % 300 * 40 + u64::from(number) * 10;
                    file.write_at(&[number + 1; 10], at)
                        .expect("space comes back");
                }
            });
        }
    });
    let mut content = vec![0; 12_000];
    assert_eq!(file.read_at(&mut content, 0).expect("sound"), 12_000);
    for (at, byte) in content.into_iter().enumerate() {
        assert_eq!(usize::from(byte), at % 40 / 10 + 1, "byte {at}");
    }
}

#[test]
fn appends_overlap_neither_each_other_nor_truncations() {
    let (medium, store) = fresh(8 << 20);
    let file = store.create("/journal", 0o644).expect("room");
    let each = operations().min(2000);
    thread::scope(|scope| {
        for number in 0..3_u64 {
            let file = &file;
            scope.spawn(move || {
                for round in 0..each {
                    let record = (number * each + round + 1).to_le_bytes();
                    file.append(&record).expect("room");
                }
            });
        }
    });
    drop((file, store));
    let store = reopen(&medium);
    let file = store.open_file("/journal").expect("it is there");
    let mut content = vec![0; 3 * each as usize * 8 + 1];
    assert_eq!(
        file.read_at(&mut content, 0).expect("sound"),
        3 * each as usize * 8
    );
    let mut records: Vec<_> = content
        .chunks_exact(8)
        .map(|record| u64::from_le_bytes(record.try_into().expect("8")))
        .collect();
    records.sort_unstable();
    assert!(records.into_iter().eq(1..=3 * each));
}

#[test]
fn readers_see_whole_writes_while_the_file_shrinks_and_grows() {
    let (_, store) = fresh(4 << 20);
    let file = store.create("/shared", 0o644).expect("room");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 1..3_u8 {
            let (file, over) = (&file, &over);
            scope.spawn(move || {
                for _ in 0..operations() {
                    file.write_at(&[number; 10_000], 1000)
                        .expect("space comes back");
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                file.truncate(5000).expect("space comes back");
                file.append(&[9; 100]).expect("space comes back");
            }
        });
        scope.spawn(|| {
            let mut seen = vec![0; 10_000];
            while !over.load(Ordering::Relaxed) {
                let length = file.read_at(&mut seen, 1000).expect("sound");
                let first = seen.first().copied().unwrap_or_default();
                let mixed = seen[..length.min(4000)].iter().any(|&byte| byte != first);
                assert!(!mixed, "two writes at a time");
            }
        });
    });
}

#[test]
fn files_come_and_go_under_many_threads() {
    let (medium, store) = fresh(4 << 20);
    thread::scope(|scope| {
        for number in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let (path, other) = (format!("/f{number}"), format!("/g{number}"));
                for _ in 0..operations() / 10 {
                    let file = store.create(&path, 0o644).expect("inodes come back");
                    file.write_at(&[number; 9000], 0).expect("space comes back");
                    store.rename(&path, &other).expect("it is there");
                    store.unlink(&other).expect("it is there");
                    let mut byte = [0];
                    file.read_at(&mut byte, 8999).expect("it is open");
                    assert_eq!(byte, [number]);
                }
            });
        }
    });
    store.sync().expect("memory");
    let space = store.status().space;
    assert_eq!(space.free_inodes, space.inodes - 2);
    drop(store);
    let store = reopen(&medium);
    assert!(store.readdir("/").expect("the root").is_empty());
}

/// Threads of two groups add a page and cut it off: a count that meets them counts no page away that it has not
/// counted.
#[test]
fn pages_are_counted_beside_a_truncation() {
    let (_, store) = fresh(8 << 20);
    let file = store.create("/file", 0o644).expect("room");
    // So many that the groups have logs of their own.
    let write = |page: u64| {
        file.write_at(b"x", page * 4096).expect("room");
    };
    (0..100).for_each(write);
    file.truncate(0).expect("room");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let write = || (0..operations()).for_each(|_| write(0));
        let writers = [scope.spawn(write), scope.spawn(write)];
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                file.truncate(0).expect("room");
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let pages = file.stat().expect("it is there").pages;
                assert!(pages <= 2 * operations(), "{pages}");
            }
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        over.store(true, Ordering::Relaxed);
    });
}
