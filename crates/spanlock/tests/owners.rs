//! What owners hold that are no threads: against a model, under threads that pass it on, and case by case.

#[macro_use]
mod common;

use common::{assert_nothing_held, setting};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spanlock::range::raw::{Mode, RawOwned};
use spanlock::range::{Holding, Owner, RangeLock, Refusal, Span};
use spanlock_testkit::exact::Exact;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

/// The positions fall into cells, which are always held as a whole: single ones at both ends, and the rest.
const CELLS: usize = 24;
const SINGLE: u64 = 19;

/// The positions of a cell.
fn cell(number: usize) -> Span {
    let (number, last) = (number as u64, CELLS as u64 - 1);
    let end = u64::MAX - (last - number);
    let span = match number {
        0..SINGLE => Span::of(number..=number),
        SINGLE => Span::of(number..=end),
        _ => Span::of(end..=end),
    };
    span.expect("a cell has positions")
}

/// Some cells, one after the other.
#[derive(Debug, Clone, Copy)]
struct Cells {
    first: usize,
    last: usize,
}

impl Cells {
    fn span(self) -> Span {
        let (first, last) = (cell(self.first), cell(self.last));
        Span::of(first.start()..=last.last()).expect("it has positions")
    }

    fn each(self) -> impl Iterator<Item = usize> {
        self.first..=self.last
    }
}

/// How each cell is held.
type Map = [Option<Mode>; CELLS];

/// How the pieces of a holding cover the cells.
fn map_of<'a, L: RawOwned>(holding: &Holding<&'a RangeLock<L>>) -> Map {
    let mut map = [None; CELLS];
    for (span, mode) in holding.pieces() {
        for number in (0..CELLS).filter(|&number| cell(number).overlaps(span)) {
            let whole = cell(number).intersection(span) == Some(cell(number));
            assert!(whole, "{holding:?} has a part of {}", cell(number));
            assert_eq!(map[number], None, "{holding:?} overlaps itself");
            map[number] = Some(mode);
        }
    }
    map
}

/// What is done next. Numbers of holdings may be too large.
#[derive(Debug, Clone)]
enum Step {
    Lock(usize, Cells, Mode),
    Convert(usize, Cells, Mode),
    Upgrade(usize),
    Downgrade(usize),
    Release(usize, Cells),
    ShrinkTo(usize, Cells),
    SplitOff(usize, usize),
    Drop(usize),
}

/// What is held, and the model of it.
struct Play<'a, L: RawOwned> {
    lock: &'a RangeLock<L>,
    owners: [Owner; 3],
    held: Vec<(Holding<&'a RangeLock<L>>, Map)>,
}

impl<L: RawOwned> Play<'_, L> {
    /// Whether nobody but `but` holds a cell in the way of that mode.
    fn is_free(&self, cell: usize, mode: Mode, but: Option<usize>) -> bool {
        let others = self.held.iter().enumerate();
        let mut others = others.filter(|&(number, _)| Some(number) != but);
        others.all(|(_, (_, map))| map[cell].is_none_or(|held| !held.conflicts(mode)))
    }

    /// Whether a holding can be converted so.
    fn converts(&self, which: usize, cells: impl Iterator<Item = usize>, mode: Mode) -> bool {
        let map = &self.held[which].1;
        let mut cells = cells;
        cells.all(|cell| match map[cell] {
            Some(Mode::Exclusive) => true,
            Some(held) if held == mode => true,
            _ => self.is_free(cell, mode, Some(which)),
        })
    }

    fn step(&mut self, step: &Step) {
        if let Step::Lock(owner, cells, mode) = *step {
            let expected = cells.each().all(|cell| self.is_free(cell, mode, None));
            let owner = &self.owners[owner % self.owners.len()];
            match self.lock.by(owner).try_lock(cells.span(), mode) {
                Ok(holding) => {
                    assert!(expected, "granted in vain");
                    let mut map = [None; CELLS];
                    cells.each().for_each(|cell| map[cell] = Some(mode));
                    self.held.push((holding, map));
                }
                Err(refusal) => assert_eq!((refusal, expected), (Refusal::Busy, false)),
            }
            return;
        }
        if self.held.is_empty() {
            return;
        }
        let count = self.held.len();
        match *step {
            Step::Lock(..) => {}
            Step::Convert(which, cells, mode) => {
                let which = which % count;
                let expected = self.converts(which, cells.each(), mode);
                let (holding, map) = &mut self.held[which];
                let outcome = holding.try_convert(cells.span(), mode);
                assert_eq!(outcome.is_ok(), expected, "{outcome:?}");
                if expected {
                    cells.each().for_each(|cell| map[cell] = Some(mode));
                }
            }
            Step::Upgrade(which) => {
                let which = which % count;
                let cells: Vec<_> = (0..CELLS)
                    .filter(|&cell| self.held[which].1[cell].is_some())
                    .collect();
                let expected = self.converts(which, cells.iter().copied(), Mode::Exclusive);
                let (holding, map) = &mut self.held[which];
                assert_eq!(holding.try_upgrade().is_ok(), expected);
                if expected {
                    cells
                        .iter()
                        .for_each(|&cell| map[cell] = Some(Mode::Exclusive));
                }
            }
            Step::Downgrade(which) => {
                let (holding, map) = &mut self.held[which % count];
                holding.downgrade();
                map.iter_mut()
                    .flatten()
                    .for_each(|mode| *mode = Mode::Shared);
            }
            Step::Release(which, cells) => {
                let (holding, map) = &mut self.held[which % count];
                holding.release(cells.span());
                cells.each().for_each(|cell| map[cell] = None);
            }
            Step::ShrinkTo(which, cells) => {
                let (holding, map) = &mut self.held[which % count];
                holding.shrink_to(cells.span());
                let outside = (0..CELLS).filter(|cell| !cells.each().any(|kept| kept == *cell));
                outside.for_each(|cell| map[cell] = None);
            }
            Step::SplitOff(which, at) => {
                let (holding, map) = &mut self.held[which % count];
                let rest = holding.split_off(cell(at).start());
                let mut moved = [None; CELLS];
                moved[at..].copy_from_slice(&map[at..]);
                map[at..].fill(None);
                self.held.push((rest, moved));
            }
            Step::Drop(which) => drop(self.held.swap_remove(which % count)),
        }
        self.held.retain(|(holding, _)| !holding.is_empty());
    }

    /// What is held is as the model has it.
    fn check(&self) {
        for (holding, map) in &self.held {
            assert_eq!(map_of(holding), *map, "{holding:?}");
        }
        let listed = self.lock.snapshot().holders;
        let pieces = self.held.iter().flat_map(|(holding, _)| holding.pieces());
        assert_eq!(listed.len(), pieces.count(), "{listed:?}");
        for owner in &self.owners {
            let own = self
                .held
                .iter()
                .filter(|(holding, _)| holding.owner() == owner);
            let pieces: usize = own.map(|(holding, _)| holding.pieces().count()).sum();
            assert_eq!(owner.held(), pieces);
        }
    }
}

fn cells() -> impl Strategy<Value = Cells> {
    (0..CELLS, 0..5_usize).prop_map(|(first, more)| Cells {
        first,
        last: (first + more).min(CELLS - 1),
    })
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)]
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..64_usize;
    prop_oneof![
        4 => (0..3_usize, cells(), mode()).prop_map(|(owner, cells, mode)| Step::Lock(owner, cells, mode)),
        4 => (which.clone(), cells(), mode()).prop_map(|(which, cells, mode)| Step::Convert(which, cells, mode)),
        1 => which.clone().prop_map(Step::Upgrade),
        1 => which.clone().prop_map(Step::Downgrade),
        2 => (which.clone(), cells()).prop_map(|(which, cells)| Step::Release(which, cells)),
        1 => (which.clone(), cells()).prop_map(|(which, cells)| Step::ShrinkTo(which, cells)),
        1 => (which.clone(), 0..CELLS).prop_map(|(which, at)| Step::SplitOff(which, at)),
        2 => which.prop_map(Step::Drop),
    ]
}

/// Each step succeeds if, and only if, the model has no conflict, and what is held afterwards is as the model says.
fn agrees_with_the_model<L: RawOwned>(lock: &RangeLock<L>) {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(setting("SPANLOCK_MODEL_CASES", 500) as u32)
    };
    let steps = prop::collection::vec(step(), 1..60);
    let result = TestRunner::new(config).run(&steps, |steps| {
        let mut play = Play {
            lock,
            owners: [Owner::new(), Owner::new(), Owner::new()],
            held: Vec::new(),
        };
        for step in &steps {
            play.step(step);
            play.check();
        }
        drop(play);
        assert_nothing_held(lock.raw());
        Ok(())
    });
    result.unwrap();
}

/// Who holds the cells: so many readers, or a writer, which is -1.
struct Oracle([AtomicI32; CELLS]);

impl Oracle {
    fn change(&self, cell: usize, from: Option<Mode>, to: Option<Mode>) {
        let state = &self.0[cell];
        let swap = |from, to| {
            let swapped = state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
            assert_eq!(swapped, Ok(from), "cell {cell} is held twice");
        };
        match (from, to) {
            (None, Some(Mode::Shared)) => {
                assert!(
                    state.fetch_add(1, Ordering::SeqCst) >= 0,
                    "cell {cell} has a writer"
                );
            }
            (Some(Mode::Shared), None) => {
                assert!(
                    state.fetch_sub(1, Ordering::SeqCst) > 0,
                    "cell {cell} has no reader"
                );
            }
            (None, Some(Mode::Exclusive)) => swap(0, -1),
            (Some(Mode::Exclusive), None) => swap(-1, 0),
            (Some(Mode::Shared), Some(Mode::Exclusive)) => swap(1, -1),
            (Some(Mode::Exclusive), Some(Mode::Shared)) => swap(-1, 1),
            (None, None)
            | (Some(Mode::Shared), Some(Mode::Shared))
            | (Some(Mode::Exclusive), Some(Mode::Exclusive)) => {}
        }
    }
}

/// Threads pass holdings on, and convert, cut and release them. What is held alone, nobody else holds.
fn threads_pass_holdings_on<L: RawOwned + Send + Sync + 'static>(lock: RangeLock<L>) {
    type Place<L> = Arc<RangeLock<L>>;
    struct Shared<L: RawOwned> {
        lock: Place<L>,
        oracle: Oracle,
        waiting: Mutex<Vec<(Holding<Place<L>>, Map)>>,
    }
    impl<L: RawOwned> Shared<L> {
        /// Tells the oracle what comes to be held, after that, or what ceases to be, before that.
        fn become_of(&self, map: &mut Map, cell: usize, to: Option<Mode>) {
            self.oracle.change(cell, map[cell], to);
            map[cell] = to;
        }

        fn turn(&self, random: &mut fastrand::Rng) {
            let first = random.usize(..CELLS);
            let cells = Cells {
                first,
                last: (first + random.usize(..4)).min(CELLS - 1),
            };
            let mode = if random.bool() {
                Mode::Shared
            } else {
                Mode::Exclusive
            };
            let taken = self.waiting.lock().unwrap().pop();
            let (mut holding, mut map) =
                taken.unwrap_or_else(|| (self.lock.by_arc(&Owner::new()).nothing(), [None; CELLS]));
            match random.u32(..8) {
                0..4 => {
                    // It shares at once what it held alone.
                    let shares = |map: &Map, cell: &usize| {
                        (map[*cell], mode) == (Some(Mode::Exclusive), Mode::Shared)
                    };
                    let shared: Vec<_> = cells.each().filter(|cell| shares(&map, cell)).collect();
                    shared
                        .iter()
                        .for_each(|&cell| self.become_of(&mut map, cell, Some(Mode::Shared)));
                    let time = Duration::from_micros(random.u64(..200));
                    match holding.try_convert_for(cells.span(), mode, time) {
                        Ok(()) => cells
                            .each()
                            .for_each(|cell| self.become_of(&mut map, cell, Some(mode))),
                        Err(_) => shared.iter().for_each(|&cell| {
                            self.become_of(&mut map, cell, Some(Mode::Exclusive))
                        }),
                    }
                }
                4 => {
                    cells
                        .each()
                        .for_each(|cell| self.become_of(&mut map, cell, None));
                    holding.release(cells.span());
                }
                5 => {
                    let rest = holding.split_off(cell(first).start());
                    let mut moved = [None; CELLS];
                    moved[first..].copy_from_slice(&map[first..]);
                    map[first..].fill(None);
                    self.waiting.lock().unwrap().push((rest, moved));
                }
                6 => {
                    (0..CELLS).for_each(|cell| self.become_of(&mut map, cell, None));
                    drop(holding);
                    return;
                }
                _ => {
                    // A thread's own request, beside them.
                    if let Some(guard) = self
                        .lock
                        .try_write_for(cells.span(), Duration::from_micros(50))
                    {
                        cells
                            .each()
                            .for_each(|cell| self.oracle.change(cell, None, Some(Mode::Exclusive)));
                        cells
                            .each()
                            .for_each(|cell| self.oracle.change(cell, Some(Mode::Exclusive), None));
                        drop(guard);
                    }
                }
            }
            let mut waiting = self.waiting.lock().unwrap();
            let at = random.usize(..=waiting.len());
            waiting.insert(at, (holding, map));
        }
    }
    let shared = Arc::new(Shared {
        lock: Arc::new(lock),
        oracle: Oracle([const { AtomicI32::new(0) }; CELLS]),
        waiting: Mutex::new(Vec::new()),
    });
    let turns = setting("SPANLOCK_OWNER_TURNS", 20_000);
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                (0..turns).for_each(|_| shared.turn(&mut random));
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no oracle complains"));
    shared.waiting.lock().unwrap().clear();
    assert_nothing_held(shared.lock.raw());
}

macro_rules! on_each_lock {
    ($($lock:ident)+) => {$(
        mod $lock {
            use super::common;
            use spanlock::range::RangeLock;

            #[test]
            fn agrees_with_the_model() {
                super::agrees_with_the_model(&RangeLock::from_raw(common::$lock()));
            }

            #[test]
            fn threads_pass_holdings_on() {
                super::threads_pass_holdings_on(RangeLock::from_raw(common::$lock()));
            }
        }
    )+};
}

on_each_lock! { standard slow_path unfair fair_at_once writers_first skip_standard skip skip_unfair }
