//! What models share: a map of numbers, and threads that use it.

use prim::thread::{self, JoinHandle};
use spanlock_structures_loom::ordered::RangeSkipMap;
use spanlock_structures_loom::ordered::exclusion::Exclusion;
use std::sync::Arc;

/// A map under test. Each value says in which of its lives a key has it.
pub type Map<X> = RangeSkipMap<u64, u64, X>;

/// A map with these keys, each with the value 0.
pub fn map<X: Exclusion + Send + Sync + 'static>(exclusion: X, keys: &[u64]) -> Arc<Map<X>> {
    let map = RangeSkipMap::with_exclusion(exclusion);
    for key in keys {
        assert_eq!(map.pin().insert(*key, 0), None);
    }
    Arc::new(map)
}

/// Runs `f` in a thread of its own.
pub fn spawn<X, R>(
    map: &Arc<Map<X>>,
    f: impl FnOnce(&Map<X>) -> R + Send + 'static,
) -> JoinHandle<R>
where
    X: Exclusion + Send + Sync + 'static,
    R: Send + 'static,
{
    let map = Arc::clone(map);
    thread::spawn(move || f(&map))
}

/// Removes every key, by searches that see all levels, and expects these.
pub fn has<X: Exclusion>(map: &Map<X>, expected: &[u64]) {
    let view = map.pin();
    let keys: Vec<_> = view.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, expected, "the map has other keys");
    for key in expected {
        assert!(view.contains(key));
        // A node that is not linked at one of its levels cannot be removed: the update would start over without end.
        assert!(view.remove(key).is_some());
    }
    assert!(view.is_empty());
}

/// Makes a test for each scenario and each exclusion, with a bound on preemptions. The heights of nodes follow from the
/// results of draws, in brackets: with none, all nodes have two levels.
#[macro_export]
macro_rules! scenarios {
    ($($scenario:ident $wins:tt: $($bound:literal on $($exclusion:ident)+),+;)+) => {
        $(mod $scenario {
            $($(#[test]
            fn $exclusion() {
                let model = prim::Model::new(Some($bound)).wins(&$wins);
                model.check(|| super::$scenario($crate::lock::$exclusion()));
            })+)+
        })+
    };
}
