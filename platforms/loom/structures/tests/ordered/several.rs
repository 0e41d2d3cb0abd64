//! An operation on many keys beside another update, or beside a look.

use crate::scenarios;
use crate::world::{has, map, spawn};
use spanlock::range::raw::RawRangeMutex;
use spanlock_structures_loom::ordered::ByRange;

/// Two values that change together are equal in every snapshot.
fn a_snapshot_beside_a_change_of_two<L>(exclusion: ByRange<L>)
where
    L: RawRangeMutex + Send + Sync + 'static,
{
    let map = map(exclusion, &[1, 2]);
    let other = spawn(&map, |map| {
        let both = |[one, two]: [&u64; 2]| [one + 1, two + 1];
        assert_eq!(map.pin().update_many([&2, &1], both), Some([&1, &1]));
    });
    let seen: Vec<_> = map
        .pin()
        .snapshot(..)
        .into_iter()
        .map(|(_, value)| *value)
        .collect();
    assert!(
        [[0, 0], [1, 1]].contains(&seen[..].try_into().unwrap()),
        "{seen:?}"
    );
    other.join().unwrap();
    has(&map, &[1, 2]);
}

/// Two change the same two values: no change is lost, and they do not wait for each other for ever.
fn two_change_two<L>(exclusion: ByRange<L>)
where
    L: RawRangeMutex + Send + Sync + 'static,
{
    let map = map(exclusion, &[1, 2]);
    let both = |[one, two]: [&u64; 2]| [one + 1, two + 1];
    let other = spawn(&map, move |map| {
        map.pin().update_many([&1, &2], both).is_some()
    });
    assert!(map.pin().update_many([&2, &1], both).is_some());
    assert!(other.join().unwrap());
    assert_eq!(map.pin().snapshot(1..), [(&1, &2), (&2, &2)]);
    has(&map, &[1, 2]);
}

/// A key comes before the range that leaves: they have the predecessor in common.
fn a_range_leaves_beside_an_insertion_before_it<L>(exclusion: ByRange<L>)
where
    L: RawRangeMutex + Send + Sync + 'static,
{
    let map = map(exclusion, &[2, 3]);
    let other = spawn(&map, |map| map.pin().insert(1, 0).is_none());
    assert_eq!(map.pin().remove_range(2..), [(&2, &0), (&3, &0)]);
    assert!(other.join().unwrap());
    has(&map, &[1]);
}

/// A key comes within the range that leaves: before that, or after.
fn a_range_leaves_beside_an_insertion_in_it<L>(exclusion: ByRange<L>)
where
    L: RawRangeMutex + Send + Sync + 'static,
{
    let map = map(exclusion, &[1, 3]);
    let other = spawn(&map, |map| map.pin().insert(2, 0).is_none());
    let gone = map.pin().remove_range(1..=3).len();
    assert!(other.join().unwrap());
    match gone {
        2 => has(&map, &[2]),
        3 => has(&map, &[]),
        _ => panic!("{gone} keys"),
    }
}

/// The ends of a map whose range leaves: a look neither waits nor finds what is not there.
fn ends_beside_a_range_that_leaves<L>(exclusion: ByRange<L>)
where
    L: RawRangeMutex + Send + Sync + 'static,
{
    let map = map(exclusion, &[1, 2, 3]);
    let other = spawn(&map, |map| map.pin().remove_range(2..).len());
    {
        let view = map.pin();
        let (last, first) = (
            view.last().map(|(key, _)| *key),
            view.first().map(|(key, _)| *key),
        );
        assert!(matches!(last, Some(1 | 3)), "{last:?}");
        assert_eq!(first, Some(1));
    }
    assert_eq!(other.join().unwrap(), 2);
    has(&map, &[1]);
}

scenarios! {
    a_snapshot_beside_a_change_of_two []: 3 on specified, 2 on list;
    two_change_two []: 3 on specified;
    a_range_leaves_beside_an_insertion_before_it [0, 0, 0]: 3 on specified, 2 on list;
    a_range_leaves_beside_an_insertion_in_it []: 3 on specified;
    ends_beside_a_range_that_leaves []: 3 on specified;
}
