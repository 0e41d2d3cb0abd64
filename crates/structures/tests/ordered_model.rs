//! Random steps of one thread give what a `BTreeMap` gives.

use proptest::prelude::*;
use spanlock::range::list::ListEx;
use spanlock_structures::ordered::exclusion::Exclusion;
use spanlock_structures::ordered::{ByNode, ByRange, Key, RangeSkipMap};
use spanlock_testkit::exact::Exact;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

#[global_allocator]
static HEAP: Exact = Exact;

#[derive(Debug, Clone)]
enum Step<K> {
    Insert(K, u32),
    GetOrInsert(K, u32),
    Update(K),
    Remove(K),
    /// Only if the value is even.
    RemoveEven(K),
    PopFirst,
    Get(K),
    Ends,
    Range(Bound<K>, Bound<K>),
}

fn bound<K: Debug + Clone + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Bound<K>> {
    prop_oneof![
        key.clone().prop_map(Bound::Included),
        key.prop_map(Bound::Excluded),
        Just(Bound::Unbounded)
    ]
}

fn step<K: Debug + Clone + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Step<K>> {
    let value = 0..100_u32;
    prop_oneof![
        4 => (key.clone(), value.clone()).prop_map(|(key, value)| Step::Insert(key, value)),
        1 => (key.clone(), value).prop_map(|(key, value)| Step::GetOrInsert(key, value)),
        1 => key.clone().prop_map(Step::Update),
        3 => key.clone().prop_map(Step::Remove),
        1 => key.clone().prop_map(Step::RemoveEven),
        1 => Just(Step::PopFirst),
        2 => key.clone().prop_map(Step::Get),
        1 => Just(Step::Ends),
        1 => (bound(key.clone()), bound(key)).prop_map(|(start, end)| Step::Range(start, end)),
    ]
}

/// Whether `BTreeMap::range` takes the bounds: it panics for reversed ones.
fn is_ordered<K: Ord>(start: &Bound<K>, end: &Bound<K>) -> bool {
    match (start, end) {
        (Bound::Excluded(start), Bound::Excluded(end)) => start < end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start <= end,
        _ => true,
    }
}

fn agree<K: Key + Clone + Debug, X: Exclusion + Default>(steps: &[Step<K>]) {
    let map = RangeSkipMap::<K, u32, X>::new();
    let mut model = BTreeMap::new();
    let owned = |entry: Option<(&K, &u32)>| entry.map(|(key, value)| (key.clone(), *value));
    for step in steps {
        let view = map.pin();
        match step.clone() {
            Step::Insert(key, value) => {
                assert_eq!(
                    view.insert(key.clone(), value).copied(),
                    model.insert(key, value)
                );
            }
            Step::GetOrInsert(key, value) => {
                let found = *view.get_or_insert_with(key.clone(), || value);
                assert_eq!(found, *model.entry(key).or_insert(value));
            }
            Step::Update(key) => {
                let updated = view.update(&key, |value| value + 1).copied();
                let expected = model.get_mut(&key).map(|value| {
                    *value += 1;
                    *value
                });
                assert_eq!(updated, expected);
            }
            Step::Remove(key) => {
                assert_eq!(owned(view.remove(&key)), model.remove_entry(&key));
            }
            Step::RemoveEven(key) => {
                let removed = owned(view.remove_if(&key, |value| value % 2 == 0));
                let is_even = model.get(&key).is_some_and(|value| value % 2 == 0);
                let expected = is_even.then(|| model.remove_entry(&key)).flatten();
                assert_eq!(removed, expected);
            }
            Step::PopFirst => assert_eq!(owned(view.pop_first()), model.pop_first()),
            Step::Get(key) => {
                assert_eq!(view.get(&key), model.get(&key));
                assert_eq!(view.contains(&key), model.contains_key(&key));
            }
            Step::Ends => {
                assert_eq!(view.first(), model.first_key_value());
                assert_eq!(view.last(), model.last_key_value());
                assert_eq!(view.is_empty(), model.is_empty());
            }
            Step::Range(start, end) => {
                let ordered = is_ordered(&start, &end);
                let found: Vec<_> = view.range((start.clone(), end.clone())).collect();
                let expected = ordered.then(|| model.range((start, end)).collect());
                assert_eq!(found, expected.unwrap_or(Vec::new()));
            }
        }
    }
    assert!(map.pin().iter().eq(&model));
    assert_eq!(format!("{map:?}"), format!("{model:?}"));
}

fn texts() -> impl Strategy<Value = String> + Clone {
    // Texts that begin alike have one position.
    "(beginning)?[ab]{0,2}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn numbers_under_a_range_lock(steps in proptest::collection::vec(step(0..20_u64), 0..120)) {
        agree::<_, ByRange<ListEx>>(&steps);
    }

    #[test]
    fn numbers_under_locks_in_nodes(steps in proptest::collection::vec(step(-10..10_i32), 0..120)) {
        agree::<_, ByNode>(&steps);
    }

    #[test]
    fn texts_under_a_range_lock(steps in proptest::collection::vec(step(texts()), 0..80)) {
        agree::<_, ByRange<ListEx>>(&steps);
    }
}

#[test]
fn the_ends_of_all_positions() {
    let map = RangeSkipMap::<u64, u32>::new();
    let view = map.pin();
    for key in [0, 1, u64::MAX - 1, u64::MAX] {
        assert!(view.insert(key, 0).is_none());
    }
    assert_eq!(view.range(u64::MAX..).count(), 1);
    assert_eq!(view.range(..=0).count(), 1);
    for key in [u64::MAX, 0] {
        assert!(view.remove(&key).is_some());
    }
    assert_eq!(
        format!("{view:?}"),
        format!("{{1: 0, {}: 0}}", u64::MAX - 1)
    );
}

#[test]
fn functions_of_the_caller_may_use_the_map() {
    let map = RangeSkipMap::<u64, u64>::new();
    let view = map.pin();
    view.insert(1, 10);
    let updated = view.update(&1, |value| {
        view.insert(2, *value);
        value + view.get(&2).expect("it was just inserted")
    });
    assert_eq!(updated, Some(&20));
    assert!(view.remove_if(&1, |_| view.remove(&2).is_some()).is_some());
    let made = view.get_or_insert_with(3, || *view.get_or_insert_with(3, || 5) + 1);
    assert_eq!(*made, 5, "the inner insertion came first");
    assert_eq!(format!("{view:?}"), "{3: 5}");
}

/// A change that another change overtakes is made again, with the new value.
#[test]
fn a_change_is_made_again() {
    let map = RangeSkipMap::<u64, u64>::new();
    let view = map.pin();
    view.insert(1, 0);
    let mut calls = 0;
    let updated = view.update(&1, |value| {
        calls += 1;
        if calls == 1 {
            view.insert(1, 100);
        }
        value + 1
    });
    assert_eq!((updated, calls), (Some(&101), 2));
}
