//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-structures-loom --test ordered mutants -- --nocapture` prints the table.

// A model, and the edges without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../../../crates/structures/src/ordered";
    harmless "updating::two_insert::specified";
    killed by "
    updating::two_insert::specified: set-validate
    updating::two_insert::by_node: set-validate
    updating::two_insert_around_a_low_node::by_node: set-neighbourhood
    updating::insert_behind_a_removal::by_node: set-mark set-victim
    updating::two_insert_around_a_low_node::specified: set-neighbourhood
    updating::insert_behind_a_removal::specified: set-mark set-victim
    several::a_snapshot_beside_a_change_of_two::specified: set-several
    several::a_range_leaves_beside_an_insertion_before_it::specified: set-range
    reading::search_beside_an_insertion::specified: set-publish
    reading::search_beside_replacements::specified: set-leave set-replacement
    reclaiming::a_reader_stands_on_removed_nodes::specified: set-grace set-pin set-seal set-new-threads
    reclaiming::a_reader_comes_back::specified: set-unpin
    "
}
