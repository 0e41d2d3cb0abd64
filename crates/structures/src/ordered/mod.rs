//! Concurrent ordered maps and sets whose updates lock positions in one range lock.
//!
//! ```
//! use spanlock_structures::ordered::RangeSkipMap;
//!
//! let temperatures: RangeSkipMap<u64, f32> = RangeSkipMap::new();
//! let view = temperatures.pin();
//! view.insert(1200, 20.5);
//! view.insert(1300, 21.0);
//! view.insert(1400, 20.0);
//! let afternoon: Vec<_> = view.range(1300..).map(|(time, _)| *time).collect();
//! assert_eq!(afternoon, [1300, 1400]);
//! assert_eq!(view.pop_first(), Some((&1200, &20.5)));
//! ```
//!
//! | type | what it is |
//! |---|---|
//! | [`RangeSkipMap`] | an ordered map: a skip list |
//! | [`RangeSkipSet`] | the set |
//! | [`View`], [`SetView`] | access to a map, to a set: what it lends lives as long as the view |
//! | [`Key`] | keys that have a position, for the lock |
//! | [`exclusion`] | how updates exclude each other: by one range lock ([`ByRange`]), or by a lock in each node ([`ByNode`]) |
//!
//! Searches take no lock and do not wait. An update searches for its place, locks the positions of the nodes whose
//! links it changes, checks that nothing has changed there, and changes the links. Under one range lock there are
//! operations on all keys of a range, and on several keys, in one step: [`View::snapshot`], [`View::remove_range`] and
//! [`View::update_many`].
//! `docs/ordered-sets.md` explains the protocol.
//!
//! Source: *Scalable Range Locks for Scalable Address Spaces and Beyond* (Kogan, Dice and Issa, EuroSys 2020, §6),
//! after *A Simple Optimistic Skiplist Algorithm* (Herlihy, Lev, Luchangco and Shavit, SIROCCO 2007).

pub mod exclusion;
mod key;
mod link;
mod map;
mod node;
mod reclaim;
mod search;
mod set;

pub use exclusion::{ByNode, ByRange};
pub use key::Key;
pub use map::{Iter, RangeSkipMap, View};
pub use set::{Keys, RangeSkipSet, SetView};
