//! Random sequences of operations by one thread, checked against a sequential model.

#[macro_use]
mod common;

use common::{Shared, assert_nothing_held, setting};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spanlock::range::raw::Mode;
use spanlock::range::{Guards, RangeLock, RangeLocked, ReadGuard, WriteGuard};
use spanlock_testkit::exact::Exact;
use std::ops::{Bound, RangeInclusive};

#[global_allocator]
static HEAP: Exact = Exact;

type Interval = RangeInclusive<u64>;

/// What one of several owners, all of them one thread, does next.
#[derive(Debug, Clone)]
enum Step {
    Try(Mode, Interval),
    TryMany(Mode, Vec<Interval>),
    /// Drops one of the guards held, chosen by a number that may be too large.
    Drop(usize),
    /// Downgrades one of the guards held, if it is a writer's.
    Downgrade(usize),
}

/// A guard and what the model knows of it.
struct Owner<'a, L: Shared> {
    mode: Mode,
    segments: Vec<Interval>,
    guard: Guard<'a, L>,
}

enum Guard<'a, L: Shared> {
    Read(ReadGuard<'a, L>),
    Write(WriteGuard<'a, L>),
    ReadMany(Guards<ReadGuard<'a, L>>),
    WriteMany(Guards<WriteGuard<'a, L>>),
}

impl<L: Shared> Guard<'_, L> {
    fn downgrade(self) -> Self {
        match self {
            Self::Write(guard) => Self::Read(guard.downgrade()),
            Self::WriteMany(guards) => Self::ReadMany(guards.downgrade()),
            shared => shared,
        }
    }
}

/// What a lock grants for a range: whole segments, of which the last has all positions from its first on.
#[derive(Debug, Clone, Copy)]
struct Granularity {
    /// Positions of a segment.
    segment: u64,
    /// The number of the last segment.
    last: u64,
}

const EXACT: Granularity = Granularity {
    segment: 1,
    last: u64::MAX,
};

impl Granularity {
    /// The numbers of the segments that a range touches.
    fn segments(self, positions: &Interval) -> Interval {
        let number = |position: &u64| (position / self.segment).min(self.last);
        number(positions.start())..=number(positions.end())
    }
}

fn overlap(a: &Interval, b: &Interval) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

/// The model: whether such a request is granted, given who holds what.
fn is_granted<L: Shared>(owners: &[Owner<'_, L>], mode: Mode, wanted: &[Interval]) -> bool {
    let conflicts = |owner: &Owner<'_, L>| {
        let overlaps = |held| wanted.iter().any(|wanted| overlap(wanted, held));
        mode.conflicts(owner.mode) && owner.segments.iter().any(overlaps)
    };
    !owners.iter().any(conflicts)
}

fn take<'a, L: Shared>(lock: &'a RangeLock<L>, step: &Step) -> Option<Guard<'a, L>> {
    match step {
        Step::Try(Mode::Shared, range) => lock.try_read(range.clone()).map(Guard::Read),
        Step::Try(Mode::Exclusive, range) => lock.try_write(range.clone()).map(Guard::Write),
        Step::TryMany(Mode::Shared, ranges) => {
            lock.try_read_many(ranges.clone()).map(Guard::ReadMany)
        }
        Step::TryMany(Mode::Exclusive, ranges) => {
            lock.try_write_many(ranges.clone()).map(Guard::WriteMany)
        }
        Step::Drop(_) | Step::Downgrade(_) => None,
    }
}

fn play<L: Shared>(lock: &RangeLock<L>, granularity: Granularity, steps: &[Step]) {
    let mut owners: Vec<Owner<'_, L>> = Vec::new();
    for step in steps {
        let (mode, intervals) = match step {
            Step::Try(mode, interval) => (*mode, vec![interval.clone()]),
            Step::TryMany(mode, intervals) => (*mode, intervals.clone()),
            Step::Drop(which) => {
                if !owners.is_empty() {
                    owners.swap_remove(which % owners.len());
                }
                continue;
            }
            Step::Downgrade(which) => {
                if !owners.is_empty() {
                    let owner = owners.swap_remove(which % owners.len());
                    owners.push(Owner {
                        mode: Mode::Shared,
                        guard: owner.guard.downgrade(),
                        ..owner
                    });
                }
                continue;
            }
        };
        let segments: Vec<_> = intervals
            .iter()
            .map(|positions| granularity.segments(positions))
            .collect();
        let expected = is_granted(&owners, mode, &segments);
        let guard = take(lock, step);
        assert_eq!(
            guard.is_some(),
            expected,
            "{step:?} of\n{}",
            lock.snapshot()
        );
        owners.extend(guard.map(|guard| Owner {
            mode,
            segments,
            guard,
        }));
    }
}

/// Few positions, so that ranges meet; at both ends of what there is, and in the middle.
fn position() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..24_u64,
        1 => (0..6_u64).prop_map(|below| u64::MAX - below),
        1 => Just(1 << 63),
    ]
}

fn interval() -> impl Strategy<Value = Interval> {
    (position(), position()).prop_map(|(a, b)| a.min(b)..=a.max(b))
}

fn narrow_interval() -> impl Strategy<Value = Interval> {
    (0..24_u64, 0..3_u64).prop_map(|(start, more)| start..=start + more)
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (mode(), narrow_interval()).prop_map(|(mode, range)| Step::Try(mode, range)),
        2 => (mode(), interval()).prop_map(|(mode, range)| Step::Try(mode, range)),
        2 => (mode(), prop::collection::vec(narrow_interval(), 0..5))
            .prop_map(|(mode, ranges)| Step::TryMany(mode, ranges)),
        4 => any::<usize>().prop_map(Step::Drop),
        1 => any::<usize>().prop_map(Step::Downgrade),
    ]
}

fn config() -> Config {
    Config {
        failure_persistence: None,
        ..Config::with_cases(setting("SPANLOCK_MODEL_CASES", 500) as u32)
    }
}

/// Every try succeeds if, and only if, the model has no conflict; when all is dropped, nothing is held.
fn agrees_with_the_model<L: Shared>(lock: &RangeLock<L>, granularity: Granularity) {
    let steps = prop::collection::vec(step(), 1..80);
    let result = TestRunner::new(config()).run(&steps, |steps| {
        play(lock, granularity, &steps);
        assert_nothing_held(lock.raw());
        Ok(())
    });
    result.unwrap();
}

fn a_try_succeeds_iff_nothing_conflicts<L: Shared>(lock: &RangeLock<L>) {
    agrees_with_the_model(lock, EXACT);
}

in_every_exact_shared_configuration!(crate::common::shared: a_try_succeeds_iff_nothing_conflicts);

/// The segment locks, each with its granularity.
mod in_segments {
    use super::common::{self, SEGMENTS, Shared, shared};
    use super::{Granularity, agrees_with_the_model};

    fn agrees<L: Shared>(make: fn() -> L, segment: u64, segments: usize) {
        let last = segments as u64 - 1;
        shared(make, |lock| {
            agrees_with_the_model(lock, Granularity { segment, last });
        });
    }

    macro_rules! agree {
        ($($test:ident: $make:ident, $segment:literal positions in each of $segments:expr;)+) => {
            $(
                #[test]
                fn $test() {
                    agrees(common::$make, $segment, $segments);
                }
            )+
        };
    }

    agree! {
        array: srl_array, 1 positions in each of SEGMENTS;
        array_unfair: srl_array_unfair, 1 positions in each of SEGMENTS;
        array_fair_at_once: srl_array_fair_at_once, 1 positions in each of SEGMENTS;
        array_of_eights: srl_array_of_eights, 8 positions in each of 3;
        tree: srl_tree, 1 positions in each of SEGMENTS;
        tree_of_eights: srl_tree_of_eights, 8 positions in each of 4;
    }
}

fn bound() -> impl Strategy<Value = Bound<usize>> {
    let index = prop_oneof![9 => 0..10_usize, 1 => Just(usize::MAX)];
    index.prop_flat_map(|at| {
        prop_oneof![
            Just(Bound::Included(at)),
            Just(Bound::Excluded(at)),
            Just(Bound::Unbounded),
        ]
    })
}

/// A range lends what `slice::get` finds, and panics where that finds nothing; for readers and writers.
fn lends_what_slices_have<T: Clone + PartialEq + std::fmt::Debug + Send>(elements: Vec<T>) {
    let locked: RangeLocked<T> = elements.clone().into();
    let ranges = (bound(), bound());
    let result = TestRunner::new(config()).run(&ranges, |range| {
        let expected = elements.get(range).map(<[T]>::to_vec);
        assert_eq!(lent(|| locked.read(range).to_vec()), expected);
        assert_eq!(lent(|| locked.write(range).to_vec()), expected);
        assert_eq!(
            lent(|| locked.try_write(range).unwrap().downgrade().to_vec()),
            expected
        );
        Ok(())
    });
    result.unwrap();
    assert_nothing_held(locked.lock().raw());
}

fn lent<T>(f: impl FnOnce() -> Vec<T>) -> Option<Vec<T>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).ok()
}

#[test]
fn bounds_of_slices() {
    lends_what_slices_have((0..7).collect::<Vec<u16>>());
}

#[test]
fn bounds_of_empty_slices() {
    lends_what_slices_have(Vec::<u64>::new());
}

#[test]
fn bounds_of_elements_without_size() {
    lends_what_slices_have(vec![(); 5]);
}

/// As many as an index can tell.
#[test]
fn as_many_elements_as_there_can_be() {
    let locked: RangeLocked<()> = vec![(); usize::MAX].into();
    assert_eq!(locked.read(..).len(), usize::MAX);
    assert_eq!(locked.read(usize::MAX - 1..).len(), 1);
    assert_eq!(locked.write(usize::MAX..).len(), 0);
    assert_eq!(locked.into_inner().len(), usize::MAX);
}

#[test]
fn out_of_bounds_says_what_was_expected() {
    let locked: RangeLocked<u8> = vec![0; 5].into();
    let says = |range: (Bound<usize>, Bound<usize>), parts: [&str; 2]| {
        let message = common::panic_message(|| drop(locked.read(range)));
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    says((Bound::Included(3), Bound::Excluded(77)), ["77", "0..5"]);
    says((Bound::Included(6), Bound::Unbounded), ["6", "5"]);
    says(
        (Bound::Included(4), Bound::Excluded(2)),
        ["4..2", "reversed"],
    );
    says(
        (Bound::Unbounded, Bound::Included(usize::MAX)),
        [&usize::MAX.to_string(), "0..5"],
    );
}

#[test]
fn several_ranges_are_lent_at_once() {
    let locked = RangeLocked::from([0, 1, 2, 3, 4, 5]);
    let mut lent = locked.write_many([4..6, 0..2, 2..4]);
    let [last, first, middle] = lent.slices_mut();
    std::mem::swap(&mut last[0], &mut first[1]);
    middle.fill(7);
    assert_eq!(lent.slices(), [&[1, 5], &[0, 4], &[7, 7]]);
    assert!(locked.try_read(3..4).is_none());
    assert!(locked.try_write_many([0..0, 1..2]).is_none());
    drop(lent);
    assert_eq!(locked.read(..)[..], [0, 4, 7, 7, 1, 5]);
    let lent = locked.write_many([1..4, 2..2, 4..4]);
    assert_eq!(lent.slices(), [&[4, 7, 7][..], &[], &[]]);
    drop(lent);
    let message = common::panic_message(|| drop(locked.write_many([0..3, 2..4])));
    assert!(
        message.contains("0..3") && message.contains("2..4"),
        "{message}"
    );
    assert!(
        RangeLocked::<u8>::default()
            .write_many([0..0, 0..0])
            .slices()[1]
            .is_empty()
    );
    assert_nothing_held(locked.lock().raw());
}

#[test]
fn guards_are_released_one_by_one() {
    let lock: RangeLock = RangeLock::new();
    let mut guards = lock.write_many([0..2, 4..6, 8..9]).into_iter();
    for left in (0..3).rev() {
        drop(guards.next());
        assert_eq!((guards.len(), lock.snapshot().holders.len()), (left, left));
    }
}

/// A guard may be shared with other threads.
#[test]
fn guards_are_shared() {
    let locked: RangeLocked<u32> = (0..10).collect();
    let (reader, writer) = (locked.read(0..5), locked.write(5..10));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!((reader[1], writer[1]), (1, 6)));
    });
}

/// Readers share, a writer excludes, neighbours do neither.
#[test]
fn lends_are_locked() {
    let mut locked: RangeLocked<u32> = (0..10).collect();
    let mut writer = locked.write(2..5);
    writer[0] = 20;
    assert!(locked.try_read(4..6).is_none());
    assert!(locked.try_write(5..6).is_some());
    assert!(locked.try_read(5..5).is_some());
    let reader = writer.downgrade();
    assert_eq!(locked.read(1..6)[..], [1, 20, 3, 4, 5]);
    assert!(locked.try_write(4..6).is_none());
    drop(reader);
    assert_eq!(locked.get_mut()[2], 20);
}
