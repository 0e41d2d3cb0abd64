//! Several tables.

use super::pool::block_on;
use spanlock::range::keys::{KeySpace, Natural, Table, between, point};
use spanlock::range::raw::Mode::{Exclusive, Shared};
use spanlock::range::{Owner, Refusal};
use std::cmp::Ordering;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

#[test]
fn ranges_of_different_tables_do_not_exclude_each_other() {
    let space = KeySpace::<str>::new();
    let tables = [(); 3].map(|()| space.table(Natural));
    let owners = [(); 3].map(|()| Owner::new());
    let held: Vec<_> = tables
        .iter()
        .zip(&owners)
        .map(|(table, owner)| space.try_lock_many(owner, [(table, between("a", "z"), Exclusive)]))
        .collect();
    assert!(held.iter().all(Result::is_ok));
}

/// As the chapter on keys shows it: the whole range is locked in each part that it touches.
#[test]
fn a_table_in_parts_excludes_as_one_list_does() {
    const ENDS: std::ops::Range<u8> = 0..7;
    let cuts = [2, 4];
    let part = |key: u8| cuts.partition_point(|&cut| cut <= key);
    let (space, whole) = (KeySpace::<u8>::new(), KeySpace::<u8>::new());
    let (parts, one) = (
        [(); 3].map(|()| space.table(Natural)),
        [whole.table(Natural)],
    );
    let requests: Vec<_> = ENDS
        .flat_map(|from| (from + 1..ENDS.end).map(move |to| (from, to)))
        .flat_map(|(from, to)| [Shared, Exclusive].map(|mode| (from, to, mode)))
        .collect();
    let (mine, other) = (Owner::new(), Owner::new());
    for (held, asked) in requests
        .iter()
        .flat_map(|held| requests.iter().map(move |asked| (held, asked)))
    {
        let excludes = |space: &KeySpace<u8>, parts: &[Table<u8>], part: &dyn Fn(u8) -> usize| {
            let lock = |owner, &(from, to, mode): &(u8, u8, _)| {
                let touched = &parts[part(from)..=part(to)];
                space.try_lock_many(owner, touched.iter().map(|part| (part, from..to, mode)))
            };
            let held = lock(&mine, held).expect("nobody is in the way");
            let excludes = lock(&other, asked).is_err();
            drop(held);
            excludes
        };
        let in_parts = excludes(&space, &parts, &part);
        assert_eq!(
            in_parts,
            excludes(&whole, &one, &|_| 0),
            "{held:?} {asked:?}"
        );
    }
}

#[test]
fn all_or_nothing() {
    let space = KeySpace::<str>::new();
    let [first, second] = [(); 2].map(|()| space.table(Natural));
    let taken = second.write(point("m"));
    let owner = Owner::new();
    let wanted = || {
        [
            (&second, between("a", "z"), Shared),
            (&first, between("a", "z"), Exclusive),
            (&first, between("b", "c"), Shared),
        ]
    };
    let refused = space.try_lock_many(&owner, wanted()).map(|_| ());
    assert_eq!(refused, Err(Refusal::Busy));
    assert_eq!(owner.asks_or_holds(), 0);
    assert!(first.try_write(..).is_some());
    drop(taken);
    let held = space
        .lock_many(&owner, wanted())
        .expect("nobody is in the way");
    assert_eq!(
        held.iter().map(|(table, _)| *table).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(held[0].1.pieces().count(), 1);
    assert!(first.try_read(point("b")).is_none());
    assert!(second.try_read(point("b")).is_some());
    assert!(second.try_write(point("b")).is_none());
}

#[test]
fn calls_in_any_order_do_not_deadlock() {
    type Compare = Arc<dyn spanlock::range::keys::Compare<u32>>;
    let space = Arc::new(KeySpace::<u32, Compare>::new());
    let reversed = |a: &u32, b: &u32| -> Ordering { b.cmp(a) };
    let tables: [Table<u32, Compare>; 2] = [
        space.table(Arc::new(Natural)),
        space.table(Arc::new(reversed)),
    ];
    let rounds = if cfg!(miri) { 5 } else { 500 };
    let workers: Vec<_> = (0..4_u32)
        .map(|worker| {
            let (space, tables) = (Arc::clone(&space), tables.clone());
            thread::spawn(move || {
                let owner = Owner::new();
                for round in 0..rounds {
                    let (one, other) = ((round + worker) % 5, (round * worker) % 7);
                    let [first, second] = &tables;
                    let mut wanted = vec![
                        (first, one..=one + 1, Exclusive),
                        (second, other..=other, Shared),
                        (second, one + 9..=one + 9, Exclusive),
                        (first, other + 8..=other + 10, Shared),
                    ];
                    if worker % 2 == 0 {
                        wanted.reverse();
                    }
                    drop(space.lock_many(&owner, wanted).expect("nobody cancels it"));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("it ends");
    }
}

/// What executors spawn goes from thread to thread.
fn is_send(_: &impl Send) {}

#[test]
fn a_task_locks_in_several_tables_all_or_nothing() {
    let space = KeySpace::<str>::new();
    let [first, second] = [(); 2].map(|()| space.table(Natural));
    let owner = Owner::new();
    let wanted = || {
        [
            (&second, between("a", "z"), Shared),
            (&first, between("a", "c"), Exclusive),
        ]
    };
    let taken = second.write(point("m"));
    let soon = Duration::from_millis(2);
    let refused = block_on(space.try_lock_many_async_for(&owner, wanted(), soon)).map(drop);
    assert_eq!(refused, Err(Refusal::Busy));
    {
        let mut waits = pin!(space.lock_many_async(&owner, wanted()));
        let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        assert!(first.try_write(..).is_some(), "it waits with empty hands");
    }
    drop(taken);
    assert_eq!(owner.asks_or_holds(), 0);
    let all = space.lock_many_async(&owner, wanted());
    is_send(&all);
    let held = block_on(all).expect("nobody is in the way");
    let numbers: Vec<_> = held.iter().map(|(table, _)| *table).collect();
    assert_eq!(numbers, [0, 1]);
    assert!(first.try_read(point("b")).is_none() && second.try_write(point("b")).is_none());
    drop(held);
    let nothing: [(&Table<str>, std::ops::RangeFull, _); 0] = [];
    assert!(
        block_on(space.lock_many_async(&owner, nothing))
            .expect("it is nothing")
            .is_empty()
    );
}

#[test]
fn tasks_in_any_order_do_not_deadlock() {
    let space = Arc::new(KeySpace::<u32>::new());
    let tables = [(); 2].map(|()| space.table(Natural));
    let rounds = if cfg!(miri) { 4 } else { 300 };
    let workers: Vec<_> = (0..3_u32)
        .map(|worker| {
            let (space, tables) = (Arc::clone(&space), tables.clone());
            thread::spawn(move || {
                let owner = Owner::new();
                for round in 0..rounds {
                    let (one, other) = ((round + worker) % 3, (round * worker) % 4);
                    let mut wanted = [
                        (&tables[0], one..=one + 1, Exclusive),
                        (&tables[1], other..=other, Exclusive),
                    ];
                    if worker == 1 {
                        wanted.reverse();
                    }
                    drop(block_on(space.lock_many_async(&owner, wanted)).expect("it is granted"));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("no deadlock, no panic");
    }
}
