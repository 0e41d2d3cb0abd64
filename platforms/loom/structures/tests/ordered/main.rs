//! Models of ordered maps, run by loom under every schedule up to a bound on preemptions.
//!
//! Towers have two levels here. Two updates of one map meet, or an update and a search; the map is small. Each scenario
//! runs over a range lock that is a specification (`lock.rs`), so that loom explores the map and not the lock, and over
//! locks in nodes. Some run over the library's list lock, too.
//!
//! `mutants.rs` weakens each named edge in turn and expects the model named with it to fail.

mod lock;
mod mutants;
mod reading;
mod reclaiming;
mod several;
mod updating;
mod world;
