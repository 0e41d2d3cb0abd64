//! Models of the locks, run by loom under every schedule up to a bound on preemptions.
//!
//! Most scenarios and the worlds that they play in are in `spanlock-testkit-loom`. The tables here say on which locks
//! each scenario runs, and with how many preemptions: as a rule two where two threads meet, one or two where three do.
//!
//! `mutants.rs` weakens each named edge in turn and expects the model named with it to fail.

mod barrier;
mod deadlocks;
mod keys;
mod list;
mod locks;
mod mutants;
mod owners;
mod points;
mod range;
mod rw;
mod segment;
mod skip;
mod slots;
mod tasks;
