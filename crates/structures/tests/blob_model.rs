//! Random steps on the ranges of an area, against a table of its pages.

use proptest::prelude::*;
use spanlock::range::RangeMutex;
use spanlock_structures::blob::Error;
use spanlock_structures::blob::raw::{Piece, Ranges, Shown, Space, Window};
use spanlock_testkit::exact::Exact;
use spanlock_workbench::baseline::Bitmap;
use std::cell::{Cell, RefCell};

#[global_allocator]
static HEAP: Exact = Exact;

/// Remembers what each position shows, and can be told to fail.
struct Table {
    shows: RefCell<Vec<Option<usize>>>,
    fails: Cell<bool>,
}

const FAILED: Error = Error::System {
    call: "test",
    errno: 1,
};

impl Table {
    fn new(units: usize) -> Self {
        Self {
            shows: RefCell::new(vec![None; units]),
            fails: Cell::new(false),
        }
    }
}

impl Window for Table {
    fn bytes(&self) -> usize {
        self.shows.borrow().len()
    }

    unsafe fn show(&self, at: usize, pieces: impl Iterator<Item = Piece>) -> Result<(), Error> {
        let mut shows = self.shows.borrow_mut();
        let mut end = at;
        for Piece { offset, bytes } in pieces {
            for byte in offset..offset + bytes {
                assert_eq!(shows[end], None, "a range that is given out shows nothing");
                shows[end] = Some(byte);
                end += 1;
            }
            // After the first piece: what is shown already must be hidden again.
            if self.fails.take() {
                return Err(FAILED);
            }
        }
        Ok(())
    }

    unsafe fn hide(&self, at: usize, bytes: usize) -> Result<(), Error> {
        if self.fails.take() {
            return Err(FAILED);
        }
        self.shows.borrow_mut()[at..at + bytes].fill(None);
        Ok(())
    }
}

fn shown<R: Ranges>(space: &Space<R, Table>, one: &Shown<'_, R, Table>) -> Vec<usize> {
    let shows = space.window().shows.borrow();
    let bytes = &shows[one.at()..one.at() + one.bytes()];
    bytes
        .iter()
        .map(|byte| byte.expect("it is shown"))
        .collect()
}

#[derive(Debug, Clone)]
enum Step {
    /// Shows these pieces, and whether that fails.
    Take(Vec<(usize, usize)>, bool),
    /// Drops one of those that are shown.
    Drop(usize),
    /// The same, but it cannot be hidden.
    Lose(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let pieces = prop::collection::vec((0..1000_usize, 1..9_usize), 0..4);
    prop_oneof![
        10 => (pieces, prop::bool::weighted(0.1)).prop_map(|(pieces, fails)| Step::Take(pieces, fails)),
        8 => any::<usize>().prop_map(Step::Drop),
        1 => any::<usize>().prop_map(Step::Lose),
    ]
}

/// The lock's blocks are of so many positions.
fn agrees<R: Ranges>(
    units: usize,
    block: usize,
    lock: R,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let space = Space::new(lock, Table::new(units));
    let mut live = Vec::new();
    let mut lost = Vec::new();
    for step in steps {
        match step {
            Step::Take(pieces, fails) => {
                let pieces = pieces
                    .iter()
                    .map(|&(offset, bytes)| Piece { offset, bytes });
                let bytes: usize = pieces.clone().map(|piece| piece.bytes).sum();
                space
                    .window()
                    .fails
                    .set(fails && bytes > 0 && bytes <= units);
                let held: Vec<(usize, usize)> = live
                    .iter()
                    .map(|(one, _): &(Shown<'_, R, Table>, _)| (one.at(), one.bytes()))
                    .chain(lost.iter().copied())
                    .collect();
                let blocks = |at: usize, bytes: usize| at / block..=(at + bytes - 1) / block;
                let is_free = |at: &usize| {
                    held.iter().all(|&(other, length)| {
                        let (mine, its) = (blocks(*at, bytes), blocks(other, length));
                        mine.end() < its.start() || its.end() < mine.start()
                    })
                };
                let fits = bytes > 0 && bytes <= units;
                let mut places = (0..units)
                    .step_by(bytes.next_power_of_two())
                    .filter(|at| at + bytes <= units);
                let has_place = fits && places.any(|at| is_free(&at));
                let taken = space.take(pieces.clone());
                if !has_place {
                    space.window().fails.set(false);
                }
                match taken {
                    Ok(one) if bytes == 0 => prop_assert_eq!(one.bytes(), 0),
                    Ok(one) => {
                        prop_assert!(has_place && !fails && is_free(&one.at()));
                        prop_assert!(one.at().is_multiple_of(bytes.next_power_of_two()));
                        let expected: Vec<_> = pieces
                            .flat_map(|piece| piece.offset..piece.offset + piece.bytes)
                            .collect();
                        prop_assert_eq!(&shown(&space, &one), &expected);
                        live.push((one, expected));
                    }
                    Err(Error::TooLong { .. }) => prop_assert!(bytes > units),
                    Err(Error::AreaFull) => prop_assert!(!has_place && fits),
                    Err(error) => prop_assert!(error == FAILED && fails && has_place),
                }
            }
            Step::Drop(at) if !live.is_empty() => drop(live.swap_remove(at % live.len())),
            Step::Lose(at) if !live.is_empty() => {
                let (one, _) = live.swap_remove(at % live.len());
                lost.push((one.at(), one.bytes()));
                space.window().fails.set(true);
            }
            Step::Drop(_) | Step::Lose(_) => {}
        }
        for (one, expected) in &live {
            prop_assert_eq!(&shown(&space, one), expected);
        }
        let count = space.window().shows.borrow().iter().flatten().count();
        let expected: usize = live
            .iter()
            .map(|(one, _)| one.bytes())
            .chain(lost.iter().map(|&(_, bytes)| bytes))
            .sum();
        prop_assert_eq!(count, expected, "nothing else is shown");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn ranges_agree_with_a_table(units in 1..80_usize, steps in prop::collection::vec(step(), 0..80)) {
        agrees(units, 1, RangeMutex::new(), steps)?;
    }

    #[test]
    fn blocks_agree_with_a_table(
        units in 1..80_usize,
        block in 1..9_usize,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let bitmap = RangeMutex::from_raw(Bitmap::new(units as u64, block as u64));
        agrees(units, block, bitmap, steps)?;
    }
}
