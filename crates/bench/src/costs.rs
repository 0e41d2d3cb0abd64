//! The costs of locks beside throughput: memory, time without contention, and waiting.

use crate::among::{self, Waited};
use crate::many_locks::{self, Many};
use crate::memory::{self, Allocated};
use crate::owners::{Case, OWNED, Owned};
use crate::peers::Readers;
use crate::processor;
use crate::provenance::cores;
use crate::registry::Lock;
use crate::rw::locks::Lock as RwLock;
use crate::workload;
use spanlock::range::raw::Mode;
use spanlock_records::record::{
    Among, HOLD, Kind, ManyLocks, Memory, Panel, Record, RwUncontended, Uncontended,
};
use spanlock_records::trial::run::{Schedule, Trial};
use spanlock_records::trial::setting::Resource;
use spanlock_records::trial::settings::Settings;
use spanlock_records::trial::times::AcquireTimes;
use spanlock_workbench::arr::{Load, Variant};

/// What a table says of read-modify-writes that nobody counted.
const NOT_COUNTED: &str = "-";

/// The memory of a lock and so many holders. If the lock cannot be held so, nothing is run and the record says why.
#[must_use]
pub fn memory(lock: &Lock, hold: usize, allocated: Allocated<'_>) -> Memory {
    let cannot = lock
        .holds_one_because(memory::RESOURCE)
        .filter(|_| hold > 1);
    let counted = match cannot {
        Some(why) => Memory {
            hold,
            skipped: Some(why.to_owned()),
            ..Memory::default()
        },
        None => memory::run(|| lock.make(memory::RESOURCE), hold, allocated),
    };
    Memory {
        lock: lock.name.to_owned(),
        ..counted
    }
}

/// The memory of so many locks that so many threads use once.
#[must_use]
pub fn many_locks(lock: &Lock, many: Many, allocated: Allocated<'_>) -> ManyLocks {
    ManyLocks {
        lock: lock.name.to_owned(),
        ..many_locks::run(|| lock.make(many_locks::RESOURCE), many, allocated)
    }
}

/// A range lock in one of its uses, which nobody else wants.
#[derive(Clone, Copy)]
pub struct Subject {
    /// The lock.
    pub lock: &'static Lock,
    /// How it is used.
    pub usage: Usage,
}

/// Who acquires ranges, and how.
#[derive(Clone, Copy)]
pub enum Usage {
    /// A thread, in this mode.
    Thread(Mode),
    /// An owner, or a thread beside one.
    Owner(&'static Owned, Case),
}

impl Subject {
    /// The uses that a lock has.
    pub fn all_of(lock: &'static Lock) -> impl Iterator<Item = Self> {
        let modes: &[Mode] = match lock.make(Resource::ARRAY).readers() {
            Readers::Share => &[Mode::Exclusive, Mode::Shared],
            Readers::Exclude => &[Mode::Exclusive],
        };
        let threads = modes.iter().map(|&mode| Usage::Thread(mode));
        let owned = OWNED.iter().filter(|owned| owned.lock == lock.name);
        let by_owners = |owned: &'static Owned| {
            let cases = owned.cases.iter();
            cases.map(move |&case| Usage::Owner(owned, case))
        };
        let all = threads.chain(owned.flat_map(by_owners));
        all.map(move |usage| Self { lock, usage })
    }

    /// Measures one round.
    #[must_use]
    pub fn measure(self, pairs: u32, round: u32) -> Uncontended {
        let Self { lock, usage } = self;
        let (pairs, took) = match usage {
            Usage::Thread(mode) => (pairs, lock.uncontended(mode, pairs)),
            Usage::Owner(owned, case) => owned.time(case, pairs),
        };
        let (mode, rmw) = match usage {
            Usage::Thread(Mode::Shared) => ("read".to_owned(), lock.rmw),
            Usage::Thread(Mode::Exclusive) => ("write".to_owned(), lock.rmw),
            Usage::Owner(owned, case) => (format!("{case}{}", owned.state), NOT_COUNTED),
        };
        Uncontended {
            lock: lock.name.to_owned(),
            mode,
            round,
            pairs,
            ns_per_pair: took.as_nanos() as f64 / f64::from(pairs),
            rmw_by_reading: rmw.to_owned(),
        }
    }
}

/// One round of a reader-writer lock that nobody else wants, in both modes.
#[must_use]
pub fn rw_uncontended(lock: &RwLock, pairs: u32, round: u32) -> RwUncontended {
    let each = |mode| {
        let took = lock.measure.uncontended(mode, pairs);
        took.as_nanos() as f64 / f64::from(pairs)
    };
    RwUncontended {
        lock: lock.name.to_owned(),
        round,
        pairs,
        read_ns: each(Mode::Shared),
        write_ns: each(Mode::Exclusive),
    }
}

/// How long a request for a lock waits in a case.
#[must_use]
pub fn among(lock: &Lock, case: &among::Case, schedule: Schedule) -> Among {
    let Waited {
        times,
        others,
        elapsed,
    } = among::run(
        &*lock.make(Resource::ARRAY),
        Resource::ARRAY,
        case,
        schedule,
    );
    Among {
        lock: lock.name.to_owned(),
        case: case.to_string(),
        requests: times.count(),
        mean_ns: times.mean(),
        acquire_ns: AcquireTimes::from(&times),
        others_per_sec: others as f64 / elapsed.as_secs_f64(),
    }
}

/// Threads that all write the whole array, one after the other and without a pause.
#[must_use]
pub fn contention(threads: usize, schedule: Schedule, seed: u64) -> Trial<Panel> {
    let load = Load {
        variant: Variant::Full,
        reads: 0,
        pauses: 0,
        latency: true,
    };
    Trial::new(schedule, seed).with(load.panel(), threads)
}

/// The costs of waiting for a lock: processor time of waiting threads, and how evenly the lock serves them.
///
/// # Errors
/// When the lock lost updates although it promises exclusion.
pub fn waiting(lock: &'static Lock, trial: Trial<Panel>) -> Result<Record, String> {
    let contention = workload::measure(trial, lock)?;
    let available = contention.seconds * cores() as f64;
    let slept = processor::sleeper(&*lock.make(Resource::ARRAY), HOLD);
    Ok(Record {
        panel: Panel::new("waiting", Kind::Others, &trial.load.to_string(), &()),
        cpu_share: contention.cpu_seconds.map(|used| used / available),
        sleeper_cpu_ms: slept.map(|used| used.as_secs_f64() * 1e3),
        ..contention
    })
}
