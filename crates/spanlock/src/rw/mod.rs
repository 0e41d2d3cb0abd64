//! Reader-writer locks that scale.

pub mod visible;
