//! Reader-writer locks: the scenarios of all, each on the locks that it fits, and what only some locks do.

mod bias;
mod pthread;
mod tasks;

use pthread::{pthread, pthread_writers_first};
use spanlock_loom::rw::{
    Bias, Bravo, FutexRwLock, PhaseFairQueue, PhaseFairTicket, ReadersFirst, WritersFirst,
};
use spanlock_testkit_loom::rw::*;
use spanlock_testkit_loom::{locks, models};
use std::sync::Arc;

type Futex = FutexRwLock<WritersFirst>;
type Biased<L> = Bravo<L, Bias>;

/// Biased from birth, and the bias is always kept.
const EAGER: Bias = Bias::Eager { bound: 0 };

/// Biased from birth, and the bias is never kept: the next reader by the underlying lock sets it.
const RETURNING: Bias = Bias::Eager { bound: u32::MAX };

fn over<L: Lock>(lock: L) -> Biased<L> {
    Bravo::with_policy(lock, EAGER)
}

locks! {
    futex: Futex = Futex::new();
    readers_first: FutexRwLock<ReadersFirst> = FutexRwLock::new();
    ticket: PhaseFairTicket = PhaseFairTicket::new();
    queue: PhaseFairQueue = PhaseFairQueue::new();

    biased: Biased<Futex> = over(futex());
    biased_readers_first: Biased<FutexRwLock<ReadersFirst>> = over(readers_first());
    biased_ticket: Biased<PhaseFairTicket> = over(ticket());
    biased_queue: Biased<PhaseFairQueue> = over(queue());
    returning: Biased<Futex> = Bravo::with_policy(futex(), RETURNING);
    /// A lock that is never biased asks no writer to revoke anything.
    unbiased: Biased<Futex> = Bravo::with_policy(futex(), Bias::Off);
}

// Exclusion.
models! {
    a_reader_and_a_writer:
        all on futex ticket queue,
        4 on biased,
        3 on biased_readers_first biased_ticket biased_queue pthread pthread_writers_first;
    two_writers:
        all on futex ticket queue,
        4 on biased,
        3 on biased_readers_first biased_ticket biased_queue;
    readers_are_inside_together:
        all on futex ticket queue,
        4 on biased,
        3 on pthread pthread_writers_first;
    a_reader_is_seen_beside_another: all on futex ticket queue;
    a_try_does_not_wait:
        all on futex ticket queue,
        4 on biased,
        3 on biased_readers_first biased_ticket biased_queue unbiased pthread pthread_writers_first;
    two_readers_and_a_writer:
        3 on futex readers_first ticket queue,
        1 on biased biased_readers_first biased_ticket biased_queue pthread pthread_writers_first;
    two_writers_and_a_reader:
        3 on futex ticket queue unbiased,
        // With two, each preference of this lock takes as long as all other scenarios of this file.
        (prim::one_more_in_mutants(1)) on pthread,
        1 on biased biased_readers_first biased_ticket biased_queue returning pthread_writers_first;
    three_writers: 3 on futex;
    a_reader_and_a_writer_behind_a_writer: 3 on futex ticket queue;
    a_try_takes_no_phase: 3 on ticket queue;
    reading_twice_beside_a_writer:
        all on readers_first,
        3 on biased pthread;
    reading_again_beside_a_writer: 3 on futex readers_first biased;
    reading_again_beside_a_writer_and_a_reader: 2 on futex, 1 on biased;
    released_by_another_thread: 2 on biased pthread pthread_writers_first;
}

// Giving up.
models! {
    a_hasty_writer: 2 on ticket queue biased biased_readers_first biased_ticket biased_queue;
    a_hasty_reader: 2 on ticket queue biased biased_readers_first biased_ticket biased_queue;
    a_hasty_reader_beside_a_writer: 3 on futex;
    a_hasty_writer_beside_a_writer: 3 on futex;
    a_reader_goes_on_when_the_writer_gives_up: 3 on futex;
}

// Downgrade.
models! {
    downgrade_lets_waiting_readers_in:
        3 on futex ticket queue biased biased_readers_first biased_ticket biased_queue;
    downgrade_keeps_writers_out:
        3 on futex ticket queue biased biased_readers_first biased_ticket biased_queue;
    a_bias_is_set_beside_a_downgrade:
        1 on biased returning biased_readers_first biased_ticket biased_queue;
}

// Bias.
models! {
    a_fast_reader_and_a_writer: 4 on biased, 3 on returning;
    a_fast_reader_and_two_writes: 3 on biased;
    a_fast_reader_leaves_two_writers: 2 on returning;
    a_fast_reader_a_writer_and_another_reader: 1 on biased, 2 on returning;
    a_bias_is_set_beside_a_writer:
        3 on biased returning biased_readers_first biased_ticket biased_queue;
    a_bias_brings_what_a_writer_did:
        2 on returning,
        1 on biased biased_readers_first biased_ticket biased_queue;
    reading_twice_after_a_write: 3 on biased_readers_first;
    readers_get_in_while_a_writer_waits: 2 on biased;
}

/// A reader takes marks for those of writers that are not in this process, while they are: none sleeps for good.
fn a_mark_is_taken_for_a_dead_writers<L: Lock>(world: &Arc<World<L>>) {
    let fork_and_read: Act<L> = |world| {
        prim::thread::pretend_fork();
        read(world);
    };
    world.behind_a_reader([write, write, fork_and_read]);
    world.is_free();
}

models! {
    a_mark_is_taken_for_a_dead_writers: 2 on futex;
}

// Upgrade.
models! {
    an_upgrade_beside_a_reader: 3 on futex biased;
    an_upgrade_beside_a_writer: 3 on futex biased;
    an_upgradable_before_a_writer: 3 on futex biased;
    an_upgradable_beside_a_reader: 3 on futex biased;
    one_upgrade_at_a_time: 3 on futex biased;
    one_upgradable_after_another: 3 on futex biased;
    one_upgradable_beside_the_last: 3 on futex biased;
    an_upgradable_before_a_writer_and_another: 2 on futex;
    an_upgrade_beside_a_reader_and_a_writer: 2 on futex biased;
    a_reader_goes_on_when_an_upgrade_gives_up: 2 on futex biased;
    reading_twice_beside_an_upgrade: 2 on biased;
    reading_twice_beside_an_upgrade_and_a_writer: 2 on biased_readers_first;
}
