//! The papers' claims are about panels that there are.

use spanlock_bench::workload::WORKLOADS;
use spanlock_records::record::{Kind, Panel, Phase, VmStat};
use spanlock_records::trial::argument::{Argument, combined};
use spanlock_report::compare::{Place, claims, figures};

/// The panels of all workloads, with what is usual and what claims are about besides.
fn panels() -> Vec<Panel> {
    let values = |argument: &Argument| {
        let words = match argument.name {
            "reads" => "100,90,80,60",
            "traffic" => "wc,wr,wrmem",
            _ => argument.usual[0],
        };
        let values = words.split(',').map(|word| argument.parse(word).unwrap());
        (argument.name, values.collect())
    };
    let of = |settings| move |of: &(&'static str, Kind)| Panel::new(of.0, of.1, "", &settings);
    let panels = WORKLOADS.iter().flat_map(|row| {
        let all = row.arguments.iter().map(values).collect::<Vec<_>>();
        let settings = combined(&all).into_iter();
        settings.map(move |settings| of(settings)(&(row.name, row.kind)))
    });
    let mut panels: Vec<_> = panels.collect();
    let spaces = panels.iter().filter(|panel| panel.workload() == "vm");
    let stats = spaces.flat_map(|panel| VmStat::ALL.map(|stat| stat.of(*panel)));
    let stats: Vec<_> = stats.collect();
    panels.extend(stats);
    panels.extend([Phase::First, Phase::Again].map(Phase::longest));
    panels
}

#[test]
fn every_place_has_a_panel() {
    let panels = panels();
    let drawn = figures().flat_map(|figure| &figure.places);
    let claimed = claims().map(|claim| &claim.place);
    let places = drawn
        .chain(claimed)
        .filter(|place| **place != Place::default());
    for place in places {
        let found = panels.iter().filter(|panel| place.has(**panel)).count();
        assert!(found > 0 && found < panels.len(), "{place:?}: {found}");
    }
}
