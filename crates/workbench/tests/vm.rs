//! Replays: the recorded traces lead to the areas that the kernel reported, whatever the lock, and with any threads.

use spanlock::range::list::ListRw;
use spanlock_records::trial::run::{Found, Outcome, Schedule, Trial};
use spanlock_records::trial::vm::{Mode, Name};
use spanlock_records::vm_trace::Trace;
use spanlock_records::vm_trace::metis::Program;
use spanlock_records::vm_trace::samples::ALL;
use spanlock_records::vm_trace::trace::Call;
use spanlock_records::vm_trace::traffic::keep;
use spanlock_workbench::vm::replay::{Families, Replay};
use spanlock_workbench::vm::variants::Variant;
use spanlock_workbench::vm::{Load, Pace, run};
use structures::vm::{AddressSpace, PageTable, Refinement};

const OURS: Variant = Variant {
    name: "ours",
    about: "the default",
    refinement: Refinement::REFINED,
};
const P1: Variant = Variant {
    name: "p1",
    about: "as in P1",
    refinement: Refinement::P1,
};

fn replayed(traffic: &str, variant: Variant, threads: usize) -> Outcome {
    let load = Load {
        traffic: Name::new(traffic),
        pace: Pace::FlatOut,
        growths: 200,
    };
    let trial = Trial::new(Schedule::NONE, 1).with(load, threads);
    run(ListRw::new, variant, &trial, &mut (), &|_| ())
}

fn samples() -> impl Iterator<Item = (&'static str, Trace)> {
    ALL.iter()
        .map(|sample| (sample.name, sample.read().unwrap()))
}

#[test]
fn every_recorded_trace_leads_to_the_recorded_areas() {
    for (name, trace) in samples() {
        let replay = Replay::begin(
            &trace,
            AddressSpace::builder(),
            ListRw::new(),
            PageTable::new(),
        );
        for (number, event) in trace.events.iter().enumerate() {
            let result = replay.apply(&event.call);
            assert_eq!(result, Ok(()), "{name}: event {number}, {:x?}", event.call);
        }
        assert_eq!(replay.difference(Families::Compared), None, "{name}");
    }
}

#[test]
fn so_it_does_with_threads_side_by_side() {
    for (name, trace) in samples() {
        let threads = trace.threads().min(8);
        let traffic = keep(name, trace);
        for variant in [OURS, P1] {
            let outcome = replayed(&traffic, variant, threads);
            assert!(
                outcome.found.is_nothing(),
                "{name}, {}: {}",
                variant.name,
                outcome.found
            );
        }
    }
}

#[test]
fn a_difference_is_found() {
    let mut trace = ALL[0].read().unwrap();
    let cut = trace
        .events
        .iter()
        .rposition(|event| matches!(event.call, Call::Protect { .. }));
    trace.events.remove(cut.unwrap());
    let outcome = replayed(&keep("cut", trace), OURS, 1);
    assert!(matches!(outcome.found, Found::Space { differs: true, .. }));
    assert!(outcome.found.lost() > 0);
}

#[test]
fn patterns_run_and_their_speculations_are_counted() {
    for program in Program::ALL {
        let outcome = replayed(program.name(), OURS, 2);
        assert!(outcome.found.is_nothing(), "{program}: {}", outcome.found);
        let stat = outcome.vm.unwrap();
        assert!(
            stat.protects > 200 && stat.speculations.in_place >= 200,
            "{program}: {stat:?}"
        );
        let acquired = |operation, mode| {
            let mut waits = stat.waits.iter();
            let of = (Name::new(operation), mode);
            let waits = waits.find(|waits| (waits.operation, waits.mode) == of);
            waits.map_or(0, |waits| waits.acquired)
        };
        assert!(acquired("fault", Mode::Shared) > 200, "{program}: {stat:?}");
        assert!(
            acquired("mprotect", Mode::Exclusive) > 200,
            "{program}: {stat:?}"
        );
    }
}
