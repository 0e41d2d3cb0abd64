//! When may a node that was unlinked from a list be used again?
//!
//! Other threads may still stand on it. So each thread has an *epoch*, odd while it walks a list, and a node is
//! used again only when every thread that was walking at the time it was given up has since stopped (P1 §4.4).
//! Unlike the paper's, this reclamation never blocks: a batch of nodes is sealed with the epochs that were odd,
//! and whoever needs nodes looks whether they have all moved; if not, it allocates. A thread leaves its epoch
//! before it sleeps, so one that waits for a range holds nobody's nodes back.
//!
//! # Memory ordering
//!
//! - **pin / seal** (store, fence, load on both sides). A walker makes its epoch odd, fences, then reads links. A
//!   sealer unlinks nodes, fences, then reads epochs. If the walker's fence is first, the sealer sees the odd epoch
//!   and waits for it to move. If the sealer's fence is first, the walker sees the links without the nodes.
//! - **newcomers**: the same handshake, between a thread that takes an index for the first time before its first walk,
//!   and a sealer that asks how many indices there are.
//! - **unpin**: Release by the walker on making its epoch even, Acquire by whoever looks at the epoch: all that the
//!   walker did with the nodes is before their next use.
//! - **grace**: a sealed batch is not used until every epoch recorded with it has moved. Used sooner, a node can
//!   come back, at the same address and with another range, under a thread that is about to insert before it; the
//!   insertion compares addresses only. So this edge guards exclusion and not just memory.
//!
//! # Progress
//!
//! - **barrier**: a thread that wants a node never waits for a walk to end, and no walk lasts while its thread sleeps.
//!   In the paper both do: a thread that holds a range and wants another waits for one that waits for the first.

mod epoch;
mod pool;

pub(crate) use epoch::{Epoch, Grace};
pub(crate) use pool::{Pool, Recycled};
