//! Random sequences beside a truth that is kept in maps: each gap between two ends, and who has it how.

use proptest::collection::vec;
use proptest::prelude::*;
use spanlock::range::keys::{Compare, KeyRangeLock, Natural};
use spanlock::range::raw::Mode::{self, Exclusive, Shared};
use spanlock::range::{Holding, Owner, Refusal};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

/// All byte strings of up to two of three letters, of which two are one letter in two cases.
fn keys() -> Vec<Vec<u8>> {
    let letters = [b'a', b'A', b'b'];
    let mut keys = vec![Vec::new()];
    for one in letters {
        keys.push(vec![one]);
        keys.extend(letters.map(|two| vec![one, two]));
    }
    keys
}

#[derive(Debug, Clone, Copy)]
struct End {
    key: usize,
    /// 0: the key is excluded; 1: it is included; 2: there is no end.
    kind: u8,
}

#[derive(Debug, Clone)]
enum Step {
    /// Somebody new tries for a range.
    Acquire([End; 2], Mode),
    /// One of them converts a range, or adds it.
    Convert(usize, [End; 2], Mode),
    Release(usize, [End; 2]),
    ShrinkTo(usize, [End; 2]),
    /// One of them splits off what is behind a key.
    Split(usize, usize),
    Downgrade(usize),
    Drop(usize),
    Many([[End; 2]; 2], [Mode; 2]),
}

fn end() -> impl Strategy<Value = End> {
    (0..keys().len(), 0..3_u8).prop_map(|(key, kind)| End { key, kind })
}

fn step() -> impl Strategy<Value = Step> {
    let mode = || prop_oneof![Just(Shared), Just(Exclusive)];
    let range = || [end(), end()];
    let who = 0..8_usize;
    prop_oneof![
        4 => (range(), mode()).prop_map(|(range, mode)| Step::Acquire(range, mode)),
        3 => (who.clone(), range(), mode()).prop_map(|(who, range, mode)| Step::Convert(who, range, mode)),
        2 => (who.clone(), range()).prop_map(|(who, range)| Step::Release(who, range)),
        1 => (who.clone(), range()).prop_map(|(who, range)| Step::ShrinkTo(who, range)),
        1 => (who.clone(), 0..keys().len()).prop_map(|(who, key)| Step::Split(who, key)),
        1 => who.clone().prop_map(Step::Downgrade),
        2 => who.prop_map(Step::Drop),
        1 => ([range(), range()], [mode(), mode()]).prop_map(|(ranges, modes)| Step::Many(ranges, modes)),
    ]
}

/// What somebody has: of each gap between two ends, the mode.
type Has = BTreeMap<usize, Mode>;

/// How keys are ranked, from which follows what a range is.
struct Truth<'a, C> {
    by: &'a C,
    keys: Vec<Vec<u8>>,
}

impl<C: Compare<[u8]>> Truth<'_, C> {
    /// The bounds of a range, and its gaps: from which to which. `None`: it is reversed.
    fn range(&self, [from, to]: [End; 2]) -> Option<(Bounds<'_>, std::ops::Range<usize>)> {
        let rank = |end: End| {
            let before =
                |other: &&Vec<u8>| self.by.compare(other, &self.keys[end.key]) == Ordering::Less;
            2 * self.keys.iter().filter(before).count()
        };
        let bound = |end: End| match end.kind {
            0 => Bound::Excluded(self.keys[end.key].as_slice()),
            1 => Bound::Included(self.keys[end.key].as_slice()),
            _ => Bound::Unbounded,
        };
        // Gap 0 is before all keys. Behind it, each key has one that is the key, and one that follows it.
        let start = match from.kind {
            0 => rank(from) + 2,
            1 => rank(from) + 1,
            _ => 0,
        };
        let end = match to.kind {
            0 => rank(to) + 1,
            1 => rank(to) + 2,
            _ => 2 * self.keys.len() + 1,
        };
        (start <= end).then_some(((bound(from), bound(to)), start..end))
    }
}

type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

fn may_have(others: &[&Has], gaps: impl Iterator<Item = usize>, mode: Mode) -> bool {
    let mut gaps = gaps;
    gaps.all(|gap| {
        let mut modes = others.iter().filter_map(|other| other.get(&gap));
        modes.all(|other| !other.conflicts(mode))
    })
}

type Held<'l, C> = (Holding<&'l KeyRangeLock<[u8], C>>, Has);

fn others<'a, C: Compare<[u8]>>(held: &'a [Held<'_, C>], who: usize) -> Vec<&'a Has> {
    let others = held.iter().enumerate().filter(|&(other, _)| other != who);
    others.map(|(_, (_, has))| has).collect()
}

fn agrees<C: Compare<[u8]> + Clone>(by: &C, steps: Vec<Step>) {
    let lock = KeyRangeLock::<[u8], C>::ordered_by(by.clone());
    let truth = Truth { by, keys: keys() };
    let mut held: Vec<Held<'_, C>> = Vec::new();
    for step in steps {
        let count = held.len();
        match step {
            Step::Acquire(range, mode) => {
                let Some((bounds, gaps)) = truth.range(range) else {
                    continue;
                };
                let owner = Owner::new();
                let expected = may_have(&others(&held, count), gaps.clone(), mode);
                match lock.by(&owner).try_lock(bounds, mode) {
                    Ok(holding) => {
                        assert!(expected, "{bounds:?} {mode:?}");
                        held.push((holding, gaps.map(|gap| (gap, mode)).collect()));
                    }
                    Err(refusal) => assert_eq!((refusal, expected), (Refusal::Busy, false)),
                }
            }
            Step::Many(ranges, modes) => {
                let ranges: Option<Vec<_>> =
                    ranges.map(|range| truth.range(range)).into_iter().collect();
                let Some(ranges) = ranges else { continue };
                let mut has = Has::new();
                for ((_, gaps), mode) in ranges.iter().zip(modes) {
                    for gap in gaps.clone() {
                        let before = has.get(&gap).copied().unwrap_or(mode);
                        has.insert(gap, if before == Exclusive { before } else { mode });
                    }
                }
                let expected = has.iter().all(|(&gap, &mode)| {
                    may_have(&others(&held, count), std::iter::once(gap), mode)
                });
                let wanted: Vec<_> = ranges
                    .iter()
                    .map(|(bounds, _)| *bounds)
                    .zip(modes)
                    .collect();
                match lock.by(&Owner::new()).try_lock_many(wanted) {
                    Ok(holding) => {
                        assert!(expected);
                        held.push((holding, has));
                    }
                    Err(refusal) => assert_eq!((refusal, expected), (Refusal::Busy, false)),
                }
            }
            _ if count == 0 => {}
            Step::Convert(who, range, mode) => {
                let Some((bounds, gaps)) = truth.range(range) else {
                    continue;
                };
                let who = who % count;
                let expected = may_have(&others(&held, who), gaps.clone(), mode);
                let (holding, has) = &mut held[who];
                let outcome = holding.try_convert(bounds, mode);
                assert_eq!(outcome.is_ok(), expected, "{bounds:?} {mode:?}");
                if expected {
                    has.extend(gaps.map(|gap| (gap, mode)));
                }
            }
            Step::Release(who, range) => {
                let Some((bounds, gaps)) = truth.range(range) else {
                    continue;
                };
                let (holding, has) = &mut held[who % count];
                holding.release(bounds);
                has.retain(|gap, _| !gaps.contains(gap));
            }
            Step::ShrinkTo(who, range) => {
                let Some((bounds, gaps)) = truth.range(range) else {
                    continue;
                };
                let (holding, has) = &mut held[who % count];
                holding.shrink_to(bounds);
                has.retain(|gap, _| gaps.contains(gap));
            }
            Step::Split(who, key) => {
                let at = [End { key, kind: 1 }, End { key, kind: 2 }];
                let (_, gaps) = truth.range(at).expect("it has no end");
                let (holding, has) = &mut held[who % count];
                let rest = holding.split_off_from(&truth.keys[key]);
                let behind = has.split_off(&gaps.start);
                held.push((rest, behind));
            }
            Step::Downgrade(who) => {
                let (holding, has) = &mut held[who % count];
                holding.downgrade();
                has.values_mut().for_each(|mode| *mode = Shared);
            }
            Step::Drop(who) => drop(held.swap_remove(who % count)),
        }
        for (holding, has) in &held {
            let mut found = Has::new();
            for (range, mode) in holding.pieces() {
                let [from, to] = [(range.start_bound(), true), (range.end_bound(), false)];
                let end = |(bound, _): (Bound<&[u8]>, bool)| {
                    let (key, kind) = match bound {
                        Bound::Included(key) => (key, 1),
                        Bound::Excluded(key) => (key, 0),
                        Bound::Unbounded => return End { key: 0, kind: 2 },
                    };
                    let key = truth.keys.iter().position(|other| other == key);
                    End {
                        key: key.expect("it is one of them"),
                        kind,
                    }
                };
                let (_, gaps) = truth
                    .range([end(from), end(to)])
                    .expect("it is not reversed");
                found.extend(gaps.map(|gap| (gap, mode)));
            }
            assert_eq!(&found, has);
        }
    }
    drop(held);
    assert!(lock.try_write(..).is_some());
    assert!(lock.snapshot().holders.is_empty());
}

fn folded(key: &[u8]) -> Vec<u8> {
    key.to_ascii_lowercase()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 300 }))]

    #[test]
    fn in_natural_order(steps in vec(step(), 1..40)) {
        agrees(&Natural, steps);
    }

    #[test]
    fn in_reverse(steps in vec(step(), 1..40)) {
        agrees(&|a: &[u8], b: &[u8]| b.cmp(a), steps);
    }

    #[test]
    fn whatever_the_case(steps in vec(step(), 1..40)) {
        agrees(&|a: &[u8], b: &[u8]| folded(a).cmp(&folded(b)), steps);
    }

    #[test]
    fn by_length_first(steps in vec(step(), 1..40)) {
        agrees(&|a: &[u8], b: &[u8]| a.len().cmp(&b.len()).then(a.cmp(b)), steps);
    }
}
