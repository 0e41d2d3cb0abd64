//! What loom models of locks share. Each scenario is written once, for every lock that it fits.
//!
//! | module | content |
//! |---|---|
//! | [`holders`] | a lock of few steps, for models of what is built on locks |
//! | [`range`] | the world of range locks, and their scenarios |
//! | [`rw`] | the world of reader-writer locks, and their scenarios |
//!
//! A *world* is a lock and the data that it protects. The data are loom cells. Loom reports a race when two holders
//! overlap that exclude each other, and when the second holder does not see what the first one did. A lost wake-up is a
//! deadlock, which loom reports. Nodes are tracked, so loom reports a leak when an execution ends.
//!
//! A *scenario* is a function of a world. [`models!`] makes tests of a table of scenarios and locks:
//!
//! ```text
//! models! {
//!     two_writers_overlapping: all on list tree, 3 on skip_list;
//! }
//!         │                     │   │            └ at most three preemptions
//!         │                     │   └ functions that make a lock: a test for each
//!         │                     └ every schedule
//!         └ the scenario; the test is two_writers_overlapping::list
//! ```

/// Makes scenarios for all locks of a kind, of steps that the world takes: `fn name: step(..), step(..);`.
macro_rules! in_steps {
    ($Lock:ident; $($(#[$documented:meta])* fn $name:ident: $($step:ident($($with:expr),*)),+;)+) => {$(
        $(#[$documented])*
        pub fn $name<L: $Lock>(world: &Arc<World<L>>) {
            $(world.$step($($with),*);)+
        }
    )+};
}

pub mod holders;
pub mod range;
pub mod rw;

#[doc(hidden)]
pub use prim;

use prim::thread::{self, JoinHandle};
use std::sync::Arc;

/// A world that the threads of a model share.
pub trait World: Sized + 'static {
    /// What one thread does.
    type Act: FnOnce(&Arc<Self>) + 'static;

    /// Runs `f` in a thread of its own.
    fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Arc<Self>) -> R + 'static,
    ) -> JoinHandle<R> {
        let world = Arc::clone(self);
        thread::spawn(move || f(&world))
    }

    /// Starts a thread for each act.
    fn start<const N: usize>(self: &Arc<Self>, acts: [Self::Act; N]) -> Crew {
        Crew(acts.map(|act| self.spawn(act)).into())
    }

    /// Starts a thread for each act, and joins them all.
    fn run<const N: usize>(self: &Arc<Self>, acts: [Self::Act; N]) {
        self.start(acts).join();
    }

    /// Starts a thread for each act but the last, does the last act here, and joins the threads.
    ///
    /// # Panics
    /// When there is no act.
    fn meet<const N: usize>(self: &Arc<Self>, acts: [Self::Act; N]) {
        let mut acts = acts.into_iter();
        let last = acts.next_back().expect("there are acts");
        let crew = Crew(acts.map(|act| self.spawn(act)).collect());
        last(self);
        crew.join();
    }
}

/// Threads of a model, to be joined.
#[must_use]
pub struct Crew(Vec<JoinHandle<()>>);

impl Crew {
    /// Waits for the threads in the order of their start.
    ///
    /// # Panics
    /// When a thread has panicked.
    pub fn join(self) {
        for thread in self.0 {
            thread.join().expect("loom reports panics itself");
        }
    }
}

/// Makes a test for each scenario and each lock that it is to run on, with a bound on preemptions.
///
/// The names of scenarios and locks, and `World`, are those in scope. A bound is `all`, a number, or an expression in
/// parentheses. The table may begin with calls that change each [`Model`](prim::Model), in brackets: `[.spinning()]`.
#[macro_export]
macro_rules! models {
    (@bound all) => { None };
    (@bound ($bound:expr)) => { $bound };
    (@bound $bound:literal) => { Some($bound) };
    (@model [$($setting:tt)*] $bound:tt) => {
        $crate::prim::Model::new($crate::models!(@bound $bound)) $($setting)*
    };
    ($settings:tt $($scenario:ident: $($bound:tt on $($lock:ident)+),+;)+) => {
        $(mod $scenario {
            $($(#[test]
            fn $lock() {
                let model = $crate::models!(@model $settings $bound);
                model.check(|| super::$scenario(&super::World::new(super::$lock())));
            })+)+
        })+
    };
    ($scenario:ident: $($table:tt)+) => {
        $crate::models! { [] $scenario: $($table)+ }
    };
}

/// Declares functions that each make a lock, for [`models!`].
#[macro_export]
macro_rules! locks {
    ($($(#[$meta:meta])* $vis:vis $name:ident: $lock:ty = $make:expr;)+) => {
        $($(#[$meta])*
        $vis fn $name() -> $lock {
            $make
        })+
    };
}
