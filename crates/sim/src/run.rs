//! A run: coroutines, and the loop that resumes them.

use crate::clock::Duration;
use crate::heap::InARun;
use crate::machine::{Machine, Placement};
use crate::report::Failure;
use crate::world::{self, Step, World};
use corosensei::{Coroutine, CoroutineResult};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// What a read-modify-write does to the stores before it and the loads after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rmw {
    /// It waits for the stores, and the loads for it, as on x86.
    #[default]
    Fences,
    /// Its store goes through the store buffer as any other: later loads may come first. So do processors on which
    /// `fence_after_rmw` is an instruction.
    Buffered,
}

/// What is done to a run so that unlikely things happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fuzz {
    /// Each operation is late by less than so many cycles.
    pub jitter: u64,
    /// Of 10,000 operations, those before which the thread is preempted.
    pub preempted: u32,
    /// For less than so many cycles.
    pub preemption: u64,
    /// Each store stays in the buffer for less than so many cycles.
    pub drain: u64,
}

/// All that a run follows from, besides its workload.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// Where threads run.
    pub placement: Placement,
    /// What random numbers follow from.
    pub seed: u64,
    /// What read-modify-writes are.
    pub rmw: Rmw,
    /// What makes unlikely things happen.
    pub fuzz: Fuzz,
    /// The named edge that is weakened.
    pub mutant: Option<String>,
    /// The run fails when it has done so many operations.
    pub operations: u64,
    /// The run fails when it has lasted so long.
    pub lasts: Duration,
    /// How many of the last operations a failure tells.
    pub trace: usize,
}

impl Setup {
    /// On that machine, and nothing special.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            placement: Placement::default(),
            seed: 0,
            rmw: Rmw::default(),
            fuzz: Fuzz::default(),
            mutant: None,
            operations: u64::MAX,
            lasts: Duration::from_secs(3600),
            trace: 200,
        }
    }
}

/// A run that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended<T> {
    /// What the workload returned.
    pub value: T,
    /// Virtual time from its begin to its end.
    pub elapsed: Duration,
    /// Operations of all threads.
    pub operations: u64,
    /// A digest of them all, in order: equal for equal runs.
    pub digest: u64,
}

pub(crate) type Thread = Coroutine<(), (), ()>;

/// Runs `workload` as the first virtual thread, until it returns. Threads it has not joined are abandoned then.
///
/// # Errors
/// When a thread panics, when all threads that are left sleep, and when the run exceeds its operations. What the
/// threads own then is leaked: they are not resumed, nor unwound.
///
/// # Panics
/// Inside another run.
pub fn run<T: Send + 'static>(
    setup: &Setup,
    workload: impl FnOnce() -> T + Send + 'static,
) -> Result<Ended<T>, Box<Failure>> {
    assert!(!world::is_running(), "runs do not nest");
    hush();
    // A host thread of its own: one that a panic has left in the middle of an unwinding is never used again.
    std::thread::scope(|scope| {
        let host = scope.spawn(|| execute(setup, workload));
        host.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn execute<T: Send + 'static>(
    setup: &Setup,
    workload: impl FnOnce() -> T + Send + 'static,
) -> Result<Ended<T>, Box<Failure>> {
    world::begin(World::new(setup.clone()));
    let in_a_run = InARun::begin();
    let (result, returned) = std::sync::mpsc::channel();
    world::spawn(move || {
        // The receiver lives as long as the run.
        let _ = result.send(workload());
    });
    let mut threads: Vec<Option<Thread>> = Vec::new();
    let failure = loop {
        threads.extend(
            world::with(|world| std::mem::take(&mut world.newborn))
                .into_iter()
                .map(Some),
        );
        let number = match world::with(World::next) {
            Step::Resume(number) => number,
            Step::Ended => break None,
            Step::Failed(what) => break Some(what),
        };
        let slot = &mut threads[number];
        let thread = slot
            .as_mut()
            .expect("threads that are done are not resumed");
        if let CoroutineResult::Return(()) = thread.resume(()) {
            *slot = None;
        }
    };
    let ended = match failure {
        None => {
            let value = returned.try_recv().expect("the first thread returned");
            Ok(world::with(|world| world.ended(value)))
        }
        Some(what) => Err(Box::new(world::with(|world| world.failure(what)))),
    };
    drop(in_a_run);
    // Threads that are left keep their stacks for ever: what others borrowed from there stays valid.
    let abandoned = threads.iter().flatten().count();
    threads.into_iter().for_each(std::mem::forget);
    // Nor is a mutant trusted to free only what it has.
    if abandoned == 0 && setup.mutant.is_none() {
        world::end();
    } else {
        world::abandon();
    }
    ended
}

/// Notes in the trace what the running thread is about. Costs no time.
#[track_caller]
pub fn mark(what: impl Into<String>) {
    world::mark(what.into());
}

/// Makes a coroutine of what a virtual thread does.
pub(crate) fn coroutine(work: impl FnOnce() + 'static) -> Thread {
    Coroutine::new(move |yielder, ()| {
        world::started(yielder);
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            work();
            crate::thread::exit();
        }));
        world::finished(unwound.is_err());
    })
}

/// Panics of virtual threads are in the report and need not be on the terminal.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !world::note_panic(&info.to_string()) {
                before(info);
            }
        }));
    });
}
