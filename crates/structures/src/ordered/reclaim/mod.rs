//! When may a node that has left a map be freed?
//!
//! Not at once: another thread may stand on it. So each thread has an *epoch*, a number that is odd while the thread
//! has a [`Pin`]. Nodes that have left a map are retired to a [`Bag`] of the thread. A full bag is sealed: the thread
//! records the epochs that are odd. The sealed nodes are freed when each recorded epoch has changed.
//!
//! ```text
//!   thread A   -----pin-----|        |--pin--
//!   thread B      |-------------pin-------|
//!   thread C                    |--pin--|
//!   thread D          unlinks, seals      ^
//!                            ^            over: the epochs of A and B have changed. C began later, and cannot reach
//!                            |                  the nodes.
//!                            records A and B, whose epochs are odd
//! ```
//!
//! The range locks reclaim their nodes likewise, but in a module that is private to the library, because the two differ
//! in what they optimise. A lock's walk begins with a full fence, its nodes have one size and no content, and it makes
//! no system call. Here a search is the frequent operation and makes no fence: the thread that seals bears the cost,
//! with [`prim::barrier`]. Nodes differ in size and have content to drop.
//!
//! A bag belongs to one map and one record, so a dropped map drops everything that was ever in it.
//!
//! # Edges: memory ordering
//!
//! - **set-pin**, **set-seal** (store, fence, load on both sides; the light and the heavy side of the asymmetric
//!   barrier): a thread makes its epoch odd, fences, and then follows links. A thread that seals has unlinked nodes,
//!   fences, and then loads the epochs. If the pin's fence is first, the sealing thread sees the odd epoch. If the
//!   sealing thread's fence is first, the pinned thread sees the links without the nodes.
//! - **set-new-threads**: the same with a thread that has just been given its first record. The sealing thread
//!   determines the number of records after its fence.
//! - **set-unpin**: Release by a thread that makes its epoch even, Acquire by the loads of epochs: all accesses to the
//!   nodes come before they are freed.
//!
//! # Edges: steps that must not be left out
//!
//! - **set-grace**: sealed nodes are not freed until every recorded epoch has changed.

mod bag;
mod epoch;
mod record;

pub(crate) use bag::Bag;
pub(crate) use record::Pin;
