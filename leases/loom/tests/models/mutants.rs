//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-lease-loom --test models mutants -- --nocapture` prints the table.

// A model, and the edges without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../lease/src/blocks";
    harmless "a_lost_lease::few";
    killed by "
    a_holder_beside_a_giving_up::few: holders-drained looks-inside newcomers-stopped slots-emptied
    a_block_is_found_anew_beside_a_giving_up::few: slots-locked
    a_holder_after_a_dropped_giving_up::few: leaving-kept
    a_giving_up_is_dropped::few: leaving-listed
    a_lost_lease::few: closed-first gate-asked
    slots::two_blocks_of_one_slot: slot-is-odd slot-is-whole slot-odd-refused slot-odd-seen slot-whole-seen
    "
}
