//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-structures-loom --test vm mutants -- --nocapture` prints the table.

// A model, and the edges without each of which it fails. `fresh-area`, `origin`, `reserve` and `cover` are P1 §5 taken
// literally: a fault that holds its page alone, an offset that is rewritten with the start, counts by loads and stores,
// and changes that hold their own range alone.
spanlock_testkit::mutants! {
    edges in "../../../crates/structures/src/vm";
    harmless "counts_of_changes_side_by_side";
    killed by "
    a_fault_in_a_fresh_area_beside_one_that_changes: fresh-area
    a_fault_in_an_area_that_takes_the_end_of_another: origin
    two_changes_in_one_area_refined: cover
    counts_of_changes_side_by_side: reserve
    a_limit_on_pages: limit
    a_limit_on_areas: number
    both_limits_at_one_moment: number-certain
    a_search_past_an_area_that_comes: chunk
    a_search_past_two_areas_that_come: directory
    a_search_past_areas_that_go: search-grace search-pin search-seal search-unpin
    a_higher_range_gets_free: search-again
    "
}
