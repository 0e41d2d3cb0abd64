//! A history of operations, and the search for an order that explains it: whether it is linearisable. In such an order
//! each operation has its result, and an operation that ended before another began comes first.

use std::collections::HashSet;
use std::fmt::{Debug, Write as _};
use std::hash::Hash;
use std::sync::Mutex;

/// What one thread would see.
pub trait Model: Clone {
    /// An operation.
    type Operation: Clone + Debug;
    /// Its result.
    type Outcome: Clone + Debug + PartialEq;
    /// All that later results follow from.
    type State: Debug + Eq + Hash;

    /// Does an operation.
    fn apply(&mut self, operation: &Self::Operation) -> Self::Outcome;

    /// What the operations so far have led to.
    fn state(&self) -> Self::State;
}

/// An operation, and the moments at which it began and ended. Moments are numbers that no two events share.
#[derive(Debug, Clone)]
struct Event<O, D> {
    begun: usize,
    /// The largest number, until it has ended.
    ended: usize,
    operation: O,
    outcome: Option<D>,
}

/// What all threads have done. It is of the host: no simulated machine sees it.
#[derive(Debug)]
pub struct History<M: Model>(Mutex<Told<M>>);

#[derive(Debug)]
struct Told<M: Model> {
    moments: usize,
    /// In the order of their beginnings.
    events: Vec<Event<M::Operation, M::Outcome>>,
}

/// Where an order of events has got to.
#[derive(Clone)]
struct Point<M> {
    /// The first event that it lacks.
    first: usize,
    /// The events after that one which it has, in the order of their numbers.
    others: Vec<usize>,
    /// What they lead to.
    model: M,
}

impl<M: Model> Default for History<M> {
    fn default() -> Self {
        Self(Mutex::new(Told {
            moments: 0,
            events: Vec::new(),
        }))
    }
}

impl<M: Model> History<M> {
    /// An operation begins. Returns its number.
    pub fn begin(&self, operation: M::Operation) -> usize {
        let told = &mut *self.0.lock().expect("no panic while held");
        told.moments += 1;
        told.events.push(Event {
            begun: told.moments,
            ended: usize::MAX,
            operation,
            outcome: None,
        });
        told.events.len() - 1
    }

    /// The operation with this number has ended.
    pub fn end(&self, number: usize, outcome: M::Outcome) {
        let told = &mut *self.0.lock().expect("no panic while held");
        told.moments += 1;
        let event = &mut told.events[number];
        (event.ended, event.outcome) = (told.moments, Some(outcome));
    }

    /// What an order that explains all operations leads to. All have ended.
    ///
    /// # Panics
    /// When there is none. The message has what is left after the longest order.
    pub fn explained(&self, model: M) -> M {
        let events = self.0.lock().expect("no panic while held").events.clone();
        order(&events, model).unwrap_or_else(|longest| panic!("{}", longest.without(&events)))
    }
}

/// Searches for an order (Wing and Gong; states that were seen are kept, as Lowe has it).
///
/// # Errors
/// The longest order that was found.
fn order<M: Model>(events: &[Event<M::Operation, M::Outcome>], model: M) -> Result<M, Point<M>> {
    let begin = Point {
        first: 0,
        others: Vec::new(),
        model,
    };
    let mut longest = begin.clone();
    let mut seen = HashSet::new();
    let mut open = vec![begin];
    while let Some(point) = open.pop() {
        if point.first == events.len() {
            return Ok(point.model);
        }
        if !seen.insert((point.first, point.others.clone(), point.model.state())) {
            continue;
        }
        if point.length() > longest.length() {
            longest = point.clone();
        }
        let left = || (point.first..events.len()).filter(|at| !point.others.contains(at));
        // What begins after another has ended comes after it.
        let horizon = left()
            .map(|at| events[at].ended)
            .min()
            .unwrap_or(usize::MAX);
        let next = left().take_while(|&at| events[at].begun < horizon);
        let after = next.filter_map(|at| {
            let mut model = point.model.clone();
            let outcome = model.apply(&events[at].operation);
            (Some(outcome) == events[at].outcome).then(|| point.with(at, model))
        });
        let after: Vec<_> = after.collect();
        open.extend(after.into_iter().rev());
    }
    Err(longest)
}

impl<M: Model> Point<M> {
    /// The number of its events.
    fn length(&self) -> usize {
        self.first + self.others.len()
    }

    /// One event more.
    fn with(&self, event: usize, model: M) -> Self {
        let mut others = self.others.clone();
        others.insert(others.partition_point(|&other| other < event), event);
        let mut first = self.first;
        while others.first() == Some(&first) {
            others.remove(0);
            first += 1;
        }
        Self {
            first,
            others,
            model,
        }
    }

    /// What it leads to, and the first events that it lacks.
    fn without(&self, events: &[Event<M::Operation, M::Outcome>]) -> String {
        let state = self.model.state();
        let mut text =
            format!("no order explains the history. The longest leads to\n  {state:x?}\nwithout\n");
        let left = (self.first..events.len()).filter(|at| !self.others.contains(at));
        for at in left.take(12) {
            let Event {
                begun,
                ended,
                operation,
                outcome,
            } = &events[at];
            _ = writeln!(text, "  {begun}..{ended} {operation:x?}: {outcome:x?}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Model, order};

    /// A number that is read and written. A write yields the number before.
    #[derive(Clone)]
    struct Register(u64);

    #[derive(Debug, Clone, Copy)]
    enum Operation {
        Write(u64),
        Read,
    }
    use Operation::{Read, Write};

    impl Model for Register {
        type Operation = Operation;
        type Outcome = u64;
        type State = u64;

        fn apply(&mut self, operation: &Operation) -> u64 {
            let before = self.0;
            if let Write(new) = operation {
                self.0 = *new;
            }
            before
        }

        fn state(&self) -> u64 {
            self.0
        }
    }

    /// What the operations lead to, or the length of the longest order.
    fn explained(events: &[(usize, usize, Operation, u64)]) -> Result<u64, usize> {
        let event = |&(begun, ended, operation, outcome)| Event {
            begun,
            ended,
            operation,
            outcome: Some(outcome),
        };
        let events: Vec<_> = events.iter().map(event).collect();
        let ordered = order(&events, Register(0));
        ordered.map(|model| model.0).map_err(|longest| {
            assert!(longest.without(&events).contains("without\n"));
            longest.length()
        })
    }

    #[test]
    fn operations_side_by_side_may_come_in_any_order() {
        let write = (1, 4, Write(7), 0);
        assert_eq!(explained(&[write, (2, 3, Read, 7)]), Ok(7));
        assert_eq!(explained(&[write, (2, 3, Read, 0)]), Ok(7));
        assert_eq!(explained(&[]), Ok(0));
    }

    #[test]
    fn operations_one_after_another_come_in_that_order() {
        assert_eq!(explained(&[(1, 2, Write(7), 0), (3, 4, Read, 7)]), Ok(7));
        assert_eq!(explained(&[(1, 2, Write(7), 0), (3, 4, Read, 0)]), Err(1));
        assert_eq!(explained(&[(1, 2, Read, 7), (3, 4, Write(7), 0)]), Err(0));
    }

    #[test]
    fn no_two_operations_have_what_only_one_can_have() {
        let (one, other) = ((1, 4, Write(1), 0), (2, 5, Write(2), 0));
        assert_eq!(explained(&[one, other]), Err(1));
        assert_eq!(
            explained(&[one, (2, 5, Write(2), 1), (3, 6, Read, 1)]),
            Ok(2)
        );
    }
}
