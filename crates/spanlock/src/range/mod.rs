//! Range locks.
//!
//! | type | what it is |
//! |---|---|
//! | [`RangeLock`] | readers and writers of ranges |
//! | [`RangeMutex`] | exclusive ranges only |
//! | [`RangeLocked`] | a slice whose ranges are locked and lent: safe Rust needs nothing else |
//! | [`raw`] | the traits behind them, for builders of locks and of other typed faces |
//! | [`list`] | the locks of P1: what the two above are made of today |
//! | [`skip`] | the same with an index: skip lists (P4), for many ranges held at a time |
//! | [`segment`] | the locks of P3: a word for each segment of a resource; fast where ranges are narrow, and coarse |
//! | [`Instrumented`] | wraps a raw lock and counts |
//! | [`inspect`] | who holds and who waits |

mod guard;
pub mod inspect;
mod instrumented;
pub mod list;
mod lock;
mod many;
mod mutex;
mod queue;
pub mod raw;
pub mod segment;
pub mod skip;
mod slice;
mod span;
mod waiting;

pub use guard::{Guards, LockGuard, ReadGuard, WriteGuard};
pub use instrumented::{Instrumented, LockStats, ModeStats};
pub use lock::RangeLock;
pub use mutex::RangeMutex;
pub use slice::{RangeLocked, SliceReadGuard, SliceWriteGuard};
pub use span::{ReversedRange, Span};
