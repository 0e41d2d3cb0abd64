//! Hardware counters of threads that work (P4's Figure 4.5): what the machine counts in user mode.
//!
//! Many machines have none to offer, guests above all. What cannot be counted is absent, with the reason: it is
//! neither zero nor an error.

use spanlock_records::trial::counters::{Count, Event};

/// Counters of the threads that the calling thread starts from now on, and of itself. They stand still at first.
pub struct Counters(Vec<(Event, Result<source::Counter, String>)>);

impl Counters {
    /// Counters of these events.
    #[must_use]
    pub fn open(events: &[Event]) -> Self {
        let open = |&event| (event, source::open(event));
        Self(events.iter().map(open).collect())
    }

    /// They count from now on.
    pub fn begin(&mut self) {
        for (_, counter) in &mut self.0 {
            let begun = counter.as_mut().map(source::begin);
            if let Ok(Err(why)) = begun {
                *counter = Err(why);
            }
        }
    }

    /// The counts.
    pub fn end(&mut self) -> Vec<Count> {
        let mut ended = std::mem::take(&mut self.0);
        // All are stopped before the first is read.
        for (_, counter) in &mut ended {
            let stopped = counter.as_mut().map(source::end);
            if let Ok(Err(why)) = stopped {
                *counter = Err(why);
            }
        }
        let count = |(event, counter): (Event, Result<_, _>)| Count {
            event,
            times: counter.and_then(source::read),
        };
        ended.into_iter().map(count).collect()
    }
}

#[cfg(target_os = "linux")]
mod source {
    use super::Event;
    use perf_event::Builder;
    use perf_event::events::{Cache, CacheOp, CacheResult, Hardware, Software, WhichCache};
    use std::io;

    pub(super) use perf_event::Counter;

    pub(super) fn open(event: Event) -> Result<Counter, String> {
        let builder = match event {
            Event::Cycles => Builder::new().kind(Hardware::CPU_CYCLES),
            Event::Instructions => Builder::new().kind(Hardware::INSTRUCTIONS),
            Event::L1dMisses => Builder::new().kind(Cache {
                which: WhichCache::L1D,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            }),
            Event::PageFaults => Builder::new().kind(Software::PAGE_FAULTS),
        };
        let mut builder = builder.observe_self();
        builder.inherit(true);
        builder.build().map_err(|error| why(&error))
    }

    pub(super) fn begin(counter: &mut Counter) -> Result<(), String> {
        counter.enable().map_err(|error| why(&error))
    }

    pub(super) fn end(counter: &mut Counter) -> Result<(), String> {
        counter.disable().map_err(|error| why(&error))
    }

    pub(super) fn read(mut counter: Counter) -> Result<f64, String> {
        let read = counter.read_count_and_time().map_err(|error| why(&error))?;
        if read.time_running == 0 {
            return Err("others had the machine's counter all the time".to_owned());
        }
        // Counters take turns when there are more of them than the machine has.
        Ok(read.count as f64 * (read.time_enabled as f64 / read.time_running as f64))
    }

    fn why(error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
                "this machine or its kernel has no such counter".to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "not permitted: see /proc/sys/kernel/perf_event_paranoid".to_owned()
            }
            _ => error.to_string(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod source {
    use super::Event;

    pub(super) enum Counter {}

    pub(super) fn open(_: Event) -> Result<Counter, String> {
        Err("counters are read on Linux only".to_owned())
    }

    pub(super) fn begin(counter: &mut Counter) -> Result<(), String> {
        match *counter {}
    }

    pub(super) fn end(counter: &mut Counter) -> Result<(), String> {
        match *counter {}
    }

    pub(super) fn read(counter: Counter) -> Result<f64, String> {
        match counter {}
    }
}
