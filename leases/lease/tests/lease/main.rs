//! Leases, and a cache of them, over an engine within the process, by the clock of the machine.

mod cache;
mod client;
mod limits;

use spanlock_lease::{Engine, Extent, Options, RangeLease};
use spanlock_testkit::watchdog::{HANG, watched};
use std::time::Duration;

/// So long that nothing happens by it in a test.
const LONG: Duration = Duration::from_secs(600);

fn within_the_watchdog<R>(work: impl FnOnce() -> R) -> R {
    watched(HANG, || (), |()| "nothing happens".to_owned(), work)
}

/// A client that asks when it is told, and not from time to time.
fn open<R: Extent>(engine: impl Engine<Range = R> + Send) -> RangeLease<R> {
    let mut options = Options::default();
    options.poll = LONG;
    RangeLease::open_with(engine, options)
        .wait()
        .expect("it opens")
}
