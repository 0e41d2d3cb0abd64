//! Hardware counters of threads that work (P4's Figure 4.5): what the machine counts in user mode.
//!
//! Many machines have none to offer, guests above all. What cannot be counted is absent, with the reason: it is
//! neither zero nor an error.

pub use spanlock_trial::counters::{Count, Event, Rate};

/// Counters of the threads that the calling thread starts from now on, and of itself. They stand still at first.
pub(crate) struct Counters(Vec<(Event, Result<source::Counter, String>)>);

impl Counters {
    pub(crate) fn open(events: &[Event]) -> Self {
        let open = |&event| (event, source::open(event));
        Self(events.iter().map(open).collect())
    }

    /// They count from now on.
    pub(crate) fn begin(&mut self) {
        for (_, counter) in &mut self.0 {
            let begun = counter.as_mut().map(source::begin);
            if let Ok(Err(why)) = begun {
                *counter = Err(why);
            }
        }
    }

    /// The counts.
    pub(crate) fn end(&mut self) -> Vec<Count> {
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

#[cfg(test)]
mod tests {
    use super::{Counters, Event, Rate};
    use std::hint::black_box;

    const PAGES: usize = 200;

    fn touch_pages() {
        // Large enough that the allocator asks the system for fresh pages each time.
        let mut bytes = vec![0_u8; PAGES * 65_536];
        bytes.iter_mut().step_by(65_536).for_each(|byte| *byte = 1);
        black_box(&bytes);
    }

    #[test]
    fn what_threads_do_is_counted_while_it_is_asked_for() {
        let mut counters = Counters::open(&[Event::PageFaults]);
        std::thread::spawn(touch_pages).join().unwrap(); // before it begins
        counters.begin();
        std::thread::scope(|scope| {
            scope.spawn(touch_pages);
            scope.spawn(touch_pages);
        });
        let counts = counters.end();
        let [count] = &counts[..] else {
            panic!("{counts:?}")
        };
        match &count.times {
            // A huge page may have served many of them.
            Ok(times) => assert!((1.0..10_000.0).contains(times), "{times}"),
            Err(why) => assert!(why.contains("permitted") || why.contains("Linux"), "{why}"),
        }
    }

    #[test]
    fn each_hardware_counter_is_there_or_says_why_not() {
        let mut counters = Counters::open(Event::HARDWARE);
        counters.begin();
        touch_pages();
        let counts = counters.end();
        assert_eq!(counts.len(), 3);
        for count in &counts {
            let rate = Rate::of(count, 1);
            assert_ne!(rate.per_op.is_some(), rate.absent.is_some(), "{rate:?}");
            assert!(rate.per_op.is_none_or(|times| times > 0.0), "{rate:?}");
            assert!(rate.absent.is_none_or(|why| !why.is_empty()));
        }
    }
}
