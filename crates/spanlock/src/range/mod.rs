//! Range locks: threads lock ranges of one resource, and conflict only where their ranges overlap.
//!
//! | type | what it is |
//! |---|---|
//! | [`RangeLock`] | readers and writers of ranges |
//! | [`RangeMutex`] | exclusive ranges only |
//! | [`RangeLocked`] | a slice whose ranges are locked and lent: safe Rust needs nothing else |
//! | [`Owner`] | who holds ranges and is no thread: a transaction, a client. From [`by`](RangeLock::by) on it converts, extends and releases parts |
//! | [`Holding`] | what an owner or a task holds. Any thread may use and drop it. `Holding<&RangeLock>` borrows the lock, and `Holding<Arc<RangeLock>>` keeps it |
//! | [`Lock`], [`LockBy`] | how tasks wait: futures, from [`read_async`](RangeLock::read_async), [`write_async`](RangeLock::write_async) and [`By::write_async`] |
//! | [`Reentrant`] | what an owner locks again and again |
//! | [`raw`] | the traits that raw locks implement, for authors of locks and of other typed locks |
//! | [`keys`] | ranges of anything that is ordered: byte strings, names, addresses |
//! | [`positions()`] | integers of other widths, signed ones, addresses and times as positions |
//! | [`slots`] | a list at first, and then a slot for each thread: the first three are built on it by default |
//! | [`list`] | the list locks |
//! | [`skip`] | list locks with an index: skip lists, for many ranges held at the same time |
//! | [`segment`] | a lock word for each segment of a resource: fast where ranges are narrow, and coarse |
//! | [`Limited`] | wraps a raw lock, and limits what owners hold |
//! | [`inspect`] | the listing of holders and waiting requests |
//!
//! ```text
//!   RangeLock  RangeMutex  RangeLocked        typed locks: lock.rs mutex.rs slice/, guards, owners, many ranges
//!        \         |         /
//!      RawRangeMutex  RawRangeLock            raw.rs
//!     /        |          |          \
//!   slots -> list   list + index   segment    which range is free, and which request is in the way; slots begin as
//!     \        |          |          /        a list
//!                 wait                        how a blocked request waits: queue, reservations, turns
//!                   |
//!          thread    reclaim                  a record for each thread; when nodes may be used again
//! ```

mod guard;
mod holding;
pub(crate) mod id;
pub mod inspect;
pub mod keys;
mod limited;
pub mod list;
mod lock;
mod many;
mod methods;
pub(crate) mod mode;
mod mutex;
mod named;
mod order;
mod owner;
mod parts;
mod positions;
pub mod raw;
mod refusal;
pub mod segment;
pub(crate) mod shown;
mod slice;
pub mod slots;
mod sought;
pub(crate) mod span;
pub(crate) mod thread;
mod wait;

pub use guard::{Guards, GuardsIntoIter, LockGuard, ReadGuard, WriteGuard};
pub use holding::{By, Holding, Lock, LockBy, OfPositions, Place, Reentrant, SharedPlace, TryLock};
pub use id::OwnerId;
pub use limited::Limited;
#[doc(inline)]
pub use list::skip;
pub use lock::RangeLock;
pub use mutex::RangeMutex;
pub use owner::{Owner, Refusal};
pub use positions::{Position, positions};
pub use slice::{Hold, LentRead, LentWrite, LentWrites, Part, RangeLocked, SliceBy, Whole};
pub use slice::{
    OwnedSliceReadGuard, OwnedSliceWriteGuard, SliceReadGuard, SliceWriteGuard, SliceWriteGuards,
};
pub use span::{ReversedRange, Span};
