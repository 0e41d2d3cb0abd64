//! When may a node that was unlinked from a list be used again?
//!
//! Not at once: another thread may still stand on it. So each thread has an *epoch*, a number that is odd while the
//! thread walks a list. A node is used again only when every thread that was walking at the time the node was given up
//! has stopped since. (Epochs and pools follow the paper of the [list locks](crate::range::list), P1 §4.4.)
//!
//! ```text
//!   a node's life
//!
//!     active --take--> list --unlink--> retired --seal--> sealed --grace period--> active
//!     (pool)                            (pool)            (pool)                   (pool)
//!
//!   a grace period
//!
//!     thread A   ------walk------|      |---walk---
//!     thread B        |----------walk-----------|
//!     thread C                       |--walk--|
//!     sealer          unlinks, seals                records A and B, which walk: their epochs are odd
//!                           ^                   ^
//!                           seal                over: both epochs have moved. C began later and cannot
//!                                               reach the nodes.
//! ```
//!
//! Unlike the paper's, this reclamation never blocks. A thread that runs out of nodes checks whether the sealed batch
//! has had its grace period. If not, the thread allocates. A thread also leaves its epoch before it sleeps, so a
//! request that waits for a range keeps no other thread's nodes from being used again.
//!
//! # Edges: memory ordering
//!
//! - **pin**, **seal** (store, fence, load on both sides): a walker makes its epoch odd, fences, and then loads links.
//!   A sealer unlinks nodes, fences, and then loads epochs. If the walker's fence is first, the sealer sees the odd
//!   epoch and waits for it to move. If the sealer's fence is first, the walker sees the links without the nodes.
//! - **new-threads**: the same handshake with a thread that takes an index for the first time before its first walk:
//!   the sealer determines only after its fence how many indices there are.
//! - **unpin**: Release by the walker on making its epoch even, Acquire by the loads of epochs: the walker's accesses
//!   to the nodes come before the nodes' next use.
//!
//! # Edges: steps that must not be left out
//!
//! - **grace**: a sealed batch is not used until every epoch recorded with it has moved. Otherwise a node could come
//!   back, at the same address and with another range, while a thread is about to insert before it. The insertion
//!   compares addresses only. So this edge protects exclusion, and not only memory.
//! - **grace-nonblocking**: a thread that wants a node never waits for a walk to end, and no walk lasts while its
//!   thread sleeps. In the paper both happen. There a thread that holds a range and asks for another can wait for a
//!   walker, which waits for the range that is held.

mod epoch;
mod pool;

pub(crate) use epoch::{Epoch, Grace};
pub(crate) use pool::{Pool, Recycled};
