//! Writes that may extend the file, appends and truncations. The oracle: some order of the operations gives the
//! recovered content. All that had returned are in it, of those under way any number, and an operation that had
//! returned before another began comes before it.

use super::{Shared, Task, Times};
use crate::store::Result as Stored;
use fastrand::Rng;
use std::collections::HashSet;

/// Bytes of a cell: all operations are on cells. A page has eight and a part, so most begin and end within a page.
const CELL: usize = 500;

/// Cells at first, and the most that a truncation leaves.
const CELLS: usize = 20;

#[derive(Debug, Clone, Copy)]
enum Change {
    /// From the first number on, so many cells.
    Write(usize, usize),
    Append(usize),
    Truncate(usize),
}

/// The operations of all threads, one thread's after the other's.
pub struct Sizes(Vec<Change>);

/// The value that an operation writes. Zero is a hole, and 255 what was there before.
fn value(op: usize) -> u8 {
    u8::try_from(op + 1).expect("few operations")
}

impl Task for Sizes {
    const THREADS: usize = 3;
    /// Few: the oracle tries all orders.
    const OPERATIONS: usize = 2;

    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut one = || match rng.u8(..3) {
            0 => Change::Write(rng.usize(..2 * CELLS), rng.usize(1..12)),
            1 => Change::Append(rng.usize(1..12)),
            _ => Change::Truncate(rng.usize(..=CELLS)),
        };
        Self(
            (0..Self::THREADS * Self::OPERATIONS)
                .map(|_| one())
                .collect(),
        )
    }

    /// Then the log is nearly long enough to be rewritten: an entry of these takes two slots of 63.
    fn prepare(&self, rng: &mut Rng, file: &Shared) -> Stored<()> {
        for _ in 0..rng.choice([1, 93, 94]).expect("three") {
            file.write_at(&[255; CELLS * CELL], 0)?;
        }
        Ok(())
    }

    fn perform(&self, op: usize, file: &Shared) -> Stored<()> {
        let bytes = |cells| vec![value(op); cells * CELL];
        match self.0[op] {
            Change::Write(at, cells) => file.write_at(&bytes(cells), (at * CELL) as u64).map(drop),
            Change::Append(cells) => file.append(&bytes(cells)).map(drop),
            Change::Truncate(cells) => file.truncate((cells * CELL) as u64),
        }
    }

    fn judge(&self, times: &[Times], content: &[u8]) -> Result<(), String> {
        let (cells, rest) = content.as_chunks::<CELL>();
        let is_whole = |cell: &[u8; CELL]| cell.iter().all(|byte| *byte == cell[0]);
        if !rest.is_empty() || !cells.iter().all(is_whole) {
            return Err(format!(
                "something is there in part: {} bytes",
                content.len()
            ));
        }
        let found: Vec<u8> = cells.iter().map(|cell| cell[0]).collect();
        let mut orders = Orders {
            changes: &self.0,
            times,
            found: &found,
            tried: HashSet::new(),
        };
        match orders.lead_there(0, &vec![255; CELLS]) {
            true => Ok(()),
            false => Err(format!(
                "no order of {:?} at {times:?} gives {found:?}",
                self.0
            )),
        }
    }
}

impl Change {
    fn apply(self, op: usize, cells: &mut Vec<u8>) {
        let (at, many) = match self {
            Self::Write(at, many) => (at, many),
            Self::Append(many) => (cells.len(), many),
            Self::Truncate(many) => return cells.resize(many, 0),
        };
        cells.resize(cells.len().max(at + many), 0);
        cells[at..at + many].fill(value(op));
    }
}

/// The search for an order.
struct Orders<'a> {
    changes: &'a [Change],
    times: &'a [Times],
    found: &'a [u8],
    tried: HashSet<(u32, Vec<u8>)>,
}

impl Orders<'_> {
    /// Whether what was found can follow, when the operations in the set `done` have given these cells.
    fn lead_there(&mut self, done: u32, cells: &Vec<u8>) -> bool {
        if !self.tried.insert((done, cells.clone())) {
            return false;
        }
        let is_done = |op: usize| done & 1 << op != 0;
        let returned = |op: usize| self.times[op].1;
        let all = 0..self.changes.len();
        if cells == self.found && all.clone().all(|op| is_done(op) || returned(op).is_none()) {
            return true;
        }
        let comes_next = |op: usize| {
            let earlier =
                |other: usize| returned(other) < self.times[op].0 && returned(other).is_some();
            let begun = self.times[op].0.is_some();
            begun && !is_done(op) && all.clone().all(|other| !earlier(other) || is_done(other))
        };
        let next: Vec<_> = all.clone().filter(|&op| comes_next(op)).collect();
        next.into_iter().any(|op| {
            let mut cells = cells.clone();
            self.changes[op].apply(op, &mut cells);
            self.lead_there(done | 1 << op, &cells)
        })
    }
}

/// The oracle refuses what no order gives.
#[test]
fn an_order_is_found_where_there_is_one() {
    let task = Sizes(vec![
        Change::Truncate(1),
        Change::Append(2),
        Change::Write(4, 1),
    ]);
    let content = |cells: &[u8]| {
        cells
            .iter()
            .flat_map(|cell| [*cell; CELL])
            .collect::<Vec<_>>()
    };
    let possible = |times: &[Times], cells: &[u8]| task.judge(times, &content(cells)).is_ok();
    let one_after_the_other = [(Some(0), Some(1)), (Some(2), Some(3)), (Some(4), Some(5))];
    assert!(possible(&one_after_the_other, &[255, 2, 2, 0, 3]));
    assert!(!possible(&one_after_the_other, &[255, 0, 0, 0, 3, 2, 2]));
    assert!(
        !possible(&one_after_the_other, &[255, 2, 2]),
        "the last had returned"
    );
    let under_way = [(Some(0), Some(1)), (Some(2), None), (Some(3), None)];
    assert!(possible(&under_way, &[255]) && possible(&under_way, &[255, 0, 0, 0, 3, 2, 2]));
    assert!(!possible(&under_way, &[255, 2]), "half of an append");
    assert!(
        !possible(&under_way, &[255; CELLS]),
        "the truncation had returned"
    );
}
