//! Random steps of one thread, checked against a sequential model.

use super::common::{assert_nothing_held, setting};
use super::{CELLS, Cells, Map, cell};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spanlock::range::raw::{Mode, RawOwned};
use spanlock::range::{Holding, Owner, RangeLock, Refusal};

/// How the pieces of a holding cover the cells.
fn map_of<L: RawOwned>(holding: &Holding<&RangeLock<L>>) -> Map {
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
    LockMany(usize, Vec<(Cells, Mode)>),
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

    /// Tries to lock some cells, each in its mode.
    fn lock(&mut self, owner: usize, wanted: &[(Cells, Mode)]) {
        let mut map = [None; CELLS];
        for &(cells, mode) in wanted {
            for cell in cells.each() {
                if map[cell] != Some(Mode::Exclusive) {
                    map[cell] = Some(mode);
                }
            }
        }
        let is_free = |(cell, mode): (usize, &Option<Mode>)| {
            mode.is_none_or(|mode| self.is_free(cell, mode, None))
        };
        let expected = map.iter().enumerate().all(is_free);
        let by = self.lock.by(&self.owners[owner % self.owners.len()]);
        let outcome = match *wanted {
            [(cells, mode)] => by.try_lock(cells.span(), mode),
            _ => by.try_lock_many(wanted.iter().map(|(cells, mode)| (cells.span(), *mode))),
        };
        match outcome {
            Ok(holding) => {
                assert!(expected, "granted in vain");
                self.held.push((holding, map));
            }
            Err(refusal) => assert_eq!((refusal, expected), (Refusal::Busy, false)),
        }
    }

    fn step(&mut self, step: &Step) {
        let count = self.held.len();
        match *step {
            Step::Lock(owner, cells, mode) => self.lock(owner, &[(cells, mode)]),
            Step::LockMany(owner, ref wanted) => self.lock(owner, wanted),
            _ if count == 0 => {}
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
            assert_eq!(owner.asks_or_holds(), pieces);
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
        2 => (0..3_usize, prop::collection::vec((cells(), mode()), 0..5))
            .prop_map(|(owner, wanted)| Step::LockMany(owner, wanted)),
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
pub fn agrees<L: RawOwned>(lock: &RangeLock<L>) {
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
