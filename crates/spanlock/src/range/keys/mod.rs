//! Range locks over keys: over anything that is ordered, and above all byte strings.
//!
//! | file | content |
//! |---|---|
//! | `builder.rs` | how a lock is made |
//! | `cells.rs` | where keys are kept while others may compare them |
//! | `compare.rs` | what keys are, and what compares them |
//! | `index.rs` | what makes a list lock one over keys |
//! | `listing.rs` | the listing of holders and waiting requests |
//! | `lock.rs` | the typed lock |
//! | `numbers.rs` | a lock over numbers is a raw lock |
//! | `order.rs` | how ranges of keys compare |
//! | `over.rs` | what counts or limits a list of keys |
//! | `owned.rs` | what owners hold |
//! | `range.rs` | ranges of keys as people read them |
//! | `space.rs` | many tables |
//!
//! The lists are those of [`list`](super::list), and the waiting is the same.

mod builder;
pub(in crate::range) mod cells;
mod compare;
mod index;
mod listing;
mod lock;
mod numbers;
mod order;
mod over;
mod owned;
mod range;
mod space;

pub use super::shown::ShownKeys;
pub use builder::Builder;
pub use compare::{Compare, Key, Natural, Prefix, between, point, prefix};
pub use index::KeyIndex;
pub use listing::{KeyRequest, KeySnapshot, WaitingForKeys};
pub use lock::{KeyRangeLock, RawKeys};
pub use over::OverKeys;
pub use owned::OfKeys;
pub use range::KeyRange;
pub use space::{KeySpace, Table, TableHoldings};
