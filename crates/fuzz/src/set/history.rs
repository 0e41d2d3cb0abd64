//! Histories of a map, and whether they are linearisable: whether there is an order of all operations that gives every
//! result, and in which an operation that ended before another began comes first.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

/// An operation on a map of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Insert(u64, u64),
    Remove(u64),
    /// Adds one to a value.
    Update(u64),
    PopFirst,
    First,
    Last,
    Get(u64),
}

/// Its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Value(Option<u64>),
    Entry(Option<(u64, u64)>),
}

/// An operation that has ended. Times are numbers that no two events share.
#[derive(Debug, Clone, Copy)]
struct Event {
    begun: u32,
    ended: u32,
    operation: Operation,
    done: Done,
}

/// What all threads have done. It is of the host: no simulated machine sees it.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<(u32, Vec<Event>)>);

type Map = BTreeMap<u64, u64>;

impl Operation {
    /// Does it, and returns its result.
    fn apply(self, map: &mut Map) -> Done {
        let own = |(key, value): (&u64, &u64)| (*key, *value);
        match self {
            Self::Insert(key, value) => Done::Value(map.insert(key, value)),
            Self::Remove(key) => Done::Entry(map.remove_entry(&key)),
            Self::Update(key) => Done::Value(map.get_mut(&key).map(|value| {
                *value += 1;
                *value
            })),
            Self::PopFirst => Done::Entry(map.pop_first()),
            Self::First => Done::Entry(map.first_key_value().map(own)),
            Self::Last => Done::Entry(map.last_key_value().map(own)),
            Self::Get(key) => Done::Value(map.get(&key).copied()),
        }
    }
}

impl History {
    /// The time at which an operation begins.
    pub(super) fn begin(&self) -> u32 {
        let mut all = self.0.lock().expect("no panic while held");
        all.0 += 1;
        all.0
    }

    /// Notes an operation that ends now.
    pub(super) fn end(&self, begun: u32, operation: Operation, done: Done) {
        let ended = self.begin();
        let event = Event {
            begun,
            ended,
            operation,
            done,
        };
        self.0.lock().expect("no panic while held").1.push(event);
    }

    /// # Panics
    /// When no order of the operations explains their results and what is left.
    pub(super) fn check(&self, left: &[(u64, u64)]) {
        let mut events = self.0.lock().expect("no panic while held").1.clone();
        events.sort_by_key(|event| event.begun);
        let left = left.iter().copied().collect();
        assert!(
            is_linearisable(&events, &left),
            "the history is not linearisable, with {left:?} left:\n{}",
            told(&events)
        );
    }
}

fn told(events: &[Event]) -> String {
    let line = |event: &Event| {
        let Event {
            begun,
            ended,
            operation,
            done,
        } = event;
        format!("    {begun:>4} to {ended:>4}  {operation:?}: {done:?}\n")
    };
    events.iter().map(line).collect()
}

/// Whether an order of the events explains them (Wing and Gong, with the states that were seen kept, as Lowe has it).
/// The events are in the order of their beginnings.
fn is_linearisable(events: &[Event], left: &Map) -> bool {
    // The first event that is not in the order yet, those after it that are, and the map.
    type State = (usize, Vec<usize>, Map);
    let mut seen: HashSet<State> = HashSet::new();
    let mut open: Vec<State> = vec![(0, Vec::new(), Map::new())];
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let (first, done, map) = state;
        if first == events.len() {
            if map == *left {
                return true;
            }
            continue;
        }
        let is_left = |at: &usize| !done.contains(at);
        let rest = || (first..events.len()).filter(is_left);
        // What begins after another has ended comes after it.
        let horizon = rest().map(|at| events[at].ended).min().unwrap_or(u32::MAX);
        for next in rest().take_while(|&at| events[at].begun < horizon) {
            let mut after = map.clone();
            if events[next].operation.apply(&mut after) == events[next].done {
                let mut done = done.clone();
                done.push(next);
                done.sort_unstable();
                let mut first = first;
                while done.first() == Some(&first) {
                    done.remove(0);
                    first += 1;
                }
                open.push((first, done, after));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(events: &[(u32, u32, Operation, Done)]) -> Vec<Event> {
        let event = |&(begun, ended, operation, done): &(u32, u32, Operation, Done)| Event {
            begun,
            ended,
            operation,
            done,
        };
        events.iter().map(event).collect()
    }

    #[test]
    fn an_order_is_found_or_not() {
        let insert = (1, 4, Operation::Insert(1, 7), Done::Value(None));
        let overlapping = (2, 3, Operation::Get(1), Done::Value(Some(7)));
        let left = Map::from([(1, 7)]);
        assert!(is_linearisable(&history(&[insert, overlapping]), &left));
        let before = (1, 2, Operation::Get(1), Done::Value(Some(7)));
        let after = (3, 4, Operation::Insert(1, 7), Done::Value(None));
        assert!(!is_linearisable(&history(&[before, after]), &left));
        assert!(!is_linearisable(&history(&[insert]), &Map::new()));
    }

    #[test]
    fn one_key_is_not_removed_twice() {
        let insert = (1, 2, Operation::Insert(1, 7), Done::Value(None));
        let entry = Done::Entry(Some((1, 7)));
        let remove = (3, 6, Operation::Remove(1), entry);
        let pop = (4, 5, Operation::PopFirst, entry);
        let nothing = (4, 5, Operation::PopFirst, Done::Entry(None));
        assert!(!is_linearisable(
            &history(&[insert, remove, pop]),
            &Map::new()
        ));
        assert!(is_linearisable(
            &history(&[insert, remove, nothing]),
            &Map::new()
        ));
    }
}
