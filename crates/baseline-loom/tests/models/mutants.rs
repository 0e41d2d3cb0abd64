//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-baseline-loom --test models mutants -- --nocapture` prints the table.

use crate::mutation::{self, Mutant};

/// An edge, and the model that fails without it.
const MUTANTS: &[Mutant] = &[
    ("bitmap-clear", "bitmap::two_writers_overlapping"),
    ("bitmap-roll-back", "bitmap::a_refused_request_rolls_back"),
    ("bitmap-set", "bitmap::two_writers_overlapping"),
    ("paper-depart", "bravo::a_fast_reader_and_a_writer"),
    ("paper-reader", "bravo::a_fast_reader_and_a_writer"),
    ("paper-revoked", "bravo::a_fast_reader_and_a_writer"),
    ("paper-seen", "bravo::fast_readers_and_a_writer"),
    ("paper-set", "bravo::a_bias_brings_what_writers_did"),
    ("paper-writer", "bravo::a_fast_reader_and_a_writer"),
    ("pnova-enter", "pnova::two_writers_overlapping"),
    ("pnova-leave", "pnova::two_writers_overlapping"),
    ("pnova-roll-back", "pnova::who_gives_up_rolls_back"),
    ("spin-lock-acquire", "song::two_writers_overlapping"),
    ("spin-lock-release", "song::two_writers_overlapping"),
    ("tree-grant-acquire", "tree::two_writers_overlapping"),
    ("tree-grant-release", "tree::two_writers_overlapping"),
];

#[test]
fn every_mutant_is_killed() {
    mutation::kill_all(MUTANTS);
}

/// The models fail because of the mutants: a name that weakens nothing changes nothing.
#[test]
fn a_mutant_of_nothing_survives() {
    mutation::survives_a_mutant_of_nothing("song::two_writers_overlapping");
}

#[test]
fn every_named_edge_has_a_mutant() {
    mutation::covers(&["../baseline/src"], MUTANTS);
}
