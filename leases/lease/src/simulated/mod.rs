//! Keepers and caches in simulated time, over ways to the engine that fail at random or as they are told to.
//!
//! All machines run on one thread, whose clock advances when nothing else is left to do. `clock` and `names` stand in
//! for the modules of the same names, so one seed is one schedule.

mod ends;
mod net;
mod stalling;
mod storm;

use crate::{clock, names};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::timeout;

/// None takes longer.
const HANGS: Duration = Duration::from_secs(100_000);

/// Runs a simulation to its end.
fn simulate(work: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("it needs nothing");
    LocalSet::new().block_on(&runtime, async {
        clock::begin();
        names::begin();
        timeout(HANGS, work).await.expect("it ends");
    });
}
