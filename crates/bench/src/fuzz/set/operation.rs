//! Operations on a map of numbers.

use spanlock_testkit::history::Model;
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
#[derive(Debug, Clone, Default)]
pub(super) struct Map(BTreeMap<u64, u64>);

impl Model for Map {
    type Operation = Operation;
    type Outcome = Done;
    type State = BTreeMap<u64, u64>;

    fn apply(&mut self, operation: &Operation) -> Done {
        let Self(map) = self;
        let own = |(key, value): (&u64, &u64)| (*key, *value);
        match *operation {
            Operation::Insert(key, value) => Done::Value(map.insert(key, value)),
            Operation::Remove(key) => Done::Entry(map.remove_entry(&key)),
            Operation::Update(key) => Done::Value(map.get_mut(&key).map(|value| {
                *value += 1;
                *value
            })),
            Operation::PopFirst => Done::Entry(map.pop_first()),
            Operation::First => Done::Entry(map.first_key_value().map(own)),
            Operation::Last => Done::Entry(map.last_key_value().map(own)),
            Operation::Get(key) => Done::Value(map.get(&key).copied()),
            Operation::All => Done::Entries(map.iter().map(own).collect()),
        }
    }

    fn state(&self) -> Self::State {
        self.0.clone()
    }
}
