//! Reader-writer locks that scale.

pub mod overlay;
pub mod visible;
