//! Keepers and caches in simulated time, over ways to the engine that fail at random.
//!
//! All machines run on one thread, whose clock advances when nothing else is left to do. `clock` and `names` stand in
//! for the modules of the same names, so one seed is one schedule.

mod net;
mod storm;
