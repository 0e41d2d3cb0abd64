//! Each named step, left out, must make a model fail.
//!
//! `cargo test -p spanlock-blob-loom --test models mutants -- --nocapture` prints the table.

// A model, and the steps without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../../../crates/blob/src";
    harmless "two_of_one_place::bitmap";
    killed by "
    two_of_one_place::bitmap: blob-hide-first
    one_alias_stays::bitmap: blob-keep-lost
    "
}
