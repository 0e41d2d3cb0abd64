//! BRAVO as published, the locks of Rust programs, and those of the papers, also under the library's BRAVO.

use spanlock::rw::{Bias, Bravo, FutexRwLock, WritersFirst};
use spanlock_testkit_loom::rw::*;
use spanlock_testkit_loom::{locks, models};
use spanlock_workbench_loom::{
    CohortRwLock, MutexRwLock, PaperBravo, ParkingRwLock, PerCpu, StdRwLock,
};

type Futex = FutexRwLock<WritersFirst>;
type Biased<L> = Bravo<L, Bias>;

/// Biased from birth, and the bias is always kept.
fn over<L: Lock>(lock: L) -> Biased<L> {
    Bravo::with_policy(lock, Bias::Eager { bound: 0 })
}

locks! {
    bravo: PaperBravo<Futex> = PaperBravo::over(Futex::new());
    std: StdRwLock = StdRwLock::new();
    parking: ParkingRwLock = ParkingRwLock::new();

    /// Each thread is a node: of three, two share one.
    cohort: CohortRwLock<2> = CohortRwLock::new();
    /// All threads are of one node, which hands the lock on.
    one_node: CohortRwLock<1> = CohortRwLock::new();
    mutex: MutexRwLock = MutexRwLock::new();
    parts: PerCpu<Futex, 2> = PerCpu::from_parts(Futex::new);

    biased_cohort: Biased<CohortRwLock<2>> = over(cohort());
    biased_one_node: Biased<CohortRwLock<1>> = over(one_node());
    biased_mutex: Biased<MutexRwLock> = over(mutex());
    biased_parts: Biased<PerCpu<Futex, 2>> = over(parts());
}

models! {
    a_reader_and_a_writer:
        all on mutex,
        4 on cohort one_node,
        3 on bravo std parking parts biased_cohort biased_one_node biased_mutex biased_parts;
    a_try_does_not_wait:
        all on mutex,
        4 on cohort one_node,
        3 on bravo std parking parts biased_cohort biased_one_node biased_mutex biased_parts;
    two_writers_and_a_reader:
        3 on mutex,
        2 on bravo std parking cohort one_node parts,
        1 on biased_mutex biased_parts biased_cohort biased_one_node;
    two_writers:
        all on mutex,
        4 on cohort one_node,
        3 on std parking parts biased_cohort biased_one_node biased_mutex biased_parts;
    three_writers: 2 on std parking one_node;
    a_reader_and_a_writer_behind_a_writer: 2 on std parking;
    a_fast_reader_and_a_writer: 3 on bravo;
    two_writers_after_a_reader: 3 on bravo;
    two_readers_and_a_writer:
        2 on bravo parking cohort one_node parts,
        1 on biased_mutex biased_parts biased_cohort biased_one_node;
    a_fast_reader_a_writer_and_another_reader: 2 on bravo;
    readers_are_inside_together:
        4 on cohort one_node,
        3 on parts,
        2 on bravo std parking;
    a_writer_after_a_handover_waits_for_readers: 2 on one_node;
    a_hasty_writer:
        2 on cohort one_node biased_mutex biased_parts,
        1 on biased_cohort biased_one_node;
    a_hasty_reader:
        2 on cohort one_node biased_mutex biased_parts,
        1 on biased_cohort biased_one_node;
    a_hasty_writer_alone: 3 on one_node;
    a_hasty_writer_beside_a_writer: 3 on mutex;
    downgrade_lets_waiting_readers_in:
        3 on biased_cohort biased_one_node biased_parts,
        2 on cohort parts;
    downgrade_keeps_writers_out:
        3 on biased_cohort biased_one_node biased_mutex biased_parts,
        2 on cohort one_node parts;
    a_bias_is_set_beside_a_downgrade: 1 on biased_mutex biased_parts biased_cohort biased_one_node;
    a_bias_is_set_beside_a_writer: 3 on biased_cohort biased_one_node biased_mutex biased_parts;
    a_bias_brings_what_a_writer_did: 1 on biased_mutex biased_parts biased_cohort biased_one_node;
}
