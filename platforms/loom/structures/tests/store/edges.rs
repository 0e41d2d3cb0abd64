//! The edges of memory ordering in the store, for the models here, and for the crash tests, which do not weaken them.

/// A model, and the edges without each of which it fails.
pub const ORDERINGS: &str = "
    two_writers_and_new_log_pages: log-page
    the_index_grows: index-node
    a_sync_for_two: group-commit
    ";
