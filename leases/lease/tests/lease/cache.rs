//! The cache of blocks: hits, misses, and what is given up.

use crate::{LONG, open, within_the_watchdog};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{Cache, Memory, Refused};
use spanlock_testkit::exclusion::{Holder, Place};
use spanlock_testkit::watchdog::{HANG, watched};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

fn two(k: u32) -> (Cache, Cache) {
    let engine = Memory::new();
    let cache = |engine| Cache::new(open(engine), k, LONG);
    (cache(engine.clone()), cache(engine))
}

/// The engine numbers its grants.
#[test]
fn what_lies_in_a_block_costs_no_grant() {
    within_the_watchdog(|| {
        let (cache, _) = two(6);
        for (range, mode, grants) in [
            (0..10, Exclusive, 1),
            (10..64, Shared, 1),
            (5..7, Exclusive, 1),
            (64..65, Exclusive, 2),
        ] {
            let held = cache.lock_blocking(range, mode).unwrap();
            assert_eq!(held.fence().counter, grants);
            assert_eq!(cache.blocks() as u64, grants);
        }
    });
}

#[test]
fn threads_of_one_machine_exclude_each_other_within_a_block() {
    within_the_watchdog(|| {
        let (cache, _) = two(6);
        let held = cache.lock_blocking(0..10, Exclusive).unwrap();
        let waits = thread::scope(|scope| {
            let other = scope.spawn(|| cache.lock_blocking(9..12, Shared).unwrap().fence());
            drop(cache.lock_blocking(10..12, Exclusive).unwrap());
            assert!(!other.is_finished());
            let fence = held.fence();
            drop(held);
            (fence, other.join().unwrap())
        });
        assert_eq!(waits.0, waits.1);
    });
}

/// Not before those who hold parts of it have ended, and newcomers do not get in.
#[test]
fn another_machine_gets_a_block_when_its_holders_have_ended() {
    within_the_watchdog(|| {
        let (a, b) = two(6);
        let held = a.lock_blocking(0..10, Exclusive).unwrap();
        let fence = held.fence();
        thread::scope(|scope| {
            let other = scope.spawn(|| b.lock_blocking(40..50, Exclusive).unwrap().fence());
            while a.blocks() > 0 {
                thread::yield_now();
            }
            let newcomer = scope.spawn(|| a.lock_blocking(20..30, Exclusive).unwrap().fence());
            assert!(!other.is_finished() && !newcomer.is_finished());
            assert_eq!(held.check(), Ok(()));
            drop(held);
            let (other, newcomer) = (other.join().unwrap(), newcomer.join().unwrap());
            assert!(other > fence && newcomer > fence);
        });
    });
}

/// What a machine has itself is in its way as well, and is given up.
#[test]
fn a_range_over_two_blocks_and_a_change_of_mode_are_misses() {
    within_the_watchdog(|| {
        let (cache, _) = two(4);
        drop(cache.lock_blocking(0..1, Shared).unwrap());
        drop(cache.lock_blocking(16..17, Exclusive).unwrap());
        let over = cache.lock_blocking(15..17, Exclusive).unwrap();
        assert_eq!(cache.blocks(), 1);
        drop(over);
        drop(cache.lock_blocking(0..16, Exclusive).unwrap());
        drop(cache.lock_blocking(.., Exclusive).unwrap());
        assert_eq!(cache.blocks(), 1);
        assert!(matches!(
            cache.lock_blocking(3..3, Shared),
            Err(Refused::Empty)
        ));
    });
}

#[test]
fn machines_that_read_keep_their_blocks() {
    within_the_watchdog(|| {
        let (a, b) = two(6);
        let (first, second) = (
            a.lock_blocking(0..10, Shared).unwrap(),
            b.lock_blocking(5..20, Shared).unwrap(),
        );
        assert_eq!((a.blocks(), b.blocks()), (1, 1));
        drop((first, second));
    });
}

#[test]
fn what_a_cache_has_is_free_when_it_is_dropped_or_told_to_give_up() {
    within_the_watchdog(|| {
        let engine = Memory::new();
        let (a, b) = (Cache::new(open(engine.clone()), 6, LONG), open(engine));
        drop(a.lock_blocking(0..10, Exclusive).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(a.give_up());
        let all = b
            .acquire(.., Exclusive, LONG)
            .within(Duration::ZERO)
            .wait()
            .unwrap();
        all.release().wait().unwrap();
        drop(a.lock_blocking(0..10, Exclusive).unwrap());
        let next = b.acquire(.., Exclusive, LONG).start();
        drop(a);
        drop(next.wait().unwrap());
    });
}

/// A future may be dropped at any time. What is held then is held, and whoever wishes for it gets it afterwards.
#[test]
fn a_giving_up_that_is_dropped_takes_nothing_from_holders() {
    within_the_watchdog(|| {
        let engine = Memory::new();
        let (a, b) = (Cache::new(open(engine.clone()), 6, LONG), open(engine));
        let held = a.lock_blocking(0..10, Exclusive).unwrap();
        {
            let mut giving_up = pin!(a.give_up());
            let mut context = Context::from_waker(Waker::noop());
            assert!(giving_up.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!((held.check(), a.blocks()), (Ok(()), 0));
        // More than one round of the thread that keeps the leases.
        for _ in 0..10 {
            let all = b.acquire(.., Exclusive, LONG).within(Duration::ZERO);
            assert!(all.wait().is_err());
        }
        let fence = held.fence();
        drop(held);
        let all = b.acquire(.., Exclusive, LONG).wait().unwrap();
        assert!(all.fence() > fence);
        all.release().wait().unwrap();
        drop(a.lock_blocking(0..10, Exclusive).unwrap());
    });
}

/// Three machines with two threads each, over ranges that lie in and across blocks.
#[test]
fn holders_that_exclude_each_other_never_meet() {
    let (engine, steps) = (Memory::new(), AtomicU64::new(0));
    let places: Vec<Place> = (0..32).map(|_| Place::default()).collect();
    let caches: Vec<Cache> = (0..3)
        .map(|_| Cache::new(open(engine.clone()), 3, LONG))
        .collect();
    let work = |cache: &Cache, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..100 {
            let first = random.u64(..24);
            let range = first..first + 1 + random.u64(..6);
            let mode = if random.bool() { Shared } else { Exclusive };
            let held = cache.lock_blocking(range, mode).unwrap();
            let holder = match mode {
                Shared => Holder::Reader,
                Exclusive => Holder::Writer(u32::try_from(seed).expect("a small number")),
            };
            let inside = held.span().start() as usize..=held.span().last() as usize;
            for place in &places[inside.clone()] {
                place.enter(holder).expect("nobody is in the way");
            }
            // Long enough for others to come, if they can.
            for _ in 0..random.u32(..3) {
                thread::yield_now();
            }
            for place in &places[inside] {
                place.leave(holder).expect("nobody came");
            }
            steps.fetch_add(1, Relaxed);
        }
    };
    watched(
        HANG,
        || steps.load(Relaxed),
        |steps| format!("after {steps} steps"),
        || {
            thread::scope(|scope| {
                for (at, cache) in caches.iter().enumerate() {
                    for thread in 0..2 {
                        let work = &work;
                        scope.spawn(move || work(cache, 2 * at as u64 + thread));
                    }
                }
            });
        },
    );
}
