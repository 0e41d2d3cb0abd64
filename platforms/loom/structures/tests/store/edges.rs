//! The edges of the store that the models here weaken, for them, and for the crash tests, which do not weaken them.

/// A model, and the edges of memory ordering without each of which it fails.
pub const ORDERINGS: &str = "
    two_writers_and_new_log_pages: log-page
    two_writers_and_new_log_pages: once-made
    the_index_grows: index-node
    a_sync_for_two: group-commit
    a_count_beside_a_truncation: page-count
    ";

/// The same for a step that must wait for the writes that are under way.
pub const WAITS: &str = "attributes_beside_a_writer: attributes-wait";
