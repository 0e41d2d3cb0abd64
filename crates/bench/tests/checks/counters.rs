//! Hardware counters, and how long a line takes from thread to thread.

use spanlock_bench::counters::Counters;
use spanlock_bench::rw::harm;
use spanlock_records::trial::counters::{Event, Rate};
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
        Err(why) => assert!(
            ["permitted", "Linux", "no such counter"]
                .iter()
                .any(|said| why.contains(said)),
            "{why}"
        ),
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
        // The counters of some virtual machines count nothing.
        assert!(rate.per_op.is_none_or(|times| times >= 0.0), "{rate:?}");
        assert!(rate.absent.is_none_or(|why| !why.is_empty()));
    }
}

/// It ends on one processor as well: then there is no result.
#[test]
fn a_handoff_takes_time() {
    if let Some(took) = harm::handoff() {
        assert!(took > 0.0 && took.is_finite(), "{took}");
    }
}
