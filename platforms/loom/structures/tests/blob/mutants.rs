//! Each named step, left out, must make a model fail.
//!
//! `cargo test -p spanlock-structures-loom --test blob mutants -- --nocapture` prints the table.

// A model, and the steps without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../../../crates/structures/src/blob";
    harmless "two_of_one_place::bitmap";
    killed by "
    two_of_one_place::bitmap: blob-hide-first
    one_alias_stays::bitmap: blob-keep-lost
    "
}
