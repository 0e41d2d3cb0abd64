//! Operations on many keys in one step: alone they do what a `BTreeMap` does, and among threads nobody who locks sees a
//! part of one.

use fastrand::Rng;
use proptest::prelude::*;
use spanlock::range::list::ListEx;
use spanlock::range::raw::RawRangeMutex;
use spanlock::range::slots::RawSlots;
use spanlock_structures::ordered::{ByRange, RangeSkipMap, RangeSkipSet};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::setting;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

#[derive(Debug, Clone)]
enum Step {
    Insert(u64, u32),
    Remove(u64),
    RemoveRange(Bound<u64>, Bound<u64>),
    Snapshot(Bound<u64>, Bound<u64>),
    /// The two values change places.
    Swap(u64, u64),
}

fn bound() -> impl Strategy<Value = Bound<u64>> {
    prop_oneof![
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded)
    ]
}

/// Near each other and far: predecessors are in one range, or in several.
fn key() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![
        0..12_u64,
        (1..8_u64).prop_map(|key| key << 40),
        Just(u64::MAX)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (key(), 0..100_u32).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => key().prop_map(Step::Remove),
        1 => (bound(), bound()).prop_map(|(start, end)| Step::RemoveRange(start, end)),
        1 => (bound(), bound()).prop_map(|(start, end)| Step::Snapshot(start, end)),
        2 => (key(), key()).prop_map(|(one, other)| Step::Swap(one, other)),
    ]
}

/// The entries of a range, which may be reversed.
fn within(model: &BTreeMap<u64, u32>, range: (Bound<u64>, Bound<u64>)) -> Vec<(u64, u32)> {
    let entries = model.iter().map(|(key, value)| (*key, *value));
    entries
        .filter(|(key, _)| std::ops::RangeBounds::contains(&range, key))
        .collect()
}

fn agree<L: RawRangeMutex + Default>(steps: &[Step]) {
    let map = RangeSkipMap::<u64, u32, ByRange<L>>::new();
    let mut model = BTreeMap::new();
    let owned = |entries: Vec<(&u64, &u32)>| -> Vec<_> {
        entries
            .into_iter()
            .map(|(key, value)| (*key, *value))
            .collect()
    };
    for step in steps {
        let view = map.pin();
        match *step {
            Step::Insert(key, value) => {
                assert_eq!(view.insert(key, value).copied(), model.insert(key, value));
            }
            Step::Remove(key) => {
                assert_eq!(
                    view.remove(&key).map(|(_, value)| *value),
                    model.remove(&key)
                );
            }
            Step::RemoveRange(start, end) => {
                let gone = within(&model, (start, end));
                assert_eq!(owned(view.remove_range((start, end))), gone);
                model.retain(|key, _| !gone.iter().any(|(there, _)| there == key));
            }
            Step::Snapshot(start, end) => {
                assert_eq!(
                    owned(view.snapshot((start, end))),
                    within(&model, (start, end))
                );
            }
            Step::Swap(one, other) if one == other => {}
            Step::Swap(one, other) => {
                let swapped = view.update_many([&one, &other], |[one, other]| [*other, *one]);
                let before = model.get(&one).copied().zip(model.get(&other).copied());
                assert_eq!(swapped.map(|[one, other]| (*other, *one)), before);
                if let Some((first, second)) = before {
                    model.extend([(one, second), (other, first)]);
                }
            }
        }
        assert_eq!(view.first(), model.first_key_value());
        assert_eq!(view.last(), model.last_key_value());
    }
    assert!(map.pin().iter().eq(&model));
    // A node that is not linked at one of its levels cannot be removed.
    let view = map.pin();
    assert!(model.keys().all(|key| view.remove(key).is_some()) && view.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn many_keys_under_slots(steps in proptest::collection::vec(step(), 0..120)) {
        agree::<RawSlots>(&steps);
    }

    #[test]
    fn many_keys_under_a_list_lock(steps in proptest::collection::vec(step(), 0..120)) {
        agree::<ListEx>(&steps);
    }
}

#[test]
fn a_set_has_them_too() {
    let set: RangeSkipSet<u64> = (0..10).collect();
    let view = set.pin();
    assert_eq!(view.remove_range(3..=5), [&3, &4, &5]);
    assert_eq!(view.snapshot(2..7), [&2, &6]);
}

#[test]
#[should_panic(expected = "the same key twice")]
fn a_key_comes_once() {
    let map: RangeSkipMap<u64, u64> = [(1, 1)].into_iter().collect();
    let _ = map
        .pin()
        .update_many([&1, &1], |[one, other]| [*one, *other]);
}

/// Threads move amounts between keys, take ranges out and put them back. Whoever locks a range finds all or nothing.
#[test]
fn nobody_who_locks_sees_a_part() {
    const KEYS: u64 = 64;
    let ops = setting("SPANLOCK_STRESS_OPS", 100_000);
    let map: RangeSkipMap<u64, i64> = (0..KEYS).map(|key| (key, 100)).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let movers: Vec<_> = (0..2)
            .map(|seed| {
                let map = &map;
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(seed);
                    for _ in 0..ops / 4 {
                        let (from, to) = (rng.u64(..KEYS / 2), rng.u64(KEYS / 2..KEYS));
                        let view = map.pin();
                        let amount = rng.i64(1..9);
                        view.update_many([&to, &from], |[to, from]| [to + amount, from - amount]);
                        // One of them alone, so that it finds what it has put back.
                        if seed == 0 && rng.u8(..16) == 0 {
                            let first = rng.u64(..KEYS - 8);
                            let gone = view.remove_range(first..first + 8);
                            assert_eq!(gone.len(), 8);
                            for (key, value) in gone.into_iter().rev() {
                                assert!(view.insert(*key, *value).is_none());
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let view = map.pin();
                let all = view.snapshot(..);
                assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
                if all.len() as u64 == KEYS {
                    let sum: i64 = all.iter().map(|(_, value)| **value).sum();
                    assert_eq!(sum, 100 * KEYS as i64, "a part of a change");
                }
            }
        });
        let results: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(
            results.into_iter().all(|result| result.is_ok()),
            "see above"
        );
    });
    let sum: i64 = map.pin().iter().map(|(_, value)| *value).sum();
    assert_eq!(sum, 100 * KEYS as i64);
}
