//! A history of operations, and the search for an order that explains it.

use super::sequential::model::{Block, Model};
use super::sequential::step::{Step, on_model};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Operations with the moments at which they began and ended. Moments are numbers.
#[derive(Debug, Default)]
pub(super) struct History {
    operations: Vec<Operation>,
    moments: usize,
}

#[derive(Debug)]
struct Operation {
    step: Step,
    begun: usize,
    ended: usize,
    result: String,
}

/// Operations done, as bits, and what they left.
type Point = (u128, (Vec<Block>, u64));

impl History {
    fn moment(&mut self) -> usize {
        self.moments += 1;
        self.moments
    }

    /// An operation begins. Returns its number.
    pub(super) fn begin(&mut self, step: Step) -> usize {
        let begun = self.moment();
        self.operations.push(Operation {
            step,
            begun,
            ended: usize::MAX,
            result: String::new(),
        });
        assert!(self.operations.len() <= 128, "a case has fewer operations");
        self.operations.len() - 1
    }

    /// The operation with this number has ended.
    pub(super) fn end(&mut self, number: usize, result: String) {
        let ended = self.moment();
        let operation = &mut self.operations[number];
        (operation.ended, operation.result) = (ended, result);
    }

    /// The state after an order of all operations in which each has its result, and none comes before one that had ended
    /// when it began.
    ///
    /// # Errors
    /// What is left of the operations after the longest such order.
    pub(super) fn explain(&self, model: &Model) -> Result<Model, String> {
        let mut search = Search {
            history: self,
            seen: HashSet::new(),
            longest: (0, String::new()),
        };
        search.from(0, model).ok_or(search.longest.1)
    }
}

struct Search<'a> {
    history: &'a History,
    seen: HashSet<Point>,
    longest: (u32, String),
}

impl Search<'_> {
    /// Continues an order.
    fn from(&mut self, done: u128, model: &Model) -> Option<Model> {
        let operations = &self.history.operations;
        let left = || (0..operations.len()).filter(|number| done >> number & 1 == 0);
        let Some(deadline) = left().map(|number| operations[number].ended).min() else {
            return Some(model.clone());
        };
        if !self.seen.insert((done, model.state())) {
            return None;
        }
        if done.count_ones() >= self.longest.0 {
            self.longest = (
                done.count_ones(),
                describe(model, left().map(|number| &operations[number])),
            );
        }
        let next: Vec<_> = left()
            .filter(|&number| operations[number].begun < deadline)
            .collect();
        next.into_iter().find_map(|number| {
            let Operation { step, result, .. } = &operations[number];
            let mut after = model.clone();
            (on_model(&mut after, step) == *result)
                .then(|| self.from(done | 1 << number, &after))
                .flatten()
        })
    }
}

fn describe<'a>(model: &Model, left: impl Iterator<Item = &'a Operation>) -> String {
    let mut text = String::from("no order explains the history. After the longest, there are\n");
    for block in &model.blocks {
        _ = writeln!(text, "  {block:x?}");
    }
    text.push_str("and left are\n");
    for Operation {
        step,
        begun,
        ended,
        result,
    } in left.take(12)
    {
        _ = writeln!(text, "  {begun}..{ended} {step:x?}: {result}");
    }
    text
}
