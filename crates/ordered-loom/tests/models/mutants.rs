//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-ordered-loom --test models mutants -- --nocapture` prints the table.

// A model, and the edges without each of which it fails.
spanlock_testkit::mutants! {
    edges in "../ordered/src";
    harmless "updating::two_insert::specified";
    killed by "
    updating::two_insert::specified: validate
    updating::two_insert::by_node: validate
    updating::two_insert_around_a_low_node::by_node: neighbourhood
    updating::insert_behind_a_removal::by_node: mark victim
    updating::two_insert_around_a_low_node::specified: neighbourhood
    updating::insert_behind_a_removal::specified: mark victim
    reading::search_beside_an_insertion::specified: publish
    reading::search_beside_replacements::specified: leave replacement
    reclaiming::a_reader_stands_on_removed_nodes::specified: grace pin seal new-threads
    reclaiming::a_reader_comes_back::specified: unpin
    "
}
