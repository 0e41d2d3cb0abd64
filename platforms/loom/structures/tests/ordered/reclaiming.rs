//! Nodes are freed while other threads search. Each removal seals here, and frees what was sealed before.

use crate::scenarios;
use crate::world::{Map, has, map, spawn};
use spanlock_structures_loom::ordered::exclusion::Exclusion;

/// A thread reads while all keys are removed.
fn beside_removals<X: Exclusion + Send + Sync + 'static>(exclusion: X, read: fn(&Map<X>)) {
    let map = map(exclusion, &[1, 2, 3]);
    let reader = spawn(&map, read);
    for key in [1, 2, 3] {
        assert!(map.pin().remove(&key).is_some());
    }
    reader.join().unwrap();
    has(&map, &[]);
}

/// A search that began before the removals reads what it has found.
fn a_reader_stands_on_removed_nodes<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    beside_removals(exclusion, |map| {
        let view = map.pin();
        let sum: u64 = view.iter().map(|(key, value)| key + value).sum();
        assert!(sum <= 6);
    });
}

/// A thread that comes and goes beside removals: its views end, and what it has read is freed after that.
fn a_reader_comes_back<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    beside_removals(exclusion, |map| {
        for key in [1, 2] {
            assert!(map.pin().get(&key).is_none_or(|value| *value == 0));
        }
    });
}

/// What threads removed that have exited is freed by the threads that get their records, or with the map.
fn removers_exit<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2, 3]);
    let removers = [1, 2].map(|key| spawn(&map, move |map| map.pin().remove(&key).is_some()));
    for remover in removers {
        assert!(remover.join().unwrap());
    }
    let later = spawn(&map, |map| map.pin().remove(&3).is_some());
    assert!(later.join().unwrap());
    has(&map, &[]);
}

scenarios! {
    a_reader_stands_on_removed_nodes []: 3 on specified by_node;
    a_reader_comes_back []: 3 on specified;
    removers_exit []: 2 on specified;
}
