//! A run's state: threads, their clocks, and what is to happen.
//!
//! Everything is in one [`World`], which belongs to the host thread that executes the run. It is only ever borrowed
//! between two switches of coroutines: [`with`] takes a closure that does not suspend.

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
use line::Line;
use memory::{Buffer, Pending};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;

pub(crate) type Time = u64;

/// What the loop is to do.
pub(crate) enum Step {
    Resume(usize),
    Ended,
    Failed(String),
}

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread goes on.
    Resume(usize),
    /// A thread that slept so often has slept long enough.
    Deadline(usize, u64),
    /// A thread's oldest store asks for its line.
    Drain(usize),
    /// A line that was busy serves the next.
    Serve(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// In a futex's queue, since that operation.
    Sleeping(usize),
    Joining(usize),
    /// Until a line, a store buffer or a watched word changes.
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
    /// What interrupts have taken, which its next operation is late by.
    lost: u64,
    state: State,
    /// What it is about.
    mark: String,
    yielder: *const Yielder<(), ()>,
    /// How often it slept.
    sleeps: u64,
    woken: Woken,
    /// What getting a line took, once it got it.
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

    /// The hardware thread that it runs on: those of a core are as far apart as there are cores.
    pub(crate) fn context(&self) -> usize {
        self.context
    }
}

/// A hasher for addresses: the same in every run, and nothing is ever listed in its order.
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
    /// Threads of each core that do not wait.
    active: Vec<usize>,
    line_of: ByAddress<u32>,
    lines: Vec<Line>,
    pending: ByAddress<Pending>,
    sleepers: ByAddress<Vec<usize>>,
    watchers: ByAddress<Vec<usize>>,
    rng: fastrand::Rng,
    operations: u64,
    /// When it has lasted too long.
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
    // Out first: what is dropped with it finds itself outside a run.
    drop(WORLD.take());
}

/// Ends a run of which stacks are left: nothing that they point to goes.
pub(crate) fn abandon() {
    std::mem::forget(WORLD.take());
}

/// Lets others run until the running thread is resumed.
fn suspend() {
    let yielder = with(|world| world.current().yielder);
    // SAFETY: the yielder is the running coroutine's own: `started` stored it from inside, and it lives as long as
    // that coroutine's stack.
    unsafe { &*yielder }.suspend(());
}

/// Whether operations take effect at once: outside a run, and while a thread unwinds from what ends the run, which no
/// other must see. (From what it throws itself, by `resume_unwind`, it unwinds like any other code.)
fn is_direct() -> bool {
    if !is_running() {
        return true;
    }
    let unwinds = std::thread::panicking() && with(|world| world.panic.is_some());
    if unwinds && with(World::is_at_its_end) {
        // What it was to clean up may be without end, too.
        with(|world| world.pause_thread(State::Waiting("nothing: it has panicked")));
        suspend();
    }
    unwinds
}

/// Waits until no event is earlier than the running thread. So do all operations, before they look at anything.
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
        // Interrupts that came meanwhile.
        while with(|world| world.current().lost > 0 && !world.goes_on()) {
            suspend();
        }
    }
}

/// Suspends the running thread for a reason that somebody else ends.
fn wait(why: &'static str) {
    with(|world| world.pause_thread(State::Waiting(why)));
    suspend();
}

/// So many cycles pass for the running thread.
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

/// An address in the simulated memory: lines follow each other in the order of first use. Never zero.
pub(crate) fn address(host: usize) -> usize {
    if !is_running() {
        return host;
    }
    let line = with(|world| world.line(host));
    (line as usize + 1) * line::BYTES + host % line::BYTES
}

/// The lines of so many bytes, should they be used again, are new ones.
pub(crate) fn forget_lines(address: usize, bytes: usize) {
    WORLD.with(|world| {
        // What the simulator frees itself was on no line.
        if let Ok(Some(world)) = world.try_borrow_mut().as_deref_mut() {
            for line in address / line::BYTES..=(address + bytes.max(1) - 1) / line::BYTES {
                world.line_of.remove(&line);
            }
        }
    });
}

#[track_caller]
pub(crate) fn mark(what: String) {
    if is_running() {
        let at = Location::caller();
        with(|world| world.note_mark(what, at));
    }
}

/// Keeps what a panic says; `false` outside a run.
pub(crate) fn note_panic(what: &str) -> bool {
    // Not to be borrowed when the panic is the simulator's own.
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

    /// Counts an operation; whether it is one too many, which ends the run.
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

    /// Whether no event is earlier than the running thread, which is late by its interrupts; else it will be resumed.
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

    /// How late an operation is, when that is random.
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

    /// Has a thread that is paused go on at a time, or now if that is later.
    fn resume_at(&mut self, number: usize, time: Time) {
        let thread = &mut self.threads[number];
        thread.state = State::Ready;
        thread.time = thread.time.max(time);
        let (time, core) = (thread.time, usize::from(thread.core));
        self.active[core] += 1;
        self.at(time, Event::Resume(number));
    }

    /// Lets happen what is next, until that is a thread's going on.
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
