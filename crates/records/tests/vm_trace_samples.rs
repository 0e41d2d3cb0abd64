//! The recorded traces, and the pattern of Metis: what they must be for a replay to make sense.

use spanlock_records::vm_trace::metis::{MAX_THREADS, Program};
use spanlock_records::vm_trace::model::Model;
use spanlock_records::vm_trace::order::{Wait, Waits, waits};
use spanlock_records::vm_trace::samples::ALL;
use spanlock_records::vm_trace::trace::{Call, Event, Trace};

fn each(mut check: impl FnMut(&str, &Trace)) {
    for sample in ALL {
        let trace = sample
            .read()
            .unwrap_or_else(|error| panic!("{}: {error}", sample.name));
        check(sample.name, &trace);
    }
    for (program, threads) in Program::ALL.into_iter().zip([1, 3, 8]) {
        check(
            &format!("{program} at {threads}"),
            &program.trace(threads, 100),
        );
    }
}

#[test]
fn events_lead_to_the_areas_that_the_kernel_reported() {
    each(|name, trace| {
        let mut model = Model::new(trace);
        for event in &trace.events {
            model
                .apply(&event.call)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(model.areas() == trace.after, "{name}");
        let calls = trace.events.len() - trace.faults();
        assert!(calls > 50 && trace.faults() > 50, "{name}: {calls} calls");
    });
}

#[test]
fn the_recorded_traces_are_what_their_names_say() {
    let threads = |name: &str| {
        let sample = ALL.iter().find(|sample| sample.name == name).unwrap();
        sample.read().unwrap().threads()
    };
    for program in Program::ALL {
        for count in [2, 4, 16] {
            assert_eq!(threads(&format!("{program}-{count}")), count);
        }
    }
    assert!(
        ["java", "node", "go", "rustc"]
            .into_iter()
            .all(|name| threads(name) > 4)
    );
}

/// Threads that go on in any order, as long as they wait for what they must, lead to the same areas.
#[test]
fn any_order_that_waits_allow_leads_to_the_same_areas() {
    each(|name, trace| {
        let waits = waits(trace);
        for seed in 0..3 {
            let model = shuffled(trace, Some(&waits), seed)
                .unwrap_or_else(|why| panic!("{name}, seed {seed}: {why}"));
            assert!(model.areas() == trace.after, "{name}, seed {seed}");
        }
    });
}

#[test]
fn without_waits_some_order_is_impossible() {
    let trace = ALL
        .iter()
        .find(|sample| sample.name == "wr-16")
        .unwrap()
        .read()
        .unwrap();
    let wrong =
        |seed| shuffled(&trace, None, seed).map_or(true, |model| model.areas() != trace.after);
    assert!((0..20).any(wrong));
}

/// Lets random threads take turns, for a random number of events each.
fn shuffled(trace: &Trace, waits: Option<&Waits>, seed: u64) -> Result<Model, String> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut own = vec![Vec::new(); trace.threads()];
    for (number, event) in trace.events.iter().enumerate() {
        own[event.thread].push(number);
    }
    let mut over = vec![0; own.len()];
    let mut model = Model::new(trace);
    let mut left = trace.events.len();
    while left > 0 {
        let ready = |thread: usize, over: &[usize]| {
            let next = own[thread].get(over[thread]);
            next.filter(|next| {
                let waits = waits.map_or(&[][..], |waits| waits.of(**next));
                waits.iter().all(|wait| over[wait.thread] >= wait.events)
            })
        };
        let ready_threads: Vec<_> = (0..own.len())
            .filter(|thread| ready(*thread, &over).is_some())
            .collect();
        let thread = *rng.choice(&ready_threads).ok_or("all threads wait")?;
        for _ in 0..rng.usize(1..400) {
            let Some(&next) = ready(thread, &over) else {
                break;
            };
            let call = trace.events[next].call;
            model.apply(&call).map_err(|error| error.to_string())?;
            over[thread] += 1;
            left -= 1;
        }
    }
    Ok(model)
}

#[test]
fn the_pattern_scales() {
    for threads in [1, 2, 144] {
        let trace = Program::Wc.trace(threads, 1440);
        assert_eq!(trace.threads(), threads);
        let growths = trace
            .events
            .iter()
            .filter(|event| matches!(event.call, Call::Protect { pages: 1, .. }));
        assert_eq!(growths.count(), 1440);
    }
    assert!(Program::Wr.trace(2, 3).events.len() < Program::Wr.trace(2, 5).events.len());
    assert_eq!(Program::Wc.trace(MAX_THREADS, 1).threads(), MAX_THREADS);
}

#[test]
fn threads_take_turns_at_the_end_of_the_heap() {
    let event = |thread, end| Event {
        thread,
        think: 0,
        call: Call::Break { end },
    };
    let events = vec![event(0, 2), event(1, 3)];
    let trace = Trace {
        heap: 1,
        events,
        ..Trace::default()
    };
    assert_eq!(
        waits(&trace).of(1),
        [Wait {
            thread: 0,
            events: 1
        }]
    );
}
