//! What lives how long: keys, values, and views of threads that exit.

use spanlock_structures::ordered::{RangeSkipMap, RangeSkipSet};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::watchdog::{self, HANG};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

/// A dropped map drops everything that was in it, wherever it is.
#[test]
fn a_dropped_map_drops_all_values() {
    let value = Arc::new(());
    let map = RangeSkipMap::<u64, Arc<()>>::new();
    thread::scope(|scope| {
        for thread in 0..3 {
            let (map, value) = (&map, &value);
            scope.spawn(move || {
                for key in 0..300 {
                    map.pin().insert(key, Arc::clone(value));
                    if key % 3 != 0 {
                        map.pin().remove(&((key + thread) % 300));
                    }
                }
            });
        }
    });
    assert!(Arc::strong_count(&value) > 1);
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// A value that was not inserted is dropped, and one that was replaced stays for as long as the view.
#[test]
fn values_that_are_not_in_the_map() {
    let (first, second) = (Rc::new(1), Rc::new(2));
    let map = RangeSkipMap::<u64, Rc<i32>>::new();
    {
        let view = map.pin();
        view.insert(1, Rc::clone(&first));
        let stays = view.get_or_insert_with(1, || unreachable!("the key is there"));
        assert!(Rc::ptr_eq(stays, &first));
        let replaced = view.insert(1, Rc::clone(&second)).expect("it was there");
        assert!(Rc::ptr_eq(replaced, &first));
        assert_eq!(**stays, 1);
        assert_eq!(Rc::strong_count(&first), 2);
    }
    drop(map);
    assert_eq!(
        (Rc::strong_count(&first), Rc::strong_count(&second)),
        (1, 1)
    );
}

/// Dropped values may use the map.
#[test]
fn a_value_that_removes_another_when_dropped() {
    type Map = Rc<RangeSkipMap<u64, Removes>>;
    struct Removes {
        map: Rc<RefCell<Option<Map>>>,
        key: u64,
    }
    impl Drop for Removes {
        fn drop(&mut self) {
            if let Some(map) = &*self.map.borrow() {
                map.pin().remove(&(self.key + 1));
            }
        }
    }
    let owner = Rc::new(RefCell::new(None));
    let map = Rc::new(RangeSkipMap::new());
    owner.replace(Some(Rc::clone(&map)));
    for key in 0..1000 {
        let map_again = Rc::clone(&owner);
        map.pin().insert(
            key,
            Removes {
                map: map_again,
                key,
            },
        );
    }
    for key in (0..1000).step_by(2) {
        map.pin().remove(&key);
    }
    // A thread of another test may stand on nodes for a while, so removals go on until the first are freed.
    watchdog::watched(
        HANG,
        || (),
        |()| "nothing is freed".to_owned(),
        || {
            while map.pin().iter().count() == 500 {
                let (map_again, key) = (Rc::clone(&owner), 5000);
                map.pin().insert(
                    key,
                    Removes {
                        map: map_again,
                        key,
                    },
                );
                map.pin().remove(&key);
                thread::yield_now();
            }
        },
    );
    owner.replace(None);
}

/// A thread uses the map in the destructor of a thread-local, and keeps a view until then.
#[test]
fn views_of_a_thread_that_exits() {
    static SET: std::sync::LazyLock<RangeSkipSet<u64>> =
        std::sync::LazyLock::new(RangeSkipSet::new);
    struct Late(RefCell<Option<spanlock_structures::ordered::SetView<'static, u64>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            let kept = self.0.take();
            for key in 0..1000 {
                SET.insert(key);
                assert!(SET.remove(&key));
            }
            assert!(kept.is_none_or(|view| view.contains(&5000)));
            let view = SET.pin();
            assert!(SET.pin().contains(&5000) && view.contains(&5000));
        }
    }
    thread_local!(static EARLIER: Late = const { Late(RefCell::new(None)) });
    SET.insert(5000);
    for keeps in [false, true, true, false] {
        let exits = thread::spawn(move || {
            // Destructors run in reverse order of first use, so this one runs after the records are given back.
            EARLIER.with(|_| ());
            let view = SET.pin();
            assert!(view.contains(&5000));
            if keeps {
                EARLIER.with(|late| late.0.replace(Some(view)));
            }
        });
        exits.join().unwrap();
    }
    assert_eq!(format!("{:?}", *SET), "{5000}");
}
