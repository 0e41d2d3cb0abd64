//! Crashes between the steps of concurrent writers.
//!
//! A random schedule of the simulated machine interleaves a few threads that write pages of one file. The medium
//! records every step, and a crash is tried at every moment. The oracle, for each page: what is recovered is what the
//! file was made with, or what an operation wrote that had begun, and no operation on this page began after that one
//! had returned and returned itself before the crash. An operation that had returned is there unless another
//! overwrote it. Of an operation under way, all pages are there or none, unless another overwrote them.

use crate::crash::explore::brief;
use crate::crash::images::{Crash, Replay};
use crate::store::medium::{Event, Medium, Simulated};
use crate::store::{Durable, Geometry, Options, PAGE, Store, make};
use fastrand::Rng;
use prim::{Fuzz, Machine, Placement, Setup, Stock, run, thread};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Pages of the file.
const FILE: usize = 6;

const THREADS: usize = 3;

/// Operations of each thread: so many that the last log page is full in the middle.
const OPERATIONS: usize = 5;

/// A write: the pages that it fills, each with a number of its own, or the half of one page.
#[derive(Debug, Clone, Copy)]
struct Write {
    first: usize,
    pages: usize,
    /// 0 and 1: only that half of the page.
    half: Option<usize>,
}

/// What is counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub schedules: usize,
    pub moments: usize,
    pub images: usize,
    pub states: usize,
}

/// The operations of all threads, which follow from the seed.
fn plan(seed: u64) -> Vec<Vec<Write>> {
    let mut rng = Rng::with_seed(seed);
    let mut one = || {
        let pages = rng.usize(1..=2);
        let first = rng.usize(..=FILE - pages);
        let half = (pages == 1 && rng.bool()).then(|| rng.usize(..2));
        Write { first, pages, half }
    };
    (0..THREADS)
        .map(|_| (0..OPERATIONS).map(|_| one()).collect())
        .collect()
}

/// The value that an operation writes: it is not zero.
fn value(thread: usize, number: usize) -> u8 {
    u8::try_from(1 + thread * OPERATIONS + number).expect("few operations")
}

fn options() -> Options {
    Options {
        stocks: 1,
        now: || 1_000,
        ..Options::default()
    }
}

/// Runs random schedules, which follow from these seeds, until one fails. Returns what was tried.
pub fn search(edge: Option<&'static str>, seeds: Range<u64>) -> Result<Counts, String> {
    let mut all = Counts::default();
    for seed in seeds {
        let mut rng = Rng::with_seed(seed);
        let machine = rng.choice(["small-1x2x1", "xeon-2x10x2"]).expect("two");
        let setup = Setup {
            placement: Placement::Unpinned,
            seed,
            fuzz: Fuzz {
                jitter: rng.choice([200, 2000]).expect("two"),
                preempted: rng.choice([300, 3000]).expect("two"),
                preemption: rng.choice([10_000, 300_000]).expect("two"),
                drain: rng.choice([0, 1000]).expect("two"),
                stock: Stock::Ample,
            },
            mutant: edge.map(str::to_owned),
            ..Setup::new(Machine::find(machine).expect("built in"))
        };
        let ended = run(&setup, move || schedule(seed)).map_err(|failure| failure.to_string())?;
        let counts = ended.value.map_err(|what| format!("seed {seed}: {what}"))?;
        all.schedules += 1;
        all.moments += counts.moments;
        all.images += counts.images;
        all.states += counts.states;
    }
    Ok(all)
}

/// One schedule: the threads run, and then all crashes are tried.
fn schedule(seed: u64) -> Result<Counts, String> {
    let crash = [Crash::Lines, Crash::Kill][seed as usize % 2];
    let durable = match crash {
        Crash::Lines => Durable::AtFence,
        _ => Durable::AtSync,
    };
    let medium = Arc::new(Simulated::new(vec![0; 48 * PAGE], durable));
    let geometry = Geometry {
        inodes: Some(64),
        id: Some(7),
    };
    make(&medium, &geometry).map_err(|error| error.to_string())?;
    let (store, _) =
        Store::open(Arc::clone(&medium), options()).map_err(|error| error.to_string())?;
    let store = Arc::new(store);
    let file = Arc::new(
        store
            .create("/shared", 0o644)
            .map_err(|error| error.to_string())?,
    );
    // The log is nearly long enough to be extended, or to be rewritten: an entry of these takes two slots of 63.
    let mut rng = Rng::with_seed(seed);
    for _ in 0..rng.choice([1, 92, 92]).expect("three") {
        file.write_at(&[200; FILE * PAGE], 0)
            .map_err(|error| error.to_string())?;
    }
    let base = medium.content();
    drop(medium.take_events());
    let plan = plan(seed);
    let threads: Vec<_> = plan
        .iter()
        .cloned()
        .enumerate()
        .map(|(number, writes)| {
            let (file, medium) = (Arc::clone(&file), Arc::clone(&medium));
            thread::spawn(move || work(&file, &medium, number, &writes))
        })
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
    let events = medium.take_events();
    let mut judge = Judge {
        crash,
        plan: &plan,
        ops: vec![(None, None); THREADS * OPERATIONS],
        rng,
        seen: HashSet::new(),
        counts: Counts::default(),
    };
    judge.all_moments(base, &events)?;
    Ok(judge.counts)
}

fn work<M: Medium>(
    file: &crate::store::File<M>,
    medium: &Simulated,
    number: usize,
    writes: &[Write],
) {
    for (at, write) in writes.iter().enumerate() {
        let id = (number * OPERATIONS + at) as u64;
        let value = value(number, at);
        let (begin, length) = match write.half {
            None => (write.first * PAGE, write.pages * PAGE),
            Some(half) => (write.first * PAGE + half * PAGE / 2, PAGE / 2),
        };
        medium.mark([0, id]);
        file.write_at(&vec![value; length], begin as u64)
            .expect("space comes back");
        medium.mark([1, id]);
    }
}

struct Judge<'a> {
    crash: Crash,
    plan: &'a [Vec<Write>],
    /// When each operation began and returned, as numbers of events.
    ops: Vec<(Option<usize>, Option<usize>)>,
    rng: Rng,
    seen: HashSet<u64>,
    counts: Counts,
}

impl Judge<'_> {
    fn all_moments(&mut self, base: Vec<u8>, events: &[Event]) -> Result<(), String> {
        let mut replay = Replay::new(self.crash, base);
        for (at, event) in events.iter().enumerate() {
            let worth = match event {
                Event::Fence { .. } => self.crash == Crash::Lines && self.rng.u8(..3) == 0,
                Event::Write { .. } => self.crash == Crash::Kill && self.rng.u8(..3) == 0,
                _ => false,
            };
            if worth {
                self.crash(&replay, events, at)?;
            }
            replay.step(event);
            if let Event::Mark {
                what: [kind, op], ..
            } = event
            {
                let (begun, returned) = &mut self.ops[*op as usize];
                match kind {
                    0 => *begun = Some(at),
                    _ => *returned = Some(at),
                }
            }
        }
        self.crash(&replay, events, events.len())
    }

    fn crash(&mut self, replay: &Replay, events: &[Event], at: usize) -> Result<(), String> {
        self.counts.moments += 1;
        let mut images = Vec::new();
        replay.images(&mut self.rng, 2, |image| images.push(image));
        for image in images {
            self.counts.images += 1;
            let mut hasher = DefaultHasher::new();
            (&image, &self.ops).hash(&mut hasher);
            if !self.seen.insert(hasher.finish()) {
                continue;
            }
            self.counts.states += 1;
            self.recover(image).map_err(|what| {
                let steps: Vec<_> = events[at.saturating_sub(24)..at]
                    .iter()
                    .map(brief)
                    .collect();
                format!(
                    "{:?}: {what}\nthe last steps before the crash:\n{}",
                    self.crash,
                    steps.join("\n")
                )
            })?;
        }
        Ok(())
    }

    fn recover(&self, image: Vec<u8>) -> Result<(), String> {
        let durable = match self.crash {
            Crash::Lines => Durable::AtFence,
            _ => Durable::AtSync,
        };
        let medium = Arc::new(Simulated::new(image, durable));
        let (store, _) =
            Store::open(medium, options()).map_err(|error| format!("it is not opened: {error}"))?;
        let file = store
            .open_file("/shared")
            .map_err(|error| error.to_string())?;
        let mut content = vec![0; FILE * PAGE];
        let length = file
            .read_at(&mut content, 0)
            .map_err(|error| error.to_string())?;
        if length != FILE * PAGE {
            return Err(format!("the file has {length} bytes"));
        }
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
            self.half_is_possible(half, found)?;
        }
        self.operations_are_whole(&halves)
    }

    fn write(&self, op: usize) -> Write {
        self.plan[op / OPERATIONS][op % OPERATIONS]
    }

    /// The half pages that an operation writes.
    fn halves(&self, op: usize) -> Range<usize> {
        let write = self.write(op);
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
            let own = u8::try_from(op + 1).expect("few operations");
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

#[test]
fn crashes_between_the_steps_of_concurrent_writers() {
    let begin = std::time::Instant::now();
    let schedules = 24 * crate::crash::scale() as u64;
    let counts = search(None, 0..schedules).unwrap_or_else(|what| panic!("{what}"));
    println!(
        "| concurrent, {THREADS} threads | {} schedules | {} moments | {} images | {} distinct | {:.1} s |",
        counts.schedules,
        counts.moments,
        counts.images,
        counts.states,
        begin.elapsed().as_secs_f64()
    );
}
