//! The state of a run: threads, their clocks, cache lines, and the queue of events.
//!
//! The whole state is one [`World`], which belongs to the host thread that executes the run. It is borrowed only
//! between two switches of coroutines: [`with`] takes a closure that does not suspend.
//!
//! ```text
//!   an operation of the running thread
//!       |
//!     turn()      suspends the thread while any event is earlier than its clock
//!       |
//!     request     asks for the cache line: at once, or after the requests that the line serves first
//!       |
//!     effect      loads or changes the word
//!       |
//!     clock +=    the cost of the access
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`line`] | cache lines: owner, sharers, queue of requests |
//! | [`memory`] | loads, stores, read-modify-writes, fences, store buffers |
//! | [`threads`] | start, end, sleep and join of threads |
//! | [`notes`] | the trace of operations |

mod line;
mod memory;
mod notes;
mod threads;

pub(crate) use line::Access;
pub(crate) use memory::{
    Cell, drain, fence, fence_after_rmw, fence_everybody, load, store, touch, update, watch,
};
pub(crate) use threads::{enter_system, finished, join, sleep, spawn, started, wake};

use crate::clock::Duration;
use crate::futex::Woken;
use crate::local::Values;
use crate::report::Trace;
use crate::run::{self, Setup};
use crate::thread::ExitHook;
use corosensei::Yielder;
use corosensei::stack::Stack;
use line::Line;
use memory::{Buffer, Pending};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;

pub(crate) type Time = u64;

/// The next step of the run's loop.
pub(crate) enum Step {
    Resume(usize),
    Ended,
    Failed(String),
}

/// Something that happens at a virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread continues.
    Resume(usize),
    /// The deadline of a thread's sleep. The number counts the thread's sleeps and identifies this one.
    Deadline(usize, u64),
    /// A thread's oldest store requests its line.
    Drain(usize),
    /// A line is no longer busy and serves the next request.
    Serve(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// In the futex queue of an address.
    Sleeping(usize),
    /// Until that thread ends.
    Joining(usize),
    /// Until a line, a store buffer or a watched word changes. The text names which.
    Waiting(&'static str),
    Done,
}

pub(crate) struct Virtual {
    pub(crate) time: Time,
    pub(crate) locals: Values,
    pub(crate) index: Option<usize>,
    pub(crate) hooks: Vec<ExitHook>,
    core: u8,
    context: usize,
    /// The time that interrupts have cost it. Its next operation is later by this.
    lost: u64,
    state: State,
    /// Its last mark.
    mark: String,
    yielder: *const Yielder<(), ()>,
    /// The number of its sleeps so far.
    sleeps: u64,
    woken: Woken,
    /// The cost of the access for which it was last granted a line.
    granted: u64,
    buffer: Buffer,
}

impl Virtual {
    pub(crate) fn core(&self) -> usize {
        usize::from(self.core)
    }

    fn is_on_core(&self) -> bool {
        matches!(self.state, State::Ready | State::Waiting(_))
    }

    /// The number of its hardware thread. The hardware threads of a core are numbered at a distance of the number of
    /// cores.
    pub(crate) fn context(&self) -> usize {
        self.context
    }
}

/// A hasher for addresses that is the same in every run. The simulator never iterates over a map in the hasher's order.
#[derive(Default)]
pub(crate) struct Addresses(u64);

impl Hasher for Addresses {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

pub(crate) type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<Addresses>>;

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) running: usize,
    pub(crate) newborn: Vec<run::Thread>,
    pub(crate) globals: Values,
    pub(crate) indices: Vec<bool>,
    threads: Vec<Virtual>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
    places: Vec<u8>,
    /// For each core, the number of its threads that do not wait.
    active: Vec<usize>,
    line_of: ByAddress<u32>,
    lines: Vec<Line>,
    pending: ByAddress<Pending>,
    sleepers: ByAddress<Vec<usize>>,
    watchers: ByAddress<Vec<usize>>,
    rng: fastrand::Rng,
    operations: u64,
    /// The time beyond which the run fails.
    latest: Time,
    digest: Addresses,
    trace: VecDeque<Trace>,
    marks: VecDeque<Trace>,
    panic: Option<String>,
    fatal: Option<String>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// # Panics
/// Outside a run.
pub(crate) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|world| f(world.as_mut().expect("called outside a simulated run")))
}

/// `None` outside a run.
pub(crate) fn peek<R>(f: impl FnOnce(&World) -> R) -> Option<R> {
    WORLD.with_borrow(|world| world.as_ref().map(f))
}

pub(crate) fn is_running() -> bool {
    peek(|_| ()).is_some()
}

pub(crate) fn begin(world: World) {
    WORLD.set(Some(world));
}

pub(crate) fn end() {
    // Taken out before it is dropped: destructors that run now must be outside the run.
    drop(WORLD.take());
}

/// Ends a run that abandons threads. It frees nothing, because their stacks may point to anything.
pub(crate) fn abandon() {
    std::mem::forget(WORLD.take());
}

/// Suspends the running thread until the loop resumes it.
fn suspend() {
    let yielder = with(|world| world.current().yielder);
    // SAFETY: `started` stored the yielder from inside this coroutine, which is running. The yielder lives as long as
    // the coroutine's stack.
    unsafe { &*yielder }.suspend(());
}

/// Whether operations take effect at once, without virtual time: outside a run, and while a thread unwinds from the
/// panic that ends the run, since no other thread must see that. (A thread that unwinds from its own `resume_unwind`
/// runs like any other code.)
fn is_direct() -> bool {
    if !is_running() {
        return true;
    }
    let unwinds = std::thread::panicking() && with(|world| world.panic.is_some());
    if unwinds && with(World::is_at_its_end) {
        // Its destructors may loop without end. So a thread that unwinds too long is stopped here.
        with(|world| world.pause_thread(State::Waiting("nothing: it has panicked")));
        suspend();
    }
    unwinds
}

/// Waits until no event is earlier than the running thread's clock. Every operation calls this before it accesses
/// anything.
fn turn() {
    let goes_on = with(|world| {
        if world.is_at_its_end() {
            return false;
        }
        if world.current().time > world.latest {
            world.fatal = Some(format!("still running after {:?}", world.setup.lasts));
            return false;
        }
        let delay = world.delay();
        world.current_mut().time += delay;
        world.goes_on()
    });
    if !goes_on {
        suspend();
        // Interrupts that came in the meantime make the thread later.
        while with(|world| world.current().lost > 0 && !world.goes_on()) {
            suspend();
        }
    }
}

/// Suspends the running thread until an event or another thread resumes it.
fn wait(why: &'static str) {
    with(|world| world.pause_thread(State::Waiting(why)));
    suspend();
}

/// Advances the running thread's clock by so many cycles of work.
pub(crate) fn work(cycles: u64) {
    if is_running() {
        with(|world| {
            let core = usize::from(world.current().core);
            let share = if world.active[core] > 1 {
                world.setup.machine.cycles.sibling_work
            } else {
                100
            };
            world.current_mut().time += cycles * share / 100;
        });
    }
}

/// An address in the simulated memory, never zero. Lines are numbered in the order of their first use.
pub(crate) fn address(host: usize) -> usize {
    if !is_running() {
        return host;
    }
    let line = with(|world| world.line(host));
    (line as usize + 1) * line::BYTES + host % line::BYTES
}

/// Forgets the lines of so many bytes: a later use of this memory gets new lines.
pub(crate) fn forget_lines(address: usize, bytes: usize) {
    WORLD.with(|world| {
        // If the world is borrowed, the simulator itself frees the memory, and that was on no line.
        if let Ok(Some(world)) = world.try_borrow_mut().as_deref_mut() {
            for line in address / line::BYTES..=(address + bytes.max(1) - 1) / line::BYTES {
                world.line_of.remove(&line);
            }
        }
    });
}

/// Forgets the lines of the stack of a thread that has ended. Whether the host gives the next thread the same memory
/// differs each time.
pub(crate) fn forget_stack(stack: &impl Stack) {
    let lines = stack.limit().get() / line::BYTES..stack.base().get() / line::BYTES;
    with(|world| world.line_of.retain(|line, _| !lines.contains(line)));
}

#[track_caller]
pub(crate) fn mark(what: String) {
    if is_running() {
        let at = Location::caller();
        with(|world| world.note_mark(what, at));
    }
}

/// Keeps the message of a panic; `false` outside a run.
pub(crate) fn note_panic(what: &str) -> bool {
    // The borrow fails if the panic came from the simulator itself.
    WORLD.with(|world| match world.try_borrow_mut().as_deref_mut() {
        Ok(Some(world)) => {
            world.panic = Some(format!("t{}: {what}", world.running));
            true
        }
        _ => false,
    })
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let machine = &setup.machine;
        let cores = machine.sockets * machine.cores;
        Self {
            latest: machine.cycles_of(setup.lasts),
            places: machine.places(setup.placement, setup.seed),
            rng: fastrand::Rng::with_seed(setup.seed),
            setup,
            running: 0,
            newborn: Vec::new(),
            globals: Values::default(),
            indices: Vec::new(),
            threads: Vec::new(),
            events: BinaryHeap::new(),
            sequence: 0,
            active: vec![0; cores],
            line_of: ByAddress::default(),
            lines: Vec::new(),
            pending: ByAddress::default(),
            sleepers: ByAddress::default(),
            watchers: ByAddress::default(),
            operations: 0,
            digest: Addresses::default(),
            trace: VecDeque::new(),
            marks: VecDeque::new(),
            panic: None,
            fatal: None,
        }
    }

    /// Counts an operation, and returns whether the run has exceeded its number of operations, which ends it.
    fn is_at_its_end(&mut self) -> bool {
        self.operations += 1;
        let is_at_its_end = self.operations > self.setup.operations;
        if is_at_its_end {
            let what = format!("still running after {} operations", self.setup.operations);
            let panic = self.panic.take().filter(|_| std::thread::panicking());
            self.fatal =
                Some(panic.map_or(what, |panic| format!("{panic}, and unwinds without end")));
        }
        is_at_its_end
    }

    pub(crate) fn current(&self) -> &Virtual {
        &self.threads[self.running]
    }

    pub(crate) fn current_mut(&mut self) -> &mut Virtual {
        &mut self.threads[self.running]
    }

    pub(crate) fn take_index(&mut self) -> usize {
        let free = self.indices.iter().position(|taken| !taken);
        let index = free.unwrap_or(self.indices.len());
        if free.is_none() {
            self.indices.push(true);
        }
        self.indices[index] = true;
        self.current_mut().index = Some(index);
        index
    }

    #[expect(clippy::cast_precision_loss, reason = "runs are short")]
    pub(crate) fn duration(&self, cycles: Time) -> Duration {
        Duration::from_secs_f64(cycles as f64 / self.setup.machine.gigahertz / 1e9)
    }

    /// Adds the time lost to interrupts, and returns whether no event is earlier than the running thread. If one is
    /// earlier, the thread's own continuation becomes an event.
    fn goes_on(&mut self) -> bool {
        let me = self.running;
        let thread = self.current_mut();
        thread.time += std::mem::take(&mut thread.lost);
        let time = thread.time;
        let next = self.events.peek();
        let is_next = next.is_none_or(|Reverse((next, ..))| *next > time);
        if !is_next {
            self.at(time, Event::Resume(me));
        }
        is_next
    }

    fn at(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, event)));
    }

    /// The random delay of an operation; zero unless fuzzing.
    fn delay(&mut self) -> u64 {
        let fuzz = self.setup.fuzz;
        let mut delay = 0;
        if fuzz.jitter > 0 {
            delay += self.rng.u64(..fuzz.jitter);
        }
        if fuzz.preempted > 0 && self.rng.u32(..10_000) < fuzz.preempted {
            delay += self.rng.u64(..fuzz.preemption.max(1));
        }
        delay
    }

    fn pause_thread(&mut self, state: State) {
        let core = usize::from(self.current().core);
        self.active[core] -= 1;
        self.current_mut().state = state;
    }

    /// Lets a paused thread continue at a time, or at its own clock if that is later.
    fn resume_at(&mut self, number: usize, time: Time) {
        let thread = &mut self.threads[number];
        thread.state = State::Ready;
        thread.time = thread.time.max(time);
        let (time, core) = (thread.time, usize::from(thread.core));
        self.active[core] += 1;
        self.at(time, Event::Resume(number));
    }

    /// Processes events in order until one of them continues a thread, or the run is over.
    pub(crate) fn next(&mut self) -> Step {
        loop {
            if let Some(what) = self.fatal.take() {
                return Step::Failed(what);
            }
            if self.threads[0].state == State::Done {
                return Step::Ended;
            }
            let Some(Reverse((time, _, event))) = self.events.pop() else {
                return Step::Failed("deadlock: all threads wait".to_owned());
            };
            match event {
                Event::Resume(number) => {
                    self.running = number;
                    return Step::Resume(number);
                }
                Event::Deadline(number, sleeps) => self.deadline(number, sleeps, time),
                Event::Drain(number) => self.drain_next(number, time),
                Event::Serve(line) => self.serve(line, time),
            }
        }
    }
}
