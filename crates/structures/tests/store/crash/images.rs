//! From the record of a simulated medium to what it may contain after a crash.
//!
//! | crash | unit | stores of a unit | durable |
//! |---|---|---|---|
//! | power loss, persistent memory | cache line | in order, 8 bytes at a time | at the fence after a flush by the same thread |
//! | power loss, page cache | sector | in order, a sector at a time | at the end of a sync that begins later |
//! | killed process | - | all, in the order of the program | at once |

use crate::store::medium::Event;
use fastrand::Rng;
use std::collections::{BTreeMap, HashMap};

/// What crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crash {
    /// The power of a machine with persistent memory.
    Lines,
    /// The power of a machine with a page cache.
    Sectors,
    /// The process.
    Kill,
}

impl Crash {
    fn unit(self) -> u64 {
        match self {
            Self::Sectors => 512,
            Self::Lines | Self::Kill => 64,
        }
    }
}

/// A store that is not durable yet.
#[derive(Debug, Clone)]
struct Pending {
    order: u64,
    at: usize,
    bytes: Vec<u8>,
}

/// The medium at a moment of the record.
pub struct Replay {
    crash: Crash,
    durable: Vec<u8>,
    /// In order, by unit.
    pending: BTreeMap<u64, Vec<Pending>>,
    /// How many of a unit's stores a thread has flushed.
    flushed: HashMap<(u32, u64), usize>,
    /// The same at the beginning of a thread's sync.
    syncing: HashMap<u32, Vec<(u64, usize)>>,
    order: u64,
}

/// So many of the stores of each unit.
type Choice = Vec<(u64, usize)>;

impl Replay {
    pub fn new(crash: Crash, durable: Vec<u8>) -> Self {
        Self {
            crash,
            durable,
            pending: BTreeMap::new(),
            flushed: HashMap::new(),
            syncing: HashMap::new(),
            order: 0,
        }
    }

    /// The next event happens.
    pub fn step(&mut self, event: &Event) {
        match event {
            Event::Write { at, bytes, .. } => self.write(*at, bytes),
            Event::Flush { thread, at, bytes } => {
                let units = at / self.crash.unit()..(at + bytes).div_ceil(self.crash.unit());
                for (&unit, stores) in self.pending.range(units) {
                    self.flushed.insert((*thread, unit), stores.len());
                }
            }
            Event::Fence { thread } => self.fence(*thread),
            Event::SyncBegins { thread } => {
                let all = self
                    .pending
                    .iter()
                    .map(|(&unit, stores)| (unit, stores.len()));
                self.syncing.insert(*thread, all.collect());
            }
            Event::SyncEnds { thread } => match self.crash {
                Crash::Lines => self.fence(*thread),
                _ => {
                    let all = self.syncing.remove(thread).unwrap_or_default();
                    all.into_iter()
                        .for_each(|(unit, count)| self.persist(unit, count));
                }
            },
            Event::Mark { .. } => {}
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut at = usize::try_from(at).expect("a small medium");
        if self.crash == Crash::Kill {
            self.durable[at..at + bytes.len()].copy_from_slice(bytes);
            return;
        }
        let store = match self.crash {
            Crash::Sectors => 512,
            _ => 8,
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(store - at % store));
            let unit = at as u64 / self.crash.unit();
            self.order += 1;
            let pending = Pending {
                order: self.order,
                at,
                bytes: now.to_vec(),
            };
            self.pending.entry(unit).or_default().push(pending);
            (at, rest) = (at + now.len(), later);
        }
    }

    fn fence(&mut self, thread: u32) {
        if self.crash != Crash::Lines {
            return;
        }
        let flushed = self.flushed.iter().filter(|((by, _), _)| *by == thread);
        let flushed: Vec<_> = flushed.map(|((_, unit), &count)| (*unit, count)).collect();
        for (unit, count) in flushed {
            self.flushed.remove(&(thread, unit));
            self.persist(unit, count);
        }
    }

    /// The first stores of a unit are durable.
    fn persist(&mut self, unit: u64, count: usize) {
        let Some(stores) = self.pending.get_mut(&unit) else {
            return;
        };
        let count = count.min(stores.len());
        for store in stores.drain(..count) {
            self.durable[store.at..][..store.bytes.len()].copy_from_slice(&store.bytes);
        }
        if stores.is_empty() {
            self.pending.remove(&unit);
        }
        for ((_, other), left) in &mut self.flushed {
            if *other == unit {
                *left = left.saturating_sub(count);
            }
        }
        for (other, left) in self.syncing.values_mut().flatten() {
            if *other == unit {
                *left = left.saturating_sub(count);
            }
        }
    }

    /// What may be there after a crash now: none, all, and then each unit alone, all but one, each unit up to each of
    /// its stores, pairs, beginnings in the order of the program, and random parts, as many as are asked for. Calls `f`
    /// with each.
    pub fn images(&self, rng: &mut Rng, most: usize, mut f: impl FnMut(Vec<u8>)) {
        let all: Choice = self
            .pending
            .iter()
            .map(|(&unit, stores)| (unit, stores.len()))
            .collect();
        if all.is_empty() {
            return f(self.durable.clone());
        }
        f(self.with(&Vec::new()));
        f(self.with(&all));
        let mut choices = self.systematic(&all);
        rng.shuffle(&mut choices);
        choices.truncate(most);
        // Half of the rest.
        for _ in choices.len() / 2..most / 2 {
            choices.push(self.random(rng, &all));
        }
        for choice in choices {
            f(self.with(&choice));
        }
    }

    fn systematic(&self, all: &Choice) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (at, &(unit, count)) in all.iter().enumerate() {
            let others = || all.iter().copied().filter(|(other, _)| *other != unit);
            for part in 1..=count {
                choices.push(vec![(unit, part)]);
                choices.push(others().chain([(unit, part)]).collect());
            }
            choices.push(others().collect());
            // All pairs where there are few.
            let pairs = all[at + 1..].iter().take(16);
            choices.extend(pairs.map(|&other| vec![(unit, count), other]));
        }
        let orders = self.pending.values().flatten().map(|store| store.order);
        let mut orders: Vec<_> = orders.collect();
        orders.sort_unstable();
        for order in orders.into_iter().step_by(1 + all.len() / 8) {
            choices.push(self.until(order));
        }
        choices
    }

    /// What the program had stored so far.
    fn until(&self, order: u64) -> Choice {
        let counts = self.pending.iter().map(|(&unit, stores)| {
            let count = stores.iter().filter(|store| store.order <= order).count();
            (unit, count)
        });
        counts.collect()
    }

    fn random(&self, rng: &mut Rng, all: &Choice) -> Choice {
        // From hardly any to nearly all.
        let often = rng.u32(1..16);
        let mut choice = Choice::new();
        for &(unit, count) in all {
            if rng.u32(..16) < often {
                choice.push((unit, rng.usize(1..=count)));
            }
        }
        choice
    }

    fn with(&self, choice: &Choice) -> Vec<u8> {
        let mut image = self.durable.clone();
        for (unit, count) in choice {
            for store in &self.pending[unit][..*count] {
                image[store.at..][..store.bytes.len()].copy_from_slice(&store.bytes);
            }
        }
        image
    }
}
