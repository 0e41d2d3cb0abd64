//! As `clock`, in the time of tokio, which a test lets run.

use std::cell::Cell;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// A moment, as the time since the simulation began.
pub(crate) type Moment = Duration;

thread_local! {
    static BEGINNING: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// It is the first moment.
pub(crate) fn begin() {
    BEGINNING.set(Some(Instant::now()));
}

fn beginning() -> Instant {
    BEGINNING.get().expect("it has begun")
}

/// The moment that it is.
pub(crate) fn now() -> Moment {
    beginning().elapsed()
}

/// Ends futures at moments.
pub(crate) struct Alarms;

impl Alarms {
    #[expect(clippy::unnecessary_wraps, reason = "the real one may fail")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Ends at the moment, or up to a millisecond after it.
    pub(crate) async fn until(&self, moment: Moment) {
        // A wait of the largest duration is one for news alone.
        match beginning().checked_add(moment) {
            Some(moment) => sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    /// It does not end.
    pub(crate) async fn run(&self) {
        std::future::pending().await
    }
}
