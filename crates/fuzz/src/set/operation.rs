//! Operations on a map of numbers.

use crate::history::Model;
use std::collections::BTreeMap;

/// An operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Insert(u64, u64),
    Remove(u64),
    /// Adds one to a value.
    Update(u64),
    PopFirst,
    First,
    Last,
    Get(u64),
    /// All entries.
    All,
}

/// Its result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    Value(Option<u64>),
    Entry(Option<(u64, u64)>),
    Entries(Vec<(u64, u64)>),
}

/// What one thread would have.
pub(super) type Map = BTreeMap<u64, u64>;

impl Model for Map {
    type Operation = Operation;
    type Outcome = Done;
    type State = Self;

    fn apply(&mut self, operation: &Operation) -> Done {
        let own = |(key, value): (&u64, &u64)| (*key, *value);
        match *operation {
            Operation::Insert(key, value) => Done::Value(self.insert(key, value)),
            Operation::Remove(key) => Done::Entry(self.remove_entry(&key)),
            Operation::Update(key) => Done::Value(self.get_mut(&key).map(|value| {
                *value += 1;
                *value
            })),
            Operation::PopFirst => Done::Entry(self.pop_first()),
            Operation::First => Done::Entry(self.first_key_value().map(own)),
            Operation::Last => Done::Entry(self.last_key_value().map(own)),
            Operation::Get(key) => Done::Value(self.get(&key).copied()),
            Operation::All => Done::Entries(self.iter().map(own).collect()),
        }
    }

    fn state(&self) -> Self {
        self.clone()
    }
}
