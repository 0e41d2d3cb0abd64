//! The meter of a run on hardware: processor time, and counters.

use crate::counters::Counters;
use crate::processor;
use spanlock_records::trial::counters::Event;
use spanlock_records::trial::run::Metered;
use spanlock_workbench::crew;
use std::time::Duration;

/// Must be made just before the threads that it meters.
pub(crate) struct Meter {
    counters: Counters,
    begun: Option<Duration>,
}

impl Meter {
    /// Counts those events.
    pub(crate) fn of(events: &[Event]) -> Self {
        Self {
            counters: Counters::open(events),
            begun: None,
        }
    }
}

impl crew::Meter for Meter {
    fn begin(&mut self) {
        self.counters.begin();
        self.begun = processor::time_of_process();
    }

    fn end(&mut self) -> Metered {
        let ended = processor::time_of_process();
        let processor = self.begun.zip(ended);
        Metered {
            processor: processor.map(|(begun, ended)| ended.saturating_sub(begun)),
            counts: self.counters.end(),
        }
    }
}
