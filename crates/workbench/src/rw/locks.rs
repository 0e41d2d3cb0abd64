//! The reader-writer locks, each once: to add one, add a row. Peers that are on hardware only are in `bench`.
//!
//! A [`Table`] takes the rows: for each a lock in words, and how it is made, with its type. A row is in one of three
//! faces, by what the lock can do. Some locks have a part for each processor, or for each memory node, by their type:
//! their rows are asked for by number. The order of the functions is that of tables of results.

use crate::baseline::{CohortRwLock, MutexRwLock, PaperBravo, PerCpu};
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RwLock};
use prim::clock::{Duration, Instant};
use spanlock::rw::{Bias, Bravo, FutexRwLock, PhaseFairQueue, PhaseFairTicket, ReadersFirst};
use spanlock_records::trial::lock::Readers::{Exclude, Recur, Share};
use spanlock_records::trial::lock::{Over, Role, RwDescribed};

/// A lock with the timed forms, of which a writer can become a reader.
pub trait Whole:
    RawRwLockTimed<Duration = Duration, Instant = Instant> + RawRwLockDowngrade + Send + Sync + 'static
{
}

impl<L> Whole for L where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>
        + RawRwLockDowngrade
        + Send
        + Sync
        + 'static
{
}

/// How a lock is made.
pub type Maker<L> = fn() -> RwLock<L, ()>;

/// A lock that threads can share.
pub trait Untimed: RawRwLock + Send + Sync + 'static {}
impl<L: RawRwLock + Send + Sync + 'static> Untimed for L {}

/// A lock of the [whole](Whole) interface, with readers who can become writers.
pub trait Upgradable: Whole + RawRwLockUpgrade {}
impl<L: Whole + RawRwLockUpgrade> Upgradable for L {}

/// Takes the rows. Unless it asks for more, all are [`untimed`](Self::untimed).
pub trait Table {
    /// A lock that waits forever or not at all.
    fn untimed<L: Untimed>(&mut self, described: RwDescribed, make: Maker<L>);

    /// A lock with the timed forms, of which a writer can become a reader.
    fn whole<L: Whole>(&mut self, described: RwDescribed, make: Maker<L>) {
        self.untimed(described, make);
    }

    /// The same, with readers who can become writers.
    fn upgradable<L: Upgradable>(&mut self, described: RwDescribed, make: Maker<L>) {
        self.whole(described, make);
    }
}

fn new<L: RawRwLock>() -> RwLock<L, ()> {
    RwLock::new(())
}

/// Without a bias.
fn off<L: RawRwLock>() -> RwLock<Bravo<L, Bias>, ()> {
    tuned(Bias::Off)
}

/// Biased from birth.
fn eager<L: RawRwLock>() -> RwLock<Bravo<L, Bias>, ()> {
    tuned(Bias::EAGER)
}

fn tuned<L: RawRwLock>(bias: Bias) -> RwLock<Bravo<L, Bias>, ()> {
    RwLock::from_raw(Bravo::with_policy(L::INIT, bias), ())
}

/// The policy of locks under BRAVO as users have it.
pub const BIASED: &str = "bravo";

/// The policy of the same that are biased from birth: for fuzzing, where else few would ever be.
pub const EAGER: &str = "eager";

/// A row: what all of a family have in common, and the rest.
macro_rules! described {
    ($name:expr, $about:expr, $readers:expr $(, $field:ident: $value:expr)*) => {
        RwDescribed {
            name: $name,
            about: $about,
            readers: $readers,
            $($field: $value,)*
            ..RwDescribed::ANY
        }
    };
}

/// The row of a biased lock: its policy, and the underlying lock's name.
macro_rules! over {
    ($policy:literal, $name:literal, $suffix:literal, $readers:expr $(, $field:ident: $value:expr)*) => {
        described!(
            concat!("bravo-", $name, $suffix),
            concat!("BRAVO over ", $name, ", policy ", $policy),
            $readers,
            over: Some(Over { lock: $name, policy: $policy })
            $(, $field: $value)*
        )
    };
}

/// A lock as it is and under BRAVO: ours, also without a bias and biased from birth, and the paper's.
macro_rules! family {
    ($role:ident: $table:ident.$face:ident::<$lock:ty>, $name:literal, $readers:expr, $about:literal) => {
        $table.$face(
            described!($name, $about, $readers, role: Role::$role),
            new::<$lock>,
        );
        $table.$face(
            over!("bravo", $name, "", $readers, role: Role::Library),
            new::<Bravo<$lock>>,
        );
        $table.$face(
            over!("off", $name, "-off", $readers, role: Role::Library),
            off::<$lock>,
        );
        $table.untimed(
            over!("paper", $name, "-paper", $readers, role: Role::Baseline),
            new::<PaperBravo<$lock>>,
        );
        $table.$face(over!("eager", $name, "-eager", $readers), eager::<$lock>);
    };
}

/// Locks of a few words.
pub fn words(table: &mut impl Table) {
    family!(Library: table.upgradable::<FutexRwLock>, "futex", Share,
        "spanlock's FutexRwLock: two words, writers first");
    family!(Library: table.whole::<PhaseFairTicket>, "pf-t", Share,
        "spanlock's PhaseFairTicket: phases of readers and writers take turns");
    family!(Library: table.whole::<PhaseFairQueue>, "pf-q", Share,
        "spanlock's PhaseFairQueue: the same, and who waits does so in a queue");
}

/// Locks with a part for each of so many memory nodes.
pub fn by_node<const NODES: usize>(table: &mut impl Table) {
    family!(Baseline: table.whole::<CohortRwLock<NODES>>, "c-rw-wp", Share,
        "C-RW-WP of two nodes: writers first");
}

/// Locks with a part for each of so many processors, as the paper's of phase-fair locks.
pub fn by_processor<const PROCESSORS: usize>(table: &mut impl Table) {
    family!(Baseline: table.whole::<PerCpu<PhaseFairQueue, PROCESSORS>>, "per-cpu", Share,
        "brlock: 16 of pf-q, a reader takes one and a writer all");
}

/// Locks whose readers exclude each other.
pub fn exclusive(table: &mut impl Table) {
    family!(Baseline: table.whole::<MutexRwLock>, "mutex", Exclude,
        "a mutex of one word: readers exclude each other");
}

/// A lock as it is and under BRAVO, which are only fuzzed.
macro_rules! fuzzed {
    ($table:ident.$face:ident::<$lock:ty>, $name:literal, $readers:expr, $about:literal) => {
        $table.$face(described!($name, $about, $readers), new::<$lock>);
        $table.$face(over!("bravo", $name, "", $readers), new::<Bravo<$lock>>);
        $table.$face(over!("eager", $name, "-eager", $readers), eager::<$lock>);
    };
}

/// Further configurations, in which other paths are taken.
pub fn configurations(table: &mut impl Table) {
    fuzzed!(table.upgradable::<FutexRwLock<ReadersFirst>>, "futex-readers", Recur,
        "futex, with readers first");
    fuzzed!(table.whole::<PerCpu<FutexRwLock, 4>>, "per-cpu-futex", Share,
        "per-cpu, of four of futex");
}
