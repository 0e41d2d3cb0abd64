//! The work on ordered maps: random operations of all threads on a few keys, whose history must be linearisable;
//! iterations, which must yield keys in order; and views that keep what they have found.

mod operation;

use crate::fuzz::crew::{Work, Worker};
use crate::fuzz::{Case, Lock, Run};
use operation::{Done, Map, Operation};
use prim_sim::atomic::{Ordering, fence};
use prim_sim::{cost, mark};
use spanlock_records::trial::lock::Role;
use spanlock_sim::range::list::{ListEx, ListRw};
use spanlock_sim::range::skip::SkipEx;
use spanlock_sim::range::slots::RawSlots;
use spanlock_structures_sim::ordered::exclusion::Exclusion;
use spanlock_structures_sim::ordered::{ByNode, ByRange, RangeSkipMap, View};
use spanlock_testkit::history::History;

/// All that are fuzzed: maps over range locks of different kinds, and with a lock in each node.
pub(crate) fn maps() -> Vec<Lock> {
    fn row<X: Exclusion + Send + Sync + 'static>(name: &'static str, make: fn() -> X) -> Lock {
        Lock::new(name, Role::Library, move |case| run(make, case))
    }
    vec![
        row("range-slots", || ByRange::new(RawSlots::new())),
        row("range-list-ex", || ByRange::new(ListEx::new())),
        row("range-list-rw", || ByRange::new(ListRw::new())),
        row("range-skip-ex", || ByRange::new(SkipEx::builder().build())),
        row("orig", ByNode::new),
    ]
}

fn run<X: Exclusion + Send + Sync + 'static>(make: fn() -> X, case: &Case) -> Run {
    case.run(move |rng| Resource {
        map: RangeSkipMap::with_exclusion(make()),
        keys: rng.u64(1..=6),
        history: History::default(),
    })
}

struct Resource<X: Exclusion> {
    map: RangeSkipMap<u64, u64, X>,
    /// Keys are from 0 to less than this.
    keys: u64,
    history: History<Map>,
}

impl<X: Exclusion + Send + Sync + 'static> Work for Resource<X> {
    fn operate(worker: &mut Worker<'_, Self>) {
        match worker.rng.u32(..16) {
            0 => worker.delegate(),
            1 => worker.iterate(),
            2 => worker.stay(),
            _ => {
                let view = worker.resource().map.pin();
                worker.act(&view);
            }
        }
    }

    fn act_in_concert(worker: &mut Worker<'_, Self>, number: usize) {
        worker.gather();
        if number == 0 {
            let Resource { map, history, .. } = worker.resource();
            // Until all stores are visible.
            cost::work(1_000_000);
            let view = map.pin();
            worker.perform(&view, Operation::All);
            history.explained(Map::default());
            for key in view.iter().map(|(key, _)| *key).collect::<Vec<_>>() {
                assert!(view.contains(&key) && view.remove(&key).is_some());
            }
            assert!(view.is_empty(), "a key came back");
        }
    }
}

impl<X: Exclusion + Send + Sync + 'static> Worker<'_, Resource<X>> {
    /// A random operation on one key.
    fn act(&mut self, view: &View<'_, u64, u64, X>) {
        let key = self.rng.u64(..self.resource().keys);
        let operation = match self.rng.u32(..12) {
            0..3 => Operation::Insert(key, self.rng.u64(..1000)),
            3..6 => Operation::Remove(key),
            6 => Operation::Update(key),
            7 => Operation::PopFirst,
            8 => Operation::First,
            9 => Operation::Last,
            _ => Operation::Get(key),
        };
        self.perform(view, operation);
    }

    /// One operation of the history.
    fn perform(&self, view: &View<'_, u64, u64, X>, operation: Operation) {
        let history = &self.resource().history;
        let own = |(key, value): (&u64, &u64)| (*key, *value);
        mark(format!("begins {operation:?}"));
        let number = history.begin(operation);
        let done = match operation {
            Operation::Insert(key, value) => Done::Value(view.insert(key, value).copied()),
            Operation::Remove(key) => Done::Entry(view.remove(&key).map(own)),
            Operation::Update(key) => Done::Value(view.update(&key, |value| value + 1).copied()),
            Operation::PopFirst => Done::Entry(view.pop_first().map(own)),
            Operation::First => Done::Entry(view.first().map(own)),
            Operation::Last => Done::Entry(view.last().map(own)),
            Operation::Get(key) => Done::Value(view.get(&key).copied()),
            Operation::All => Done::Entries(view.iter().map(own).collect()),
        };
        // The operation has ended when others can see it: the clock of a history is faster than a store buffer.
        fence(Ordering::SeqCst);
        mark(format!("has done it: {done:?}"));
        history.end(number, done);
    }

    /// Yields keys in order, each once.
    fn iterate(&mut self) {
        let view = self.resource().map.pin();
        let start = self.rng.u64(..=self.resource().keys);
        mark(format!("iterates from {start}"));
        let mut least = start;
        for (key, _) in view.range(start..) {
            assert!(*key >= least, "key {key} after {least}");
            least = key + 1;
            let pause = self.rng.u64(..1000);
            cost::work(pause);
        }
    }

    /// Keeps what it has found for a while, in which others remove it.
    fn stay(&mut self) {
        let view = self.resource().map.pin();
        let found: Vec<_> = view.iter().collect();
        let copies: Vec<_> = found.iter().map(|(key, value)| (**key, **value)).collect();
        mark("keeps what it has found");
        for _ in 0..3 {
            self.act(&view);
            let pause = self.rng.u64(..100_000);
            cost::work(pause);
        }
        let same = found.iter().map(|(key, value)| (**key, **value));
        assert!(same.eq(copies), "an entry changed while a view had it");
    }
}
