//! A search, or an iteration, beside an update.

use crate::scenarios;
use crate::world::{Map, has, map, spawn};
use spanlock_structures_loom::ordered::exclusion::Exclusion;

/// A search beside the insertion of its key, and of a neighbour.
fn search_beside_an_insertion<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[]);
    let other = spawn(&map, |map| {
        let view = map.pin();
        assert!(view.insert(1, 7).is_none() && view.insert(2, 8).is_none());
    });
    {
        let view = map.pin();
        let second = view.get(&2).copied();
        let first = view.get(&1).copied();
        // The key that was inserted first is there if the other is.
        let seen = [(None, None), (None, Some(7)), (Some(8), Some(7))];
        assert!(seen.contains(&(second, first)), "missed");
    }
    other.join().unwrap();
    has(&map, &[1, 2]);
}

/// A search beside the removal of its key: what it finds it may read.
fn search_beside_a_removal<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2]);
    let other = spawn(&map, |map| map.pin().remove(&1).is_some());
    {
        let view = map.pin();
        assert_eq!(view.get(&2), Some(&0), "the neighbour is missed");
        assert!(matches!(view.get(&1), None | Some(&0)));
    }
    assert!(other.join().unwrap());
    has(&map, &[2]);
}

/// A search beside an insertion and a removal on both sides of its key.
fn search_between_two_updates<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2]);
    let inserter = spawn(&map, |map| map.pin().insert(3, 7).is_none());
    let remover = spawn(&map, |map| map.pin().remove(&1).is_some());
    {
        let view = map.pin();
        assert_eq!(view.get(&2), Some(&0), "the key between is missed");
        assert!(matches!(view.get(&3), None | Some(&7)));
        assert!(matches!(view.get(&1), None | Some(&0)));
    }
    assert!(inserter.join().unwrap());
    assert!(remover.join().unwrap());
    has(&map, &[2, 3]);
}

/// A key whose value is replaced twice is found all the time, and values do not go back.
fn search_beside_replacements<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1]);
    let other = spawn(&map, |map| {
        map.pin().insert(1, 1);
        map.pin().insert(1, 2);
    });
    {
        let view = map.pin();
        let get = || *view.get(&1).expect("the key is there all the time");
        let first = get();
        assert!(first <= get(), "a value came back");
    }
    other.join().unwrap();
    has(&map, &[1]);
}

/// An iteration yields what stays, in order, and nothing twice.
fn iteration_beside_updates<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2, 3]);
    let other = spawn(&map, |map| {
        map.pin().insert(1, 7);
        map.pin().remove(&2);
    });
    let keys: Vec<_> = map.pin().iter().map(|(key, _)| *key).collect();
    assert!([vec![1, 2, 3], vec![1, 3]].contains(&keys), "{keys:?}");
    other.join().unwrap();
    has(&map, &[1, 3]);
}

/// A range beside updates below its start: a key that is inserted before the first key of the range is not in it.
fn range_beside_updates<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[3]);
    let other = spawn(&map, |map| {
        map.pin().insert(1, 7);
        map.pin().insert(3, 7);
    });
    let keys: Vec<_> = map.pin().range(2..).map(|(key, _)| *key).collect();
    assert_eq!(keys, [3]);
    other.join().unwrap();
    has(&map, &[1, 3]);
}

/// The ends of a map whose ends are removed.
fn ends_beside_removals<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2, 3]);
    let other = spawn(&map, |map| {
        map.pin().remove(&1);
        map.pin().remove(&3);
    });
    let key = |(key, _): (&u64, &u64)| *key;
    {
        let view = map.pin();
        let (last, first) = (view.last().map(key), view.first().map(key));
        let seen = [(3, 1), (3, 2), (2, 2)].map(|(last, first)| (Some(last), Some(first)));
        assert!(seen.contains(&(last, first)), "{last:?} {first:?}");
    }
    other.join().unwrap();
    has(&map, &[2]);
}

/// The first key of a map that is never empty and has a smaller key for a time.
fn first_beside_a_smaller_key<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[2]);
    let other = spawn(&map, |map: &Map<X>| {
        map.pin().insert(1, 0);
        map.pin().remove(&2);
    });
    {
        let view = map.pin();
        let first = || *view.first().expect("it is never empty").0;
        let before = first();
        assert!(before >= first(), "a removed key came back");
    }
    other.join().unwrap();
    has(&map, &[1]);
}

scenarios! {
    search_beside_an_insertion []: 3 on specified by_node list;
    search_beside_a_removal []: 3 on specified by_node list;
    search_between_two_updates []: 2 on specified by_node;
    search_beside_replacements []: 3 on specified by_node;
    iteration_beside_updates []: 3 on specified by_node;
    range_beside_updates []: 3 on specified by_node;
    ends_beside_removals []: 3 on specified by_node;
    first_beside_a_smaller_key []: 3 on specified by_node;
}
