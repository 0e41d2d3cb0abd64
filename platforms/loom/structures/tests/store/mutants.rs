//! Each edge of memory ordering, weakened, must make a model fail, and so must a step that does not wait for writes.
//!
//! `cargo test -p spanlock-structures-loom --test store mutants -- --nocapture` prints the table.

#[path = "edges.rs"]
mod edges;

use spanlock_testkit::mutation::{kill_all, parse, survives_a_mutant_of_nothing};

#[test]
fn mutants_are_killed() {
    let rewriting = parse("a_rewriting_beside_a_writer: clean-waits");
    kill_all(&[parse(edges::ORDERINGS), parse(edges::WAITS), rewriting].concat());
}

/// The models fail because of the mutants: a name that weakens nothing changes nothing.
#[test]
fn a_mutant_of_nothing_survives() {
    survives_a_mutant_of_nothing("two_appends");
}
