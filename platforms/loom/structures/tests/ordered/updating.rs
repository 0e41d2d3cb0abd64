//! Two updates meet.

use crate::scenarios;
use crate::world::{Map, has, map, spawn};
use spanlock_structures_loom::ordered::exclusion::Exclusion;

/// Two keys that become neighbours.
fn two_insert<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[]);
    let other = spawn(&map, |map| map.pin().insert(1, 0).copied());
    assert_eq!(map.pin().insert(2, 0), None);
    assert_eq!(other.join().unwrap(), None);
    has(&map, &[1, 2]);
}

/// A node of one level separates two that get two: their predecessors differ at level 0, and not at level 1.
fn two_insert_around_a_low_node<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[5]);
    let other = spawn(&map, |map| map.pin().insert(7, 0).copied());
    assert_eq!(map.pin().insert(3, 0), None);
    assert_eq!(other.join().unwrap(), None);
    has(&map, &[3, 5, 7]);
}

/// The same where the predecessors are far from each other: they are in ranges of their own.
fn two_insert_around_a_far_node<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[500]);
    let other = spawn(&map, |map| map.pin().insert(501, 0).copied());
    assert_eq!(map.pin().insert(3, 0), None);
    assert_eq!(other.join().unwrap(), None);
    has(&map, &[3, 500, 501]);
}

/// One key: the later value replaces the earlier.
fn two_insert_one_key<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[]);
    let other = spawn(&map, |map| map.pin().insert(1, 7).copied());
    let before = map.pin().insert(1, 8).copied();
    let before_other = other.join().unwrap();
    let now = map.pin().get(&1).copied();
    let in_some_order = [(None, Some(8), Some(7)), (Some(7), None, Some(8))];
    assert!(in_some_order.contains(&(before, before_other, now)), "lost");
    has(&map, &[1]);
}

/// A key is inserted behind one that is removed.
fn insert_behind_a_removal<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1]);
    let other = spawn(&map, |map| map.pin().remove(&1).is_some());
    assert_eq!(map.pin().insert(2, 0), None);
    assert!(other.join().unwrap());
    has(&map, &[2]);
}

/// A key is inserted while the same key is removed.
fn insert_over_a_removal<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1]);
    let other = spawn(&map, |map| map.pin().remove(&1).map(|(_, value)| *value));
    let before = map.pin().insert(1, 7).copied();
    let left: &[_] = match (before, other.join().unwrap()) {
        (None, Some(0)) => &[1],
        (Some(0), Some(7)) => &[],
        other => panic!("lost: {other:?}"),
    };
    has(&map, left);
}

/// Neighbours are removed at the same time.
fn two_remove_neighbours<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2]);
    let other = spawn(&map, |map| map.pin().remove(&1).is_some());
    assert!(map.pin().remove(&2).is_some());
    assert!(other.join().unwrap());
    has(&map, &[]);
}

/// One of two removes the key.
fn two_remove_one_key<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1]);
    let other = spawn(&map, |map| map.pin().remove(&1).is_some());
    let removed = map.pin().remove(&1).is_some();
    assert!(
        removed != other.join().unwrap(),
        "removed twice, or not at all"
    );
    has(&map, &[]);
}

/// Two take the first key: each takes another.
fn two_pop<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1, 2]);
    let pop = |map: &Map<X>| map.pin().pop_first().map(|(key, _)| *key);
    let other = spawn(&map, pop);
    let mut popped = [pop(&map), other.join().unwrap()];
    popped.sort_unstable();
    assert_eq!(popped, [Some(1), Some(2)]);
    has(&map, &[]);
}

/// A smaller key comes while the first is taken: both orders, and nothing else.
fn pop_beside_a_smaller_key<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[2]);
    let other = spawn(&map, |map| map.pin().insert(1, 0).is_some());
    let popped = map.pin().pop_first().map(|(key, _)| *key);
    assert!(!other.join().unwrap());
    match popped {
        Some(1) => has(&map, &[2]),
        Some(2) => has(&map, &[1]),
        other => panic!("popped {other:?}"),
    }
}

/// Two count: no count is lost.
fn two_update<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1]);
    let count = |map: &Map<X>| map.pin().update(&1, |count| count + 1).copied();
    let other = spawn(&map, count);
    let mut counted = [count(&map), other.join().unwrap()];
    counted.sort_unstable();
    assert_eq!(counted, [Some(1), Some(2)]);
    has(&map, &[1]);
}

/// A key is inserted behind one whose value is replaced.
fn insert_behind_a_replacement<X: Exclusion + Send + Sync + 'static>(exclusion: X) {
    let map = map(exclusion, &[1]);
    let other = spawn(&map, |map| map.pin().insert(1, 7).copied());
    assert_eq!(map.pin().insert(2, 0), None);
    assert_eq!(other.join().unwrap(), Some(0));
    assert_eq!(map.pin().get(&1), Some(&7));
    has(&map, &[1, 2]);
}

scenarios! {
    two_insert []: 3 on specified by_node list;
    two_insert_around_a_low_node [0, 1, 1, 1, 1, 1]: 3 on specified by_node;
    two_insert_around_a_far_node [0, 1, 1, 1, 1, 1]: 3 on specified, 2 on list;
    two_insert_one_key []: 3 on specified by_node;
    insert_behind_a_removal []: 3 on specified by_node list;
    insert_over_a_removal []: 3 on specified by_node;
    two_remove_neighbours []: 3 on specified by_node;
    two_remove_one_key []: 3 on specified by_node;
    two_pop []: 3 on specified by_node;
    pop_beside_a_smaller_key []: 3 on specified by_node;
    two_update []: 3 on specified by_node;
    insert_behind_a_replacement []: 3 on specified by_node;
}
