//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-workbench-loom --test models mutants -- --nocapture` prints the table.

// A model, and the edges without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../../../crates/workbench/src/baseline";
    harmless "range::two_writers_overlapping::song";
    killed by "
    range::a_reader_that_gives_up_rolls_back::pnova: pnova-roll-back
    range::refused_tries_roll_back::sparse_bitmap: bitmap-roll-back
    range::two_writers_overlapping::bitmap: bitmap-clear bitmap-set
    range::two_writers_overlapping::kernel_rw: tree-grant-acquire tree-grant-release
    range::two_writers_overlapping::pnova: pnova-enter pnova-leave
    range::two_writers_overlapping::song: spin-lock-acquire spin-lock-release
    rw::a_fast_reader_a_writer_and_another_reader::bravo: paper-seen
    rw::a_fast_reader_and_a_writer::bravo: paper-depart paper-reader paper-revoked paper-writer
    rw::a_hasty_writer::one_node: cohort-uncounted
    rw::a_reader_and_a_writer::cohort: cohort-depart cohort-drained cohort-gone cohort-reader cohort-seen
    rw::a_reader_and_a_writer::cohort: cohort-turn-back cohort-wake-readers cohort-wake-writer cohort-writer
    rw::a_reader_and_a_writer::parking: parking-acquire parking-alone parking-release
    rw::a_reader_and_a_writer::std: std-acquire std-release
    rw::a_writer_after_a_handover_waits_for_readers::one_node: cohort-handed
    rw::three_writers::parking: parking-tell parking-told
    rw::three_writers::std: std-signal std-signalled
    rw::two_readers_and_a_writer::bravo: paper-set
    rw::two_writers::mutex: mutex-enter mutex-enter-contended mutex-leave mutex-wake
    rw::two_writers_and_a_reader::mutex: mutex-conservative
    rw::two_writers_and_a_reader::one_node: cohort-queue
    "
}
