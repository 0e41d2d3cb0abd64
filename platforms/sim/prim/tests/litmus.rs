//! The store buffer: what threads may see of each other's stores, by random schedules.

use prim_sim::atomic::{AtomicU64, Ordering, fence, fence_after_rmw};
use prim_sim::barrier;
use prim_sim::{Fuzz, Machine, Rmw, Setup, run, thread};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Default)]
#[repr(align(64))]
struct Word(AtomicU64);

#[derive(Default)]
struct Pair {
    x: Word,
    y: Word,
}

impl Pair {
    fn swapped(&self) -> [&AtomicU64; 2] {
        [&self.y.0, &self.x.0]
    }

    fn straight(&self) -> [&AtomicU64; 2] {
        [&self.x.0, &self.y.0]
    }
}

type Side = fn([&AtomicU64; 2]) -> u64;

/// What the two threads return, over many schedules. The second sees the words in the order that the test names.
fn outcomes(
    rmw: Rmw,
    one: Side,
    order: fn(&Pair) -> [&AtomicU64; 2],
    other: Side,
) -> BTreeSet<(u64, u64)> {
    let outcome = |seed| {
        let setup = Setup {
            seed,
            rmw,
            fuzz: Fuzz {
                jitter: 300,
                drain: 1000,
                ..Fuzz::default()
            },
            ..Setup::new(Machine::find("xeon-2x10x2").unwrap())
        };
        let ended = run(&setup, move || {
            let pair = Arc::new(Pair::default());
            let theirs = Arc::clone(&pair);
            // Both start at about the same time.
            let one = thread::spawn(move || one(theirs.straight()));
            let other = thread::spawn(move || other(order(&pair)));
            (one.join().unwrap(), other.join().unwrap())
        });
        ended.unwrap_or_else(|failure| panic!("{failure}")).value
    };
    (0..400).map(outcome).collect()
}

fn store_load([mine, theirs]: [&AtomicU64; 2]) -> u64 {
    mine.store(1, Ordering::Release);
    theirs.load(Ordering::Acquire)
}

fn store_fence_load([mine, theirs]: [&AtomicU64; 2]) -> u64 {
    mine.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    theirs.load(Ordering::Relaxed)
}

fn swap_load([mine, theirs]: [&AtomicU64; 2]) -> u64 {
    mine.swap(1, Ordering::AcqRel);
    theirs.load(Ordering::Acquire)
}

fn swap_fence_load([mine, theirs]: [&AtomicU64; 2]) -> u64 {
    mine.swap(1, Ordering::AcqRel);
    fence_after_rmw();
    theirs.load(Ordering::Acquire)
}

fn store_store([data, flag]: [&AtomicU64; 2]) -> u64 {
    data.store(1, Ordering::Relaxed);
    flag.store(1, Ordering::Release);
    0
}

fn load_load([data, flag]: [&AtomicU64; 2]) -> u64 {
    let mut loads = (0..30).map(|_| flag.load(Ordering::Acquire));
    let flag = loads.find(|&flag| flag != 0).unwrap_or(0);
    flag * 2 + data.load(Ordering::Relaxed)
}

#[test]
fn a_store_is_overtaken_by_a_later_load_unless_there_is_a_fence() {
    let without = outcomes(Rmw::Fences, store_load, Pair::swapped, store_load);
    assert_eq!(without, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
    let with = outcomes(
        Rmw::Fences,
        store_fence_load,
        Pair::swapped,
        store_fence_load,
    );
    assert_eq!(with, BTreeSet::from([(0, 1), (1, 0), (1, 1)]));
    let half = outcomes(Rmw::Fences, store_fence_load, Pair::swapped, store_load);
    assert!(half.contains(&(0, 0)), "both sides need one");
}

#[test]
fn a_read_modify_write_is_a_fence_where_it_is_one() {
    let both = |rmw, side| outcomes(rmw, side, Pair::swapped, side).contains(&(0, 0));
    assert!(!both(Rmw::Fences, swap_load));
    assert!(!both(Rmw::Fences, swap_fence_load));
    assert!(both(Rmw::Buffered, swap_load));
    assert!(!both(Rmw::Buffered, swap_fence_load));
}

fn store_light_load([mine, theirs]: [&AtomicU64; 2]) -> u64 {
    mine.store(1, Ordering::Relaxed);
    barrier::light();
    theirs.load(Ordering::Relaxed)
}

fn store_heavy_load([mine, theirs]: [&AtomicU64; 2]) -> u64 {
    mine.store(1, Ordering::Relaxed);
    barrier::heavy();
    theirs.load(Ordering::Relaxed)
}

#[test]
fn the_heavy_half_of_a_fence_orders_the_light_half() {
    for rmw in [Rmw::Fences, Rmw::Buffered] {
        let both = |one, other| outcomes(rmw, one, Pair::swapped, other);
        let asymmetric = both(store_light_load, store_heavy_load);
        assert!(!asymmetric.contains(&(0, 0)), "{asymmetric:?}");
        assert!(both(store_light_load, store_light_load).contains(&(0, 0)));
        assert!(both(store_light_load, store_fence_load).contains(&(0, 0)));
    }
}

#[test]
fn stores_become_visible_in_order() {
    for rmw in [Rmw::Fences, Rmw::Buffered] {
        let seen = outcomes(rmw, store_store, Pair::straight, load_load);
        assert!(seen.contains(&(0, 3)), "{seen:?}");
        assert!(
            !seen.contains(&(0, 2)),
            "the flag is seen before the data: {seen:?}"
        );
    }
}

#[test]
fn a_thread_sees_its_own_stores_at_once() {
    fn own([mine, theirs]: [&AtomicU64; 2]) -> u64 {
        mine.store(1, Ordering::Relaxed);
        mine.store(2, Ordering::Relaxed);
        mine.load(Ordering::Relaxed) * 10 + theirs.load(Ordering::Relaxed)
    }
    let seen = outcomes(Rmw::Fences, own, Pair::swapped, own);
    assert!(
        seen.contains(&(20, 20)),
        "and may miss the other's: {seen:?}"
    );
    assert!(seen.iter().all(|(a, b)| a / 10 == 2 && b / 10 == 2));
}

#[test]
fn no_addition_is_lost_and_stores_to_one_word_have_one_order() {
    fn add([word, _]: [&AtomicU64; 2]) -> u64 {
        for _ in 0..20 {
            word.fetch_add(1, Ordering::Relaxed);
        }
        word.load(Ordering::Relaxed)
    }
    for rmw in [Rmw::Fences, Rmw::Buffered] {
        let sums = outcomes(rmw, add, Pair::straight, add);
        assert!(sums.iter().all(|(a, b)| *a.max(b) == 40), "{sums:?}");
    }
}

#[test]
fn a_word_may_go_while_stores_to_it_are_pending() {
    let setup = Setup {
        fuzz: Fuzz {
            drain: 100_000,
            ..Fuzz::default()
        },
        ..Setup::new(Machine::find("small-1x2x1").unwrap())
    };
    let ended = run(&setup, || {
        let mut word = AtomicU64::new(0);
        word.store(7, Ordering::Relaxed);
        assert_eq!(*word.get_mut(), 7);
        let moved = Box::new(word);
        assert_eq!(moved.load(Ordering::Relaxed), 7);
        moved.store(8, Ordering::Relaxed);
        drop(moved);
        fence(Ordering::SeqCst);
    });
    assert!(ended.is_ok());
}
