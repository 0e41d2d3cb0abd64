//! Models of the locks, run by loom under every schedule up to a bound on preemptions.
//!
//! Oracles: the resource's slots are loom cells, so two holders who should exclude each other, or whose critical
//! sections are not ordered, are a race; a lost wake-up is a deadlock, which loom reports; nodes are tracked, so a
//! leak is reported when an execution ends.
//!
//! `mutants.rs` weakens each named edge in turn and expects the model named with it to fail.

mod barrier;
mod giving_way;
mod list;
mod mutants;
mod mutation;
mod queue;
mod reclaim;
mod rw;
mod scenarios;
mod segment;
mod skip;
mod world;
