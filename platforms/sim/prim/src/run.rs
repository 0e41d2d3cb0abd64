//! A run: the coroutines, and the loop that resumes them.
//!
//! ```text
//!   loop {
//!       the next event in virtual time
//!          |-- a thread continues ------> resume its coroutine, until it waits or is no longer the earliest
//!          |-- anything else -----------> change the machine: a store drains, a line is granted, a sleeper wakes
//!          |-- the first thread ended ---> the run has ended
//!          `-- a fault, or no event ----> the run has failed
//!   }
//! ```

use crate::clock::Duration;
use crate::heap::InARun;
use crate::report::{Failure, Trace};
use crate::world::{self, Step, World};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use machines::{Machine, Placement};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once};

/// How a read-modify-write orders the stores before it and the loads after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rmw {
    /// It is a full fence, as on x86: it waits for the earlier stores, and the later loads wait for it.
    #[default]
    Fences,
    /// Its store goes through the store buffer like any other, so later loads may overtake it. This is the behaviour of
    /// processors on which `fence_after_rmw` is an instruction.
    Buffered,
}

/// How many spare objects, such as nodes, a program keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stock {
    /// As many as for real use.
    #[default]
    Ample,
    /// As few as on a model checker, so that they often run out.
    Scarce,
}

/// How the asymmetric [`barrier`](crate::barrier) is implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asymmetry {
    /// The light side does nothing, and the heavy side interrupts all threads, as Linux's `membarrier` does.
    #[default]
    Interrupts,
    /// Both sides are full fences, as on systems without such a call.
    Fences,
}

/// Random disturbances of a run, which make unlikely schedules likely. By default there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fuzz {
    /// The bound of the random delay of each operation, in cycles.
    pub jitter: u64,
    /// Of 10,000 operations, the number before which the thread is preempted.
    pub preempted: u32,
    /// The bound of the duration of a preemption, in cycles.
    pub preemption: u64,
    /// The bound of the time that a store stays in the store buffer, in cycles.
    pub drain: u64,
    /// How many spare objects, such as nodes, the library keeps.
    pub stock: Stock,
}

/// The input of a run besides its workload. Equal setups and workloads give equal runs.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// Where threads run.
    pub placement: Placement,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How read-modify-writes order other accesses.
    pub rmw: Rmw,
    /// How the asymmetric barrier is implemented.
    pub asymmetry: Asymmetry,
    /// Random disturbances.
    pub fuzz: Fuzz,
    /// The named edge that is weakened.
    pub mutant: Option<String>,
    /// The largest number of operations; the run fails beyond it.
    pub operations: u64,
    /// The longest virtual time; the run fails beyond it.
    pub lasts: Duration,
    /// How many of the last operations a failure contains.
    pub trace: usize,
    /// A function that receives each [`mark`] at once, for runs that may crash their process.
    pub listener: Option<fn(&Trace)>,
}

impl Setup {
    /// A run on that machine, with the defaults for everything else.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            placement: Placement::default(),
            seed: 0,
            rmw: Rmw::default(),
            asymmetry: Asymmetry::default(),
            fuzz: Fuzz::default(),
            mutant: None,
            operations: u64::MAX,
            lasts: Duration::from_secs(3600),
            trace: 200,
            listener: None,
        }
    }
}

/// The result of a run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended<T> {
    /// What the workload returned.
    pub value: T,
    /// The virtual time of the whole run.
    pub elapsed: Duration,
    /// The number of operations of all threads.
    pub operations: u64,
    /// A digest of all operations in their order: equal for equal runs.
    pub digest: u64,
}

impl Ended<()> {
    fn with<T>(self, value: T) -> Ended<T> {
        let Self {
            value: (),
            elapsed,
            operations,
            digest,
        } = self;
        Ended {
            value,
            elapsed,
            operations,
            digest,
        }
    }
}

pub(crate) type Thread = Coroutine<(), (), ()>;

/// Runs `workload` as the first virtual thread, until it returns. Threads that it has not joined are then abandoned.
///
/// # Errors
/// When a thread panics, when all threads wait, and when the run exceeds its operations or its time. The threads are
/// then neither resumed nor unwound, so everything they own is leaked.
///
/// # Panics
/// Inside another run.
pub fn run<T: Send + 'static>(
    setup: &Setup,
    workload: impl FnOnce() -> T + Send + 'static,
) -> Result<Ended<T>, Box<Failure>> {
    assert!(!world::is_running(), "runs do not nest");
    hush();
    let result = Arc::new(Mutex::new(None));
    let returned = Arc::clone(&result);
    let workload = Box::new(move || {
        let value = workload();
        *returned.lock().expect("one thread writes it") = Some(value);
    });
    // The run gets its own host thread. A panic may leave that thread in the middle of an unwinding, so it is not
    // reused.
    let host = || execute(setup, workload);
    let ended = std::thread::scope(|scope| scope.spawn(host).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let value = result.lock().expect("one thread writes it").take();
    Ok(ended.with(value.expect("the first thread returned")))
}

/// Compiled once, and [`run`] for each workload and lock.
fn execute(setup: &Setup, workload: Box<dyn FnOnce() + Send>) -> Result<Ended<()>, Box<Failure>> {
    world::begin(World::new(setup.clone()));
    let in_a_run = InARun::begin();
    world::spawn(workload);
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
            let stack = slot.take().map(Thread::into_stack);
            stack.iter().for_each(world::forget_stack);
        }
    };
    let ended = match failure {
        None => Ok(world::with(|world| world.ended())),
        Some(what) => Err(Box::new(world::with(|world| world.failure(what)))),
    };
    drop(in_a_run);
    // The stacks of abandoned threads are leaked, so that references into them stay valid.
    let abandoned = threads.iter().flatten().count();
    threads.into_iter().for_each(std::mem::forget);
    // After a mutant's run too nothing is freed: the mutant may have corrupted the run's data.
    if abandoned == 0 && setup.mutant.is_none() {
        world::end();
    } else {
        world::abandon();
    }
    ended
}

/// Records in the trace what the running thread is about to do or has done, in words. It costs no virtual time.
#[track_caller]
pub fn mark(what: impl Into<String>) {
    world::mark(what.into());
}

/// Bytes of a virtual thread's stack, of which the host provides the pages that are used. Code that is not optimised
/// copies the library's table of readers several times on its way to the heap.
const STACK: usize = 8 << 20;

/// Makes the coroutine of a virtual thread.
pub(crate) fn coroutine(work: Box<dyn FnOnce()>) -> Thread {
    let stack = DefaultStack::new(STACK).expect("the host has room for a stack");
    Coroutine::with_stack(stack, move |yielder, ()| {
        world::started(yielder);
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            work();
            crate::thread::exit();
        }));
        world::finished(unwound.is_err());
    })
}

/// Keeps panics of virtual threads off the terminal: the report contains them.
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
