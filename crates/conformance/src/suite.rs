//! Locks times scenarios: each pair is a test, or is reported as one that does not apply, with what the lock lacks.

use crate::erased::{AnyLock, AnyMutex};
use crate::support;
use crate::{
    cancelled, exclusive, giving_way, left_behind, many, owned, sequential, shared, together,
    traps, waiting,
};
use libtest_mimic::{Completion, Failed, Trial};
use spanlock::range::raw::{RawOwned, RawRangeLock, RawRangeMutex};
use spanlock::range::slots::RawSlots;
use spanlock::range::{RangeLock, RangeMutex};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::thread;

/// Declares the needs, each with its meaning and its name in the document.
macro_rules! needs {
    ($($(#[$meaning:meta])+ $need:ident: $name:literal,)+) => {
        /// What a scenario may need of a lock, beyond what all must have: a lock may declare that it lacks it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Need {
            $($(#[$meaning])+ $need,)+
        }

        impl Need {
            /// All of them.
            pub const ALL: [Self; [$(Need::$need),+].len()] = [$(Self::$need),+];
        }

        impl fmt::Display for Need {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$need => $name,)+
                })
            }
        }
    };
}

needs! {
    /// Ranges that several hold shared.
    Readers: "readers",
    /// Each position is locked apart from all others.
    Exact: "exactness",
    /// The listing names the waiting requests and counts the holders.
    Listing: "listing",
    /// Each holder is listed, with its range and thread.
    EachHolder: "each holder listed",
    /// A holder is granted a free range even if another request waits for both ranges.
    Bypass: "bypass for holders",
    /// A request gives way to a waiting one for a limited time.
    Bounded: "bounded giving way",
    /// Every request is granted in the end, even if others come and go without end.
    Fair: "fairness",
    /// A new request is granted a free range even if another request waits for it.
    Overtaking: "overtaking",
    /// A new request gives way to a waiting one at once.
    GivingWay: "giving way at once",
    /// Requests that conflict are granted in the order of their arrival.
    Queueing: "first come, first served",
    /// Debug builds report a self-deadlock.
    SelfCheck: "self-check",
    /// Threads are listed by the numbers that the system's tools show.
    ThreadNumbers: "thread numbers",
    /// Ranges may be held by owners, and then be sent, converted, cut and split.
    Owners: "owners",
}

use Need::*;

impl Need {
    /// What no lock has in this build.
    fn lacks_everywhere(self) -> bool {
        match self {
            SelfCheck => !cfg!(debug_assertions),
            ThreadNumbers => !cfg!(target_os = "linux"),
            _ => false,
        }
    }
}

/// What is declared of a lock.
#[derive(Debug, Clone)]
pub struct Declared {
    name: String,
    tail: u64,
    lacks: Vec<Need>,
}

impl Declared {
    /// A lock of that name, which lacks these.
    #[must_use]
    pub fn new(name: &str, lacks: &[Need]) -> Self {
        Self {
            name: name.to_owned(),
            tail: u64::MAX,
            lacks: lacks.to_vec(),
        }
    }

    /// Positions from `tail` on are locked as one. A lock that is not exact may take part if it is exact at the
    /// positions before. At the very last position, it lacks nothing.
    #[must_use]
    pub fn one_from(self, tail: u64) -> Self {
        Self { tail, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the lock is said to lack it.
    #[must_use]
    pub fn lacks(&self, need: Need) -> bool {
        self.lacks.contains(&need) || (need == Exact && self.tail < u64::MAX)
    }

    fn missing(&self, needs: &[Need]) -> Vec<String> {
        let missing = needs
            .iter()
            .filter(|&&need| self.lacks(need) || need.lacks_everywhere());
        missing.map(Need::to_string).collect()
    }
}

/// What a subject must show.
pub struct Scenario<S> {
    pub name: &'static str,
    pub needs: &'static [Need],
    pub run: fn(&S),
}

/// Names scenarios, and what each needs.
macro_rules! scenarios {
    ($($name:ident $(needs $($need:ident)+)?),+ $(,)?) => {
        vec![$(crate::suite::Scenario {
            name: stringify!($name),
            needs: &[$($(crate::suite::Need::$need),+)?],
            run: $name,
        }),+]
    };
}

/// Makes a fresh lock.
pub type Make<L> = Arc<dyn Fn() -> L + Send + Sync>;

/// The locks under test, and the tests that come of them.
#[derive(Default)]
pub struct Suite {
    trials: Vec<Trial>,
    locks: Vec<Declared>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("trials", &self.trials.len())
            .field("locks", &self.locks)
            .finish()
    }
}

impl Suite {
    /// Adds a reader-writer lock whose ranges owners may hold.
    ///
    /// # Panics
    /// When it is said to lack owners or readers.
    pub fn owned<L>(&mut self, lock: Declared, make: fn() -> L)
    where
        L: RawOwned + Send + Sync + 'static,
    {
        assert!(!lock.lacks(Owners), "{} lacks owners", lock.name);
        let is_listed = !lock.lacks(Listing);
        let play = move |scenario: fn(&RangeLock<L>)| {
            let range_lock = RangeLock::from_raw(make());
            support::watched(range_lock.raw(), || scenario(&range_lock));
            assert_nothing_held(range_lock.raw(), is_listed);
        };
        self.add(&lock, "owned", owned::scenarios(), &play);
        self.shared(lock, make);
    }

    /// Adds a reader-writer lock.
    ///
    /// # Panics
    /// When it is said to lack readers.
    pub fn shared<L>(&mut self, lock: Declared, make: fn() -> L)
    where
        L: RawRangeLock + Send + Sync + 'static,
    {
        assert!(!lock.lacks(Readers), "{} lacks readers", lock.name);
        self.shared_half(&lock, Arc::new(move || AnyLock::new(make())));
        self.exclusive_half(lock, Arc::new(move || AnyMutex::new(make())));
    }

    /// Adds a lock of exclusive ranges only.
    ///
    /// # Panics
    /// When it is not said to lack readers.
    pub fn exclusive<L>(&mut self, lock: Declared, make: fn() -> L)
    where
        L: RawRangeMutex + Send + Sync + 'static,
    {
        assert!(lock.lacks(Readers), "{} does not lack readers", lock.name);
        for (module, scenarios) in shared_scenarios() {
            for scenario in scenarios {
                let name = format!("{module}::{}", scenario.name);
                self.add_one(&lock, &name, &[Readers], || ());
            }
        }
        self.add_one(&lock, "sequential::shared", &[Readers], || ());
        self.exclusive_half(lock, Arc::new(move || AnyMutex::new(make())));
    }

    /// Adds a test that belongs to no lock.
    pub fn also(
        &mut self,
        name: &str,
        test: impl FnOnce() -> Result<(), Box<dyn Error>> + Send + 'static,
    ) {
        self.trials
            .push(Trial::test(name, || test().map_err(Failed::from)));
    }

    /// What was declared of the locks that were added.
    #[must_use]
    pub fn locks(&self) -> &[Declared] {
        &self.locks
    }

    pub(crate) fn into_trials(self) -> Vec<Trial> {
        self.trials
    }

    fn shared_half(&mut self, lock: &Declared, make: Make<AnyLock>) {
        let fresh = Arc::clone(&make);
        let is_listed = !lock.lacks(Listing);
        let play = move |scenario: fn(&RangeLock<AnyLock>)| {
            let range_lock = RangeLock::from_raw(fresh());
            support::watched(range_lock.raw(), || scenario(&range_lock));
            assert_nothing_held(range_lock.raw(), is_listed);
        };
        for (module, scenarios) in shared_scenarios() {
            self.add(lock, module, scenarios, &play);
        }
        let tail = lock.tail;
        self.add_one(lock, "sequential::shared", &[], move || {
            sequential::shared(&make, tail);
        });
    }

    fn exclusive_half(&mut self, lock: Declared, make: Make<AnyMutex>) {
        if lock.lacks(Owners) {
            for scenario in owned::scenarios::<RawSlots>() {
                let name = format!("owned::{}", scenario.name);
                self.add_one(&lock, &name, &[Owners], || ());
            }
        }
        let fresh = Arc::clone(&make);
        let is_listed = !lock.lacks(Listing);
        let play = move |scenario: fn(&RangeMutex<AnyMutex>)| {
            let mutex = RangeMutex::from_raw(fresh());
            support::watched(mutex.raw(), || scenario(&mutex));
            assert_nothing_held(mutex.raw(), is_listed);
        };
        for (module, scenarios) in [
            ("exclusive", exclusive::scenarios()),
            ("giving_way", giving_way::scenarios()),
            ("left_behind", left_behind::scenarios()),
            ("many", many::scenarios()),
            ("together", together::scenarios()),
            ("traps", traps::scenarios()),
            ("waiting", waiting::scenarios()),
        ] {
            self.add(&lock, module, scenarios, &play);
        }
        let leaking = left_behind::leaking_scenarios();
        let fresh = Arc::clone(&make);
        self.add(&lock, "left_behind", leaking, &move |scenario| {
            scenario(&fresh);
        });
        let tail = lock.tail;
        self.add_one(&lock, "sequential::exclusive", &[], move || {
            sequential::exclusive(&make, tail);
        });
        self.locks.push(lock);
    }

    fn add<S: 'static>(
        &mut self,
        lock: &Declared,
        module: &str,
        scenarios: Vec<Scenario<S>>,
        play: &(impl Fn(fn(&S)) + Clone + Send + 'static),
    ) {
        for Scenario { name, needs, run } in scenarios {
            let play = play.clone();
            self.add_one(lock, &format!("{module}::{name}"), needs, move || play(run));
        }
    }

    fn add_one(
        &mut self,
        lock: &Declared,
        scenario: &str,
        needs: &[Need],
        run: impl FnOnce() + Send + 'static,
    ) {
        let name = format!("{}::{scenario}", lock.name);
        let missing = lock.missing(needs).join(", ");
        self.trials.push(if missing.is_empty() {
            Trial::test(name.clone(), move || {
                in_a_fresh_thread(name, run);
                Ok(())
            })
        } else {
            let reason = format!("not applicable, lacks {missing}");
            Trial::ignorable_test(name, || Ok(Completion::ignored_with(reason)))
        });
    }
}

/// What a thread leaks decides how locks treat it from then on.
fn in_a_fresh_thread(name: String, run: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name);
        let running = thread.spawn_scoped(scope, run).expect("a thread can start");
        if let Err(panic) = running.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn shared_scenarios() -> [(&'static str, Vec<Scenario<RangeLock<AnyLock>>>); 6] {
    [
        ("cancelled", cancelled::scenarios()),
        ("giving_way", giving_way::shared_scenarios()),
        ("many", many::shared_scenarios()),
        ("shared", shared::scenarios()),
        ("together", together::shared_scenarios()),
        ("traps", traps::shared_scenarios()),
    ]
}

/// The leak probe, and that a lock lists what it says it lists.
fn assert_nothing_held(raw: &impl RawRangeMutex, is_listed: bool) {
    assert_eq!(
        raw.snapshot().is_some(),
        is_listed,
        "whether it lists its holders"
    );
    support::assert_nothing_held(raw);
}
