//! Crashes between the steps of concurrent writers.
//!
//! A random schedule of the simulated machine interleaves a few threads that change one file. The medium records every
//! step, and a crash is tried at every moment. What threads do, and which content may be recovered, is a [`Task`]:
//!
//! | task | operations | oracle |
//! |---|---|---|
//! | [`Pages`] | writes of pages and halves of pages | page by page |
//! | [`Sizes`] | writes, appends and truncations | some order of the operations gives this content |

mod pages;
mod sizes;

use crate::crash::explore::brief;
use crate::crash::images::{Crash, Replay};
use crate::store::medium::{Event, Simulated};
use crate::store::{Durable, File, Geometry, Options, PAGE, Store, make};
use fastrand::Rng;
pub use pages::Pages;
use prim::{Fuzz, Machine, Placement, Setup, Stock, run, thread};
pub use sizes::Sizes;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// A file on a simulated medium.
type Shared = File<Arc<Simulated>>;

/// What threads do to a file, and what may be left of it.
pub trait Task: Send + Sync + 'static {
    const THREADS: usize;
    /// Operations of each thread.
    const OPERATIONS: usize;

    /// The operations of all threads, which follow from the seed.
    fn new(seed: u64) -> Self;

    /// Writes what is there before.
    fn prepare(&self, rng: &mut Rng, file: &Shared) -> crate::store::Result<()>;

    /// Operation `op` of a thread.
    fn perform(&self, op: usize, file: &Shared) -> crate::store::Result<()>;

    /// Whether that content is possible after these operations.
    fn judge(&self, times: &[Times], content: &[u8]) -> Result<(), String>;
}

/// When an operation began, and when it returned, as numbers of events.
pub type Times = (Option<usize>, Option<usize>);

/// What is counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub schedules: usize,
    pub moments: usize,
    pub images: usize,
    pub states: usize,
}

/// The clock stands still. Threads have one log together, or more.
fn options(seed: u64) -> Options {
    Options {
        stocks: [1, 3][seed as usize / 2 % 2],
        now: || 1_000,
        ..Options::default()
    }
}

/// Runs random schedules, which follow from these seeds, until one fails. Returns what was tried.
pub fn search<T: Task>(edge: Option<&'static str>, seeds: Range<u64>) -> Result<Counts, String> {
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
        let ended =
            run(&setup, move || schedule::<T>(seed)).map_err(|failure| failure.to_string())?;
        let counts = ended.value.map_err(|what| format!("seed {seed}: {what}"))?;
        all.schedules += 1;
        all.moments += counts.moments;
        all.images += counts.images;
        all.states += counts.states;
    }
    Ok(all)
}

/// One schedule: the threads run, and then all crashes are tried.
fn schedule<T: Task>(seed: u64) -> Result<Counts, String> {
    let crash = [Crash::Lines, Crash::Kill][seed as usize % 2];
    let medium = Arc::new(Simulated::new(vec![0; 48 * PAGE], durable(crash)));
    let geometry = Geometry {
        inodes: Some(64),
        id: Some(7),
    };
    make(&medium, &geometry).map_err(|error| error.to_string())?;
    let (store, _) =
        Store::open(Arc::clone(&medium), options(seed)).map_err(|error| error.to_string())?;
    let store = Arc::new(store);
    let file = Arc::new(
        store
            .create("/shared", 0o644)
            .map_err(|error| error.to_string())?,
    );
    let mut rng = Rng::with_seed(seed);
    let task = Arc::new(T::new(seed));
    task.prepare(&mut rng, &file)
        .map_err(|error| error.to_string())?;
    let base = medium.content();
    drop(medium.take_events());
    let threads: Vec<_> = (0..T::THREADS)
        .map(|number| {
            let (task, file, medium) = (Arc::clone(&task), Arc::clone(&file), Arc::clone(&medium));
            thread::spawn(move || work(&*task, &file, &medium, number))
        })
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
    let events = medium.take_events();
    let mut judge = Judge {
        crash,
        task: &*task,
        times: vec![(None, None); T::THREADS * T::OPERATIONS],
        rng,
        seen: HashSet::new(),
        counts: Counts::default(),
    };
    judge.all_moments(base, &events)?;
    Ok(judge.counts)
}

/// The medium that such a crash needs. A killed process leaves what was stored: so nothing waits for a sync.
fn durable(crash: Crash) -> Durable {
    match crash {
        Crash::Lines => Durable::AtFence,
        Crash::Sectors => Durable::AtSync,
        Crash::Kill => Durable::Never,
    }
}

fn work<T: Task>(task: &T, file: &Shared, medium: &Simulated, number: usize) {
    for at in 0..T::OPERATIONS {
        let op = number * T::OPERATIONS + at;
        medium.mark([0, op as u64]);
        task.perform(op, file).expect("space comes back");
        medium.mark([1, op as u64]);
    }
}

struct Judge<'a, T> {
    crash: Crash,
    task: &'a T,
    /// Of each operation.
    times: Vec<Times>,
    rng: Rng,
    seen: HashSet<u64>,
    counts: Counts,
}

impl<T: Task> Judge<'_, T> {
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
                let (begun, returned) = &mut self.times[*op as usize];
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
            (&image, &self.times).hash(&mut hasher);
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
        let medium = Arc::new(Simulated::new(image, durable(self.crash)));
        let (store, _) = Store::open(medium, options(0))
            .map_err(|error| format!("it is not opened: {error}"))?;
        let file = store
            .open_file("/shared")
            .map_err(|error| error.to_string())?;
        let size = file.stat().map_err(|error| error.to_string())?.size;
        let mut content = vec![0; size as usize];
        file.read_at(&mut content, 0)
            .map_err(|error| error.to_string())?;
        self.task.judge(&self.times, &content)
    }
}

/// Tries schedules with everything intact, and prints what was tried.
fn explore<T: Task>(name: &str, schedules: u64) {
    let begin = std::time::Instant::now();
    let schedules = schedules * crate::crash::scale() as u64;
    let counts = search::<T>(None, 0..schedules).unwrap_or_else(|what| panic!("{what}"));
    println!(
        "| concurrent {name}, {} threads | {} schedules | {} moments | {} images | {} distinct | {:.1} s |",
        T::THREADS,
        counts.schedules,
        counts.moments,
        counts.images,
        counts.states,
        begin.elapsed().as_secs_f64()
    );
}

#[test]
fn crashes_between_the_steps_of_concurrent_writers() {
    explore::<Pages>("writes", 24);
}

#[test]
fn crashes_between_the_steps_of_concurrent_appends_and_truncations() {
    explore::<Sizes>("writes, appends, truncations", 48);
}
