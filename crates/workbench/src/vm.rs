//! Traffic of an address space, replayed (P1 §7.2).
//!
//! | module | what it is |
//! |---|---|
//! | [`replay`] | a trace on any address space: calls and faults, one at a time, and the areas at the end |
//! | [`variants`] | the variants that P1 and P2 compare, and ours |
//! | [`page`] | a page table whose pages are zeroed when a fault makes them |
//!
//! The threads of a trace are dealt to the threads of a run in turn, so a run of fewer threads has several in each. An
//! event waits for the events of other threads that [`order`] names, and for no others.

pub mod page;
pub mod replay;
pub mod variants;

use crate::baseline;
use crate::crew::Meter;
use crate::raw::AnyRaw;
use crate::workload::{Ends, Workload};
use page::Zeroed;
use prim::atomic::{AtomicUsize, Ordering};
use prim::clock::{Duration, Instant};
use prim::thread;
use prim::workload::{self, Start};
use replay::{Families, Replay};
use serde::{Deserialize, Serialize};
use spanlock::range::raw::Mode;
use spanlock_records::by_name;
use spanlock_records::record::{Kind, plural};
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Found, Outcome, Throughput};
use spanlock_records::trial::settings::Settings;
use spanlock_records::trial::vm::{self as vm_stat, Name, Speculations, Stat, TreeWaits};
use spanlock_records::vm_trace::metis::{MAX_GROWTHS, MAX_THREADS, Program};
use spanlock_records::vm_trace::order::{self, Wait};
use spanlock_records::vm_trace::{Call, Event, Trace, traffic};
use std::borrow::Cow;
use std::fmt;
use structures::vm::{AddressSpace, LockStat, Operation, Speculation, Waits};
use variants::{Lock, Variant};

/// What threads do between calls and faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Nothing.
    FlatOut,
    /// They pass the time that the program took, computing and waiting.
    Recorded,
}

impl Pace {
    /// Both.
    pub const ALL: [Self; 2] = [Self::FlatOut, Self::Recorded];
}

by_name!(Pace);

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// What is replayed: a recorded trace, or the program whose pattern it is.
    pub traffic: Name,
    /// How fast.
    pub pace: Pace,
    /// How often the heaps in a pattern grow, all threads together.
    pub growths: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            traffic,
            pace,
            growths,
        } = self;
        match traffic.text().parse::<Program>() {
            Ok(_) => write!(f, "pattern of {traffic}, {growths} growths, {pace}"),
            Err(_) => write!(f, "traffic of {traffic}, {pace}"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "vm";
    const KIND: Kind = Kind::Built;
}

impl Workload for Load {
    const ABOUT: &'static str =
        "Traffic of an address space, replayed on each variant; the areas at the end are checked";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::words(
            "traffic",
            traffic::named,
            "",
            "What to replay: wc, wr or wrmem (the patterns of these Metis programs, for any number of threads), a \
             recorded trace (`vm list` names them), or the file of a trace",
        ),
        Argument::words(
            "pace",
            Pace::named,
            "flat-out",
            "What threads do between calls and faults: flat-out, recorded",
        ),
        Argument::whole(
            "growths",
            1..=MAX_GROWTHS,
            "8192",
            "How often the heaps in a pattern grow, all threads together",
        ),
    ];
    const ENDS: Ends = Ends::ByItself("it ends when all calls and faults were replayed");
    /// Longer than any program that is recorded runs.
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_secs(3600));

    fn refused(trial: &Trial) -> Option<String> {
        let (traffic, threads) = (trial.load.traffic, trial.threads);
        let most = match traffic::kept(traffic.text()) {
            Some(trace) => trace.threads(),
            None => MAX_THREADS,
        };
        (threads > most).then(|| {
            let most = plural(most);
            format!(
                "{traffic} on {threads}: the trace has {most}; the patterns wc, wr and wrmem have as many as are \
                 asked for"
            )
        })
    }
}

/// One run, but for the variant.
pub type Trial = spanlock_records::trial::run::Trial<Load>;

/// Replays the traffic of a trial on a fresh address space. `pass` passes some time, as the program did.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<L: Lock>(
    make: fn() -> L,
    variant: Variant,
    trial: &Trial,
    meter: &mut dyn Meter,
    pass: &(dyn Fn(Duration) + Sync),
) -> Outcome {
    let locks = Locks {
        plain: &|| AnyRaw::new(make()),
        recorded: &|| AnyRaw::new(make().recorded()),
        waits: |lock| lock.get().and_then(L::tree_waits),
    };
    replayed(&locks, variant, trial, meter, pass)
}

/// A variant's lock, whatever its type.
struct Locks<'a> {
    plain: &'a dyn Fn() -> AnyRaw,
    recorded: &'a dyn Fn() -> AnyRaw,
    waits: fn(&AnyRaw) -> Option<baseline::TreeWaits>,
}

fn replayed(
    locks: &Locks<'_>,
    variant: Variant,
    trial: &Trial,
    meter: &mut dyn Meter,
    pass: &(dyn Fn(Duration) + Sync),
) -> Outcome {
    let Load {
        traffic, growths, ..
    } = trial.load;
    let trace = match traffic.text().parse::<Program>() {
        Ok(program) => Cow::Owned(program.trace(trial.threads, growths)),
        Err(_) => {
            Cow::Borrowed(traffic::kept(traffic.text()).expect("whoever names a trace reads it"))
        }
    };
    let threads = trial.threads;
    assert!(
        (1..=trace.threads()).contains(&threads),
        "{threads} threads"
    );
    let builder = || AddressSpace::builder().refinement(variant.refinement);
    let replay = |builder, lock| Replay::begin(&trace, builder, lock, Zeroed::default());
    // To record waits, the space tries each acquisition first, so threads do more than they would. Hence two replays.
    // The first warms up the second.
    let recorded = replay(builder().recorded(), (locks.recorded)());
    let tree_waits = || (locks.waits)(recorded.space().lock());
    let (before, tree_before) = (recorded.space().lock_stat(), tree_waits());
    let first = Run::new(&trace, threads, &recorded, trial.load.pace).outcome(&mut (), pass);
    if !first.found.is_nothing() {
        return first;
    }
    let after = recorded.space().lock_stat();
    let tree = tree_before
        .zip(tree_waits())
        .map(|(before, after)| TreeWaits {
            requests: after.requests - before.requests,
            tree_ns: after.tree_ns - before.tree_ns,
            range_ns: after.range_ns - before.range_ns,
        });
    drop(recorded);
    let timed = replay(builder(), (locks.plain)());
    Outcome {
        vm: before.zip(after).map(|(before, after)| Stat {
            tree,
            ..reported(&before, &after, &trace)
        }),
        ..Run::new(&trace, threads, &timed, trial.load.pace).outcome(meter, pass)
    }
}

/// What one thread did.
struct Worker {
    events: u64,
    refused: u64,
    begun: Instant,
    ended: Instant,
}

/// How many events of a thread of the trace are over, on a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Over(AtomicUsize);

/// A run of a trace.
struct Run<'a> {
    space: &'a Replay<'a, AnyRaw, Zeroed>,
    /// For each thread of the run the numbers of its events.
    shares: Vec<Vec<usize>>,
    events: &'a [Event],
    waits: order::Waits,
    over: Vec<Over>,
    pace: Pace,
}

impl<'a> Run<'a> {
    fn new(
        trace: &'a Trace,
        threads: usize,
        space: &'a Replay<'a, AnyRaw, Zeroed>,
        pace: Pace,
    ) -> Self {
        let mut shares = vec![Vec::new(); threads];
        for (number, event) in trace.events.iter().enumerate() {
            shares[event.thread % threads].push(number);
        }
        let over = (0..trace.threads()).map(|_| Over::default()).collect();
        let waits = order::waits(trace);
        Self {
            space,
            shares,
            events: &trace.events,
            waits,
            over,
            pace,
        }
    }

    /// All threads replay their shares.
    fn outcome(&self, meter: &mut dyn Meter, pass: &(dyn Fn(Duration) + Sync)) -> Outcome {
        let threads = self.shares.len();
        let start = Start::new(threads + 1);
        let workers = workload::crew(
            threads,
            |number| {
                start.wait();
                self.work(number, pass)
            },
            || {
                start.wait();
                meter.begin();
            },
        );
        let metered = meter.end();
        // From the first to begin to the last to end: this thread may learn of both late.
        let begun = workers.iter().map(|worker| worker.begun).min();
        let ended = workers.iter().map(|worker| worker.ended).max();
        let elapsed = ended
            .zip(begun)
            .map(|(ended, begun)| ended.saturating_duration_since(begun));
        let refused = workers.iter().map(|worker| worker.refused).sum();
        let families = if threads == 1 {
            Families::Compared
        } else {
            Families::Ignored
        };
        let differs = self.space.difference(families).is_some();
        Outcome {
            work: Throughput {
                ops: workers.iter().map(|worker| worker.events).collect(),
                elapsed: elapsed.expect("there is a thread"),
                processor: metered.processor,
                counts: metered.counts,
            },
            found: Found::Space { refused, differs },
            ..Outcome::default()
        }
    }

    fn work(&self, thread: usize, pass: &dyn Fn(Duration)) -> Worker {
        let begun = Instant::now();
        let share = &self.shares[thread];
        let mut refused = 0;
        for &number in share {
            let event = &self.events[number];
            if self.pace == Pace::Recorded && event.think > 0 {
                pass(Duration::from_micros(event.think));
            }
            for wait in self.waits.of(number) {
                self.until(*wait);
            }
            refused += u64::from(self.space.apply(&event.call).is_err());
            let over = &self.over[event.thread].0;
            // Release: pairs with the Acquire in `until`. Only this thread writes the word.
            over.store(over.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
        Worker {
            events: share.len() as u64,
            refused,
            begun,
            ended: Instant::now(),
        }
    }

    /// Waits until events of another thread are over. Nobody wakes this thread: what it waits for is short.
    fn until(&self, wait: Wait) {
        // Acquire: pairs with the Release in `work`.
        while self.over[wait.thread].0.load(Ordering::Acquire) < wait.events {
            thread::nap();
        }
    }
}

/// What a space recorded in between, as the harness reports it: operations that acquired nothing are left out. Nobody
/// had waited before.
fn reported(before: &LockStat, after: &LockStat, trace: &Trace) -> Stat {
    let is_protect = |event: &&Event| matches!(event.call, Call::Protect { .. });
    let of = |outcome| {
        let count = |stat: &LockStat| stat.speculations(Operation::Mprotect, outcome);
        count(after) - count(before)
    };
    let waits = |operation: Operation, mode, earlier: Waits, of: Waits| vm_stat::Waits {
        operation: Name::new(operation.name()),
        mode,
        acquired: of.acquired - earlier.acquired,
        waited: of.waited,
        ns: nanoseconds(of.time),
        longest_ns: nanoseconds(of.longest),
    };
    let modes = [
        (vm_stat::Mode::Shared, Mode::Shared),
        (vm_stat::Mode::Exclusive, Mode::Exclusive),
    ];
    let all = Operation::ALL.into_iter().flat_map(|operation| {
        modes.map(|(name, mode)| {
            let of = |stat: &LockStat| stat.waits(operation, mode);
            waits(operation, name, of(before), of(after))
        })
    });
    Stat {
        protects: trace.events.iter().filter(is_protect).count() as u64,
        speculations: Speculations {
            in_place: of(Speculation::InPlace),
            structural: of(Speculation::Structural),
            retried: of(Speculation::Retried),
            widened: of(Speculation::Widened),
            whole_for_structure: of(Speculation::WholeForStructure),
            whole_for_range: of(Speculation::WholeForRange),
            whole_for_retries: of(Speculation::WholeForRetries),
        },
        waits: all.filter(|waits| waits.acquired > 0).collect(),
        tree: None,
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
