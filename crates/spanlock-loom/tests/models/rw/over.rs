//! A bias over each of the locks that it can be put over: what they are to stand together.
//!
//! The models of a bias by itself, in `bias.rs`, have the futex lock under it. Here there are three preemptions with two
//! threads, and with three two, but one over the cohort locks, which take many steps: what only two preemptions among three
//! threads would bring about is not looked for there.

use super::{
    Guarded, a_hasty_reader, a_hasty_writer, downgrade_keeps_writers_out,
    downgrade_lets_readers_in, reader_and_writer, tries, two_readers_and_a_writer, two_writers,
    two_writers_and_a_reader,
};
use lock_api::{RawRwLock, RawRwLockDowngrade};
use prim::model;
use spanlock_loom::rw::{
    Bias, Bravo, CohortRwLock, FutexMutex, FutexRwLock, MutexRwLock, PerCpu, PhaseFairQueue,
    PhaseFairTicket, ReadersFirst, Tuning, WritersFirst,
};

/// With two threads.
const TWO: Option<usize> = Some(3);

fn over<L: RawRwLock>(lock: L) -> Bravo<L, Tuning> {
    let bias = Bias::Eager;
    Bravo::with_policy(lock, Tuning { bias, bound: 0 })
}

/// A reader that came by the underlying lock sets the bias while a writer wants that lock, or has it and looks.
fn a_bias_is_set_beside_a_writer<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    guarded.write().done();
    let writer = guarded.spawn(|guarded| guarded.write().done());
    guarded.read().done();
    guarded.read().done();
    writer.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

/// What a writer did reaches a reader by the table by way of another, who set the bias.
fn a_bias_brings_what_a_writer_did<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    guarded.write().done();
    let writer = guarded.spawn(|guarded| guarded.write().done());
    let setter = guarded.spawn(|guarded| guarded.read().done());
    guarded.read().done();
    writer.join().unwrap();
    setter.join().unwrap();
}

/// A writer becomes a reader; others set a bias beside it, and a writer revokes that.
fn a_bias_is_set_beside_a_downgrade<L: RawRwLockDowngrade + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.write();
    mine.change();
    let reader = guarded.spawn(|guarded| {
        guarded.read().done();
        guarded.read().done();
    });
    let writer = guarded.spawn(|guarded| guarded.write().done());
    mine.downgrade().done();
    reader.join().unwrap();
    writer.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

/// Makes scenarios tests for each lock, named with its bound for three threads.
macro_rules! for_each {
    ([$($name:ident: $lock:expr, $three:literal;)+] $scenarios:tt) => {
        $(for_each!(@$name, $lock, $three, $scenarios);)+
    };
    (@$name:ident, $lock:expr, $three:literal, { two: $($two:ident),+; three: $($of_three:ident),*; }) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $two() {
                    model(TWO, || super::$two(over($lock)));
                }
            )+
            $(
                #[test]
                fn $of_three() {
                    model(Some($three), || super::$of_three(over($lock)));
                }
            )*
        }
    };
}

for_each! {
    [
        futex: FutexRwLock::<WritersFirst>::new(), 2;
        futex_readers_first: FutexRwLock::<ReadersFirst>::new(), 2;
        ticket: PhaseFairTicket::new(), 2;
        queue: PhaseFairQueue::new(), 2;
        cohort: CohortRwLock::<2>::new(), 1;
        cohort_of_one_node: CohortRwLock::<1>::new(), 1;
        parts: PerCpu::<FutexRwLock<WritersFirst>, 2>::from_parts(FutexRwLock::new), 2;
        mutex: MutexRwLock::from_mutex(FutexMutex::new()), 2;
    ]
    {
        two: reader_and_writer, two_writers, tries, a_bias_is_set_beside_a_writer,
            downgrade_keeps_writers_out;
        three: two_readers_and_a_writer, two_writers_and_a_reader, a_hasty_reader, a_hasty_writer,
            a_bias_brings_what_a_writer_did, a_bias_is_set_beside_a_downgrade;
    }
}

/// Of locks that readers share, also when one of them was a writer.
mod shared {
    use super::*;
    for_each! {
        [
            futex: FutexRwLock::<WritersFirst>::new(), 2;
            futex_readers_first: FutexRwLock::<ReadersFirst>::new(), 2;
            ticket: PhaseFairTicket::new(), 2;
            queue: PhaseFairQueue::new(), 2;
            cohort: CohortRwLock::<2>::new(), 2;
            cohort_of_one_node: CohortRwLock::<1>::new(), 2;
            parts: PerCpu::<FutexRwLock<WritersFirst>, 2>::from_parts(FutexRwLock::new), 2;
        ]
        { two: downgrade_lets_readers_in; three: ; }
    }
}
