//! Writes of pages. The oracle, for each page: what is recovered is what the file was made with, or what an operation
//! wrote that had begun, and no operation on this page began after that one had returned and returned itself before the
//! crash. An operation that had returned is there unless another overwrote it. Of an operation under way, all pages are
//! there or none, unless another overwrote them.

use super::{Shared, Task, Times};
use crate::store::{PAGE, Result as Stored};
use fastrand::Rng;
use std::ops::Range;

/// Pages of the file.
const FILE: usize = 6;

/// A write: the pages that it fills, each with a number of its own, or the half of one page.
#[derive(Debug, Clone, Copy)]
struct Write {
    first: usize,
    pages: usize,
    /// 0 and 1: only that half of the page.
    half: Option<usize>,
}

/// The writes of each thread.
pub struct Pages(Vec<Vec<Write>>);

impl Task for Pages {
    const THREADS: usize = 3;
    /// So many that the last log page is full in the middle.
    const OPERATIONS: usize = 5;

    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut one = || {
            let pages = rng.usize(1..=2);
            let first = rng.usize(..=FILE - pages);
            let half = (pages == 1 && rng.bool()).then(|| rng.usize(..2));
            Write { first, pages, half }
        };
        let mut thread = || (0..Self::OPERATIONS).map(|_| one()).collect();
        Self((0..Self::THREADS).map(|_| thread()).collect())
    }

    /// Then the log is nearly long enough to be extended, or to be rewritten: an entry of these takes two slots of 63.
    fn prepare(&self, rng: &mut Rng, file: &Shared) -> Stored<()> {
        for _ in 0..rng.choice([1, 92, 92]).expect("three") {
            file.write_at(&[200; FILE * PAGE], 0)?;
        }
        Ok(())
    }

    fn perform(&self, op: usize, file: &Shared) -> Stored<()> {
        let write = self.write(op);
        let (begin, length) = match write.half {
            None => (write.first * PAGE, write.pages * PAGE),
            Some(half) => (write.first * PAGE + half * PAGE / 2, PAGE / 2),
        };
        file.write_at(&vec![value(op); length], begin as u64)
            .map(drop)
    }

    fn judge(&self, times: &[Times], content: &[u8]) -> Result<(), String> {
        if content.len() != FILE * PAGE {
            return Err(format!("the file has {} bytes", content.len()));
        }
        let moment = Moment {
            task: self,
            ops: times,
        };
        // Of each half page: who wrote it.
        let halves =
            content
                .chunks(PAGE / 2)
                .map(|half| match half.iter().all(|byte| *byte == half[0]) {
                    true => Ok(half[0]),
                    false => Err("a half of a page is torn".to_owned()),
                });
        let halves: Vec<_> = halves.collect::<Result<_, _>>()?;
        for (half, &found) in halves.iter().enumerate() {
            moment.half_is_possible(half, found)?;
        }
        moment.operations_are_whole(&halves)
    }
}

/// The value that an operation writes: it is not zero.
fn value(op: usize) -> u8 {
    u8::try_from(op + 1).expect("few operations")
}

impl Pages {
    fn write(&self, op: usize) -> Write {
        self.0[op / Self::OPERATIONS][op % Self::OPERATIONS]
    }
}

/// The operations up to a crash.
struct Moment<'a> {
    task: &'a Pages,
    ops: &'a [Times],
}

impl Moment<'_> {
    /// The half pages that an operation writes.
    fn halves(&self, op: usize) -> Range<usize> {
        let write = self.task.write(op);
        match write.half {
            None => 2 * write.first..2 * (write.first + write.pages),
            Some(half) => 2 * write.first + half..2 * write.first + half + 1,
        }
    }

    /// Whether an operation that returned hides another: it began after the other had returned.
    fn hides(&self, later: usize, earlier: Option<usize>) -> bool {
        let (begun, returned) = self.ops[later];
        let ended = earlier.map_or(Some(0), |earlier| self.ops[earlier].1);
        returned.is_some()
            && ended
                .is_some_and(|ended| begun.is_some_and(|begun| begun > ended || earlier.is_none()))
    }

    fn half_is_possible(&self, half: usize, found: u8) -> Result<(), String> {
        if found == 0 {
            return Err(format!("half page {half} is lost: it was never zero"));
        }
        let op = (found != 200).then(|| usize::from(found) - 1);
        if let Some(op) = op
            && (op >= self.ops.len()
                || self.ops[op].0.is_none()
                || !self.halves(op).contains(&half))
        {
            return Err(format!(
                "half page {half} has {found}, which nobody wrote there"
            ));
        }
        let hiding = (0..self.ops.len()).find(|&other| {
            Some(other) != op && self.halves(other).contains(&half) && self.hides(other, op)
        });
        match hiding {
            Some(other) => Err(format!(
                "half page {half} has {found}, though {} returned after that",
                other + 1
            )),
            None => Ok(()),
        }
    }

    /// If an operation shows in one half page, each other of its half pages has it or what may have come later.
    fn operations_are_whole(&self, halves: &[u8]) -> Result<(), String> {
        for op in 0..self.ops.len() {
            let own = value(op);
            if !self.halves(op).any(|half| halves[half] == own) {
                continue;
            }
            for half in self.halves(op) {
                let found = halves[half];
                let before = found == 200
                    || {
                        let other = usize::from(found) - 1;
                        // It returned before this one began.
                        matches!((self.ops[other].1, self.ops[op].0), (Some(end), Some(begin)) if end < begin)
                    };
                if found != own && before {
                    return Err(format!(
                        "operation {own} is there in part: half page {half} has {found}"
                    ));
                }
            }
        }
        Ok(())
    }
}
