//! The interface of the crate `prim` on the [loom](https://docs.rs/loom) model checker.
//!
//! The library's source is compiled against this crate by `spanlock-loom`, and its tests run models: loom executes
//! a model under every schedule and every behaviour the memory model allows, up to a bound on preemptions.
//!
//! What differs from `prim`, beyond atomics being loom's:
//!
//! - [`model`] runs a model; everything global starts afresh in each of its executions.
//! - Thread indices are handed out in order and are not re-used.
//! - A futex wait with a deadline sleeps for one chance of the others to run, and then times out unless it was woken.
//! - Spins on a holder have no rounds unless a [`Model`] asks for them, so that waits reach their parking code at once.
//! - Lots are won unless a [`Model`] decides them.
//! - [`edge`]: the environment variable `SPANLOCK_MUTANT` names an edge to weaken.

use std::cell::{Cell, RefCell};

pub mod atomic;
pub mod barrier;
pub mod clock;
pub mod cost;
pub mod edge;
pub mod futex;
pub mod spin;
pub mod sync;
pub mod thread;
pub mod track;

/// Interior mutability in closure style; loom reports accesses that race.
pub mod cell {
    pub use loom::cell::UnsafeCell;
}

#[doc(hidden)]
pub use loom;

/// State of the running execution that is not part of the model. Loom runs an execution on one host thread.
#[derive(Default)]
struct Execution {
    threads: usize,
    sleepers: Vec<futex::Sleeper>,
    timed_waits: usize,
    spins: usize,
    ticks: u64,
    forks: u32,
    addresses: Vec<usize>,
    restarts: usize,
    lots: Vec<usize>,
}

thread_local! {
    static EXECUTION: RefCell<Execution> = RefCell::default();
}

fn with_execution<R>(f: impl FnOnce(&mut Execution) -> R) -> R {
    EXECUTION.with_borrow_mut(f)
}

/// A model, and how far it is explored.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Model {
    preemptions: Option<usize>,
    setting: Setting,
}

/// What differs between models besides what their threads do.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// Rounds of a spin on a holder.
    rounds: u32,
    /// Spins and yields that are explored.
    explored: usize,
    /// How often lots are won.
    wins: &'static [u32],
}

thread_local! {
    static SETTING: Cell<Setting> = const { Cell::new(Setting::DEFAULT) };
}

impl Setting {
    const DEFAULT: Self = Self {
        rounds: 0,
        explored: spin::EXPLORED,
        wins: &[],
    };
}

impl Model {
    /// Every schedule with at most `preemptions` preemptions, or all of them with `None`.
    pub const fn new(preemptions: Option<usize>) -> Self {
        Self {
            preemptions,
            setting: Setting::DEFAULT,
        }
    }

    /// With spins on a holder of one round, and more spins explored than else.
    pub const fn spinning(mut self) -> Self {
        self.setting.rounds = 1;
        self.setting.explored = spin::EXPLORED + 4;
        self
    }

    /// With lots won so often: the n-th of the thread with index `i` is the (i + n)-th of these, from the beginning
    /// again when they are used up.
    pub const fn wins(mut self, wins: &'static [u32]) -> Self {
        self.setting.wins = wins;
        self
    }

    /// Runs the model.
    ///
    /// # Panics
    /// When an execution panics, deadlocks, races or leaks.
    pub fn check(self, f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        if builder.preemption_bound.is_none() {
            builder.preemption_bound = self.preemptions;
        }
        builder.max_branches = builder.max_branches.max(10_000);
        builder.check(move || {
            SETTING.set(self.setting);
            with_execution(|execution| *execution = Execution::default());
            f();
            thread::exit();
        });
    }
}

/// Runs `f` under every schedule with at most `preemptions` preemptions, or all of them with `None`.
///
/// # Panics
/// When an execution panics, deadlocks, races or leaks.
pub fn model(preemptions: Option<usize>, f: impl Fn() + Sync + Send + 'static) {
    Model::new(preemptions).check(f);
}

/// So many preemptions for a model that takes long; one more in a mutant, which is not searched to the end.
#[must_use]
pub fn one_more_in_mutants(preemptions: usize) -> Option<usize> {
    Some(preemptions + usize::from(edge::is_mutant()))
}

/// Chooses between the size for real use and the small one that lets loom reach the rare paths.
#[must_use]
pub const fn sized(_real: usize, model: usize) -> usize {
    model
}

/// A number that nothing else has while this lives where it does: the same in each execution that asks for the same
/// things in the same order, as loom needs.
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

/// Chooses like [`sized`] how many of something to keep in stock.
#[must_use]
pub const fn stock(_real: usize, model: usize) -> usize {
    model
}

/// How often in a row a lot is won: as the [`Model`] says, or always.
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

/// An array of that many times the same new thing.
#[macro_export]
macro_rules! array {
    ($new:expr; $count:expr) => {
        ::core::array::from_fn::<_, { $count }, _>(|_| $new)
    };
}

/// The initial value that a trait demands as a constant: there is none here, and nobody may ask for it.
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
