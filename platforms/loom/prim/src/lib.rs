//! The interface of the crate `prim` on the [loom](https://docs.rs/loom) model checker.
//!
//! `spanlock-loom` compiles the library's source against this crate, and its tests run models. Loom executes a model
//! under every schedule and every behaviour that the memory model allows, up to a bound on preemptions.
//!
//! Atomics are loom's. Beyond that, this crate differs from `prim` as follows:
//!
//! - [`model`] runs a model. Everything global is fresh in each of its executions.
//! - Thread indices are given out in order. None is reused but that of a thread that [exits
//!   early](thread::exit_early).
//! - A futex wait with a deadline lets the other threads run once, and then times out unless it was woken.
//! - Spins on a holder have no rounds unless a [`Model`] asks for them. So waiting threads park at once.
//! - A [timer] calls when the model says so.
//! - Random draws succeed unless a [`Model`] decides otherwise.
//! - The environment variable `SPANLOCK_MUTANT` names an [`edge`] to weaken.
//!
//! Models with very many schedules end after the [`FIRST`] ones, or a tenfold with `SPANLOCK_TESTS=all`.
//! If the environment variable `SPANLOCK_EXECUTIONS` is set, each model prints how many executions loom explored
//! (`cargo test … -- --nocapture`).

// `order!` and `intact!` go by this name, here as in the library.
extern crate self as prim;

pub use hardware::{contain, cost, debug, simulated_intact as intact, simulated_order as order};

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub mod atomic;
pub mod barrier;
pub mod clock;
pub mod edge;
pub mod futex;
pub mod spin;
pub mod sync;
pub mod thread;
pub mod timer;
pub mod track;
pub mod workload;

/// Interior mutability by closures. Loom reports accesses that race.
pub mod cell {
    pub use loom::cell::UnsafeCell;
}

#[doc(hidden)]
pub use loom;

/// The state of the running execution that is not part of the model. Loom runs an execution on one host thread.
#[derive(Default)]
struct Execution {
    threads: usize,
    /// The index of a thread that has exited early.
    left: Option<usize>,
    sleepers: Vec<futex::Sleeper>,
    timed_waits: usize,
    spins: usize,
    ticks: u64,
    forks: u32,
    addresses: Vec<usize>,
    restarts: usize,
    calls: Vec<timer::Asked>,
    lots: Vec<usize>,
}

thread_local! {
    static EXECUTION: RefCell<Execution> = RefCell::default();
}

fn with_execution<R>(f: impl FnOnce(&mut Execution) -> R) -> R {
    EXECUTION.with_borrow_mut(f)
}

/// A model ends after so many schedules, unless `SPANLOCK_TESTS=all` asks for more, or an edge is weakened. Most models
/// have fewer.
pub const FIRST: usize = 10_000;

/// A model ends after so many schedules with `SPANLOCK_TESTS=all`: half a minute or less. `LOOM_MAX_PERMUTATIONS` sets
/// another number, and a great one explores every schedule within the model's bound.
const ALL: usize = 100_000;

/// The settings of a model, and how far loom explores it.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Model {
    preemptions: Option<usize>,
    setting: Setting,
}

/// The settings of a model.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// Rounds of a spin on a holder.
    rounds: u32,
    /// The number of spins and yields that loom explores.
    explored: usize,
    /// The results of random draws.
    wins: &'static [u32],
    /// Whether the asymmetric barrier takes no part in the order of fences.
    barrier_apart: bool,
}

thread_local! {
    static SETTING: Cell<Setting> = const { Cell::new(Setting::DEFAULT) };
}

impl Setting {
    const DEFAULT: Self = Self {
        rounds: 0,
        explored: thread::EXPLORED,
        wins: &[],
        barrier_apart: false,
    };
}

impl Model {
    /// A model of every schedule with at most `preemptions` preemptions; with `None`, of all schedules.
    pub const fn new(preemptions: Option<usize>) -> Self {
        Self {
            preemptions,
            setting: Setting::DEFAULT,
        }
    }

    /// Spins on a holder have one round, and loom explores more spins than by default.
    pub const fn spinning(mut self) -> Self {
        self.setting.rounds = 1;
        self.setting.explored = thread::EXPLORED + 4;
        self
    }

    /// The asymmetric barrier is no fence: one side of it orders nothing towards a plain fence on the other.
    pub const fn barrier_apart(mut self) -> Self {
        self.setting.barrier_apart = true;
        self
    }

    /// The results of random draws: the `n`-th draw of the thread with index `i` is the `(i + n)`-th of these numbers,
    /// which repeat when they are used up.
    pub const fn wins(mut self, wins: &'static [u32]) -> Self {
        self.setting.wins = wins;
        self
    }

    /// Runs the model.
    ///
    /// # Panics
    /// When an execution panics, deadlocks, races or leaks.
    pub fn check(self, f: impl Fn() + Sync + Send + 'static) {
        self.check_dyn(Box::new(f));
    }

    /// Compiled once, where `check` is compiled for each model.
    fn check_dyn(self, f: Box<dyn Fn() + Sync + Send>) {
        let mut builder = loom::model::Builder::new();
        if builder.preemption_bound.is_none() {
            builder.preemption_bound = self.preemptions;
        }
        builder.max_branches = builder.max_branches.max(10_000);
        let is_long = std::env::var_os("SPANLOCK_TESTS").is_some_and(|value| value == "all");
        let first = if is_long { ALL } else { FIRST };
        if builder.max_permutations.is_none() && !edge::is_mutant() {
            builder.max_permutations = Some(first);
        }
        let executions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&executions);
        builder.check(move || {
            count.fetch_add(1, Ordering::Relaxed);
            SETTING.set(self.setting);
            with_execution(|execution| *execution = Execution::default());
            f();
            thread::exit();
        });
        let executions = executions.load(Ordering::Relaxed);
        if builder.max_permutations == Some(executions) {
            println!("ended after {executions} schedules: LOOM_MAX_PERMUTATIONS=<n> explores more");
        }
        if std::env::var_os("SPANLOCK_EXECUTIONS").is_some() {
            let test = std::thread::current();
            println!("executions: {executions} {}", test.name().unwrap_or("?"));
        }
    }
}

/// Runs `f` under every schedule with at most `preemptions` preemptions; with `None`, under all schedules.
///
/// # Panics
/// When an execution panics, deadlocks, races or leaks.
pub fn model(preemptions: Option<usize>, f: impl Fn() + Sync + Send + 'static) {
    Model::new(preemptions).check(f);
}

/// The number of preemptions of a model that takes long. A mutant gets one more, because its search ends at the first
/// failure.
#[must_use]
pub fn one_more_in_mutants(preemptions: usize) -> Option<usize> {
    Some(preemptions + usize::from(edge::is_mutant()))
}

/// Never: models release on other threads what a thread has acquired.
pub const SELF_DEADLOCK_CHECKS: bool = false;

/// Chooses between the size for real use and a small one, with which loom reaches the rare paths. Here: the small one.
#[must_use]
pub const fn sized(_real: usize, model: usize) -> usize {
    model
}

/// A number that identifies an object for as long as the object stays in its place. It is the same in each execution
/// that asks for the same objects in the same order, as loom requires.
#[must_use]
pub fn address_of<T>(what: &T) -> usize {
    let address = std::ptr::from_ref(what).addr();
    with_execution(|execution| {
        let known = &mut execution.addresses;
        let at = known.iter().position(|&known| known == address);
        at.unwrap_or_else(|| {
            known.push(address);
            known.len() - 1
        }) + 1
    })
}

/// Chooses, like [`sized`], how many spare objects to keep.
#[must_use]
pub const fn stock(_real: usize, model: usize) -> usize {
    model
}

/// The number of successive draws that succeed: as the [`Model`] says, or all.
#[must_use]
pub fn wins(_random: u64, _digits: u32) -> u32 {
    let wins = SETTING.get().wins;
    if wins.is_empty() {
        return u32::MAX;
    }
    let index = thread::index();
    let drawn = with_execution(|execution| {
        if execution.lots.len() <= index {
            execution.lots.resize(index + 1, 0);
        }
        execution.lots[index] += 1;
        execution.lots[index] - 1
    });
    wins[(index + drawn) % wins.len()]
}

/// Declares one function that `prim` makes `const`.
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        $(#[$meta])* $vis fn $($rest)*
    };
}

/// An array whose elements are all made by the same expression.
#[macro_export]
macro_rules! array {
    ($new:expr; $count:expr) => {
        ::core::array::from_fn::<_, { $count }, _>(|_| $new)
    };
}

/// The initial value of a constant that a trait requires. Loom's atomics cannot be made in a constant, so using it
/// panics.
#[macro_export]
macro_rules! initial {
    ($new:expr) => {
        panic!("atomics of a model are not made in constants")
    };
}

/// Declares a global, fresh in each execution.
#[macro_export]
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $crate::loom::lazy_static! { $(#[$meta])* static ref $name: $ty = $init; }
    };
}

/// Declares a thread-local.
#[macro_export]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $crate::loom::thread_local! { $(#[$meta])* static $name: $ty = $init; }
    };
}
