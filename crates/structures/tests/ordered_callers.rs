//! Code of the caller in the middle of an operation: it compares and clones keys, and tells the bounds of a range.

use spanlock_structures::ordered::{Key, RangeSkipMap};
use spanlock_testkit::exact::Exact;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

/// A number. What a test has put into `COMPARED` is called with the two of each comparison.
#[derive(Debug, PartialEq, Eq)]
struct Number(u64);

type Compared = Box<dyn FnMut(u64, u64)>;

thread_local! {
    static COMPARED: RefCell<Option<Compared>> = const { RefCell::new(None) };
}

fn when_compared(f: impl FnMut(u64, u64) + 'static) {
    COMPARED.set(Some(Box::new(f)));
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        // Taken out, so that it is not called again from inside.
        if let Some(mut f) = COMPARED.take() {
            f(self.0, other.0);
            COMPARED.set(Some(f));
        }
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// SAFETY: the order is that of the numbers.
unsafe impl Key for Number {
    fn position(&self) -> u64 {
        self.0
    }
}

type Map = RangeSkipMap<Number, u64>;

fn map_of(keys: impl IntoIterator<Item = u64>) -> Map {
    keys.into_iter().map(|key| (Number(key), key)).collect()
}

fn keys_of(map: &Map) -> Vec<u64> {
    map.pin().iter().map(|(key, _)| key.0).collect()
}

/// A range that ends elsewhere the next time.
struct Shrinking(Cell<usize>);

impl RangeBounds<u64> for Shrinking {
    fn start_bound(&self) -> Bound<&u64> {
        Bound::Unbounded
    }

    fn end_bound(&self) -> Bound<&u64> {
        let time = self.0.replace(self.0.get() + 1);
        Bound::Included(&[3, 0][time.min(1)])
    }
}

/// A range that an operation asked again could free nodes that are still linked.
#[test]
fn an_operation_asks_a_range_once() {
    let map: RangeSkipMap<u64, u64> = (1..=4).map(|key| (key, key)).collect();
    let view = map.pin();
    let range = || Shrinking(Cell::new(0));
    assert_eq!(view.snapshot(range()), [(&1, &1), (&2, &2), (&3, &3)]);
    assert_eq!(view.remove_range(range()), [(&1, &1), (&2, &2), (&3, &3)]);
    assert!(view.iter().eq([(&4, &4)]));
}

#[test]
fn a_comparison_that_panics_leaves_the_map_as_it_was() {
    for good in 0.. {
        let map = map_of(1..=5);
        let mut left = good;
        when_compared(move |_, _| {
            assert!(left > 0, "a comparison that panics");
            left -= 1;
        });
        let removed = catch_unwind(AssertUnwindSafe(|| {
            map.pin().remove_range(Number(2)..=Number(4)).len()
        }));
        COMPARED.set(None);
        if let Ok(removed) = removed {
            assert_eq!((removed, keys_of(&map)), (3, vec![1, 5]));
            return;
        }
        assert_eq!(keys_of(&map), [1, 2, 3, 4, 5], "after {good} comparisons");
        assert_eq!(map.pin().insert(Number(3), 9), Some(&3));
    }
}

/// Between two keys that come and go the range is never empty. So a removal of the range removes something.
#[test]
fn a_range_that_is_never_empty_is_not_found_empty() {
    static MAP: std::sync::OnceLock<Map> = std::sync::OnceLock::new();
    let map = MAP.get_or_init(|| map_of([2]));
    let mut is_first = true;
    when_compared(move |key, other| {
        // The search has ended, and the walk along the range begins.
        if (key, other) == (2, 3) && std::mem::take(&mut is_first) {
            let come_and_go = || {
                map.pin().insert(Number(1), 1);
                map.pin().remove(&Number(2)).is_some()
            };
            assert!(thread::spawn(come_and_go).join().expect("no panic"));
        }
    });
    let view = map.pin();
    let removed = view.remove_range(Number(1)..=Number(3));
    COMPARED.set(None);
    assert_eq!(removed, [(&Number(1), &1)]);
}

/// A key whose clones are other keys.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Growing(u64);

impl Clone for Growing {
    fn clone(&self) -> Self {
        Self(self.0 + 10)
    }
}

// SAFETY: the order is that of the numbers.
unsafe impl Key for Growing {
    fn position(&self) -> u64 {
        self.0
    }
}

/// In the place of the key that it was made of, another would break the order.
#[test]
fn a_clone_that_is_another_key_is_refused() {
    let map: RangeSkipMap<Growing, u64> =
        [1, 2].map(|key| (Growing(key), key)).into_iter().collect();
    let one = catch_unwind(AssertUnwindSafe(|| {
        map.pin().update(&Growing(1), |_| 9).copied()
    }));
    let key = [&Growing(1)];
    let several = catch_unwind(AssertUnwindSafe(|| {
        map.pin().update_many(key, |_| [9]).is_some()
    }));
    assert!(one.is_err() && several.is_err());
    let view = map.pin();
    assert!(
        view.iter()
            .map(|(key, value)| (key.0, *value))
            .eq([(1, 1), (2, 2)])
    );
}
