//! Address spaces: values of records, the table, and claims about them.

use spanlock_judge::compare::{Claim, Dataset, claims};
use spanlock_judge::record::lock::Lock;
use spanlock_judge::record::provenance::Provenance;
use spanlock_judge::record::vm::{Name, Pace, Stat};
use spanlock_judge::record::{Panel, Record, VmStat};
use spanlock_judge::table::{self, Width};

fn panel(of: Option<VmStat>) -> Panel {
    let (traffic, pace) = (Name::new("wr"), Pace::Recorded);
    match of {
        Some(of) => Panel::VmStat { traffic, pace, of },
        None => Panel::Vm {
            traffic,
            pace,
            growths: 100,
        },
    }
}

fn run(lock: &str) -> Record {
    let stat = Stat {
        read_wait_ns: 5.0,
        write_wait_ns: 7.0,
        protects: 200,
        in_place: 198,
        whole: 2,
        ..Stat::default()
    };
    Record {
        ops_per_sec: Some(2e6),
        space: Some(stat),
        ..Record::new(panel(None), Lock::named(lock), 2, 1)
    }
}

#[test]
fn a_run_has_its_throughput_its_waits_and_its_speculations() {
    let data = Dataset::of([&run("ours")]);
    let value = |of| data.throughput(panel(of), "ours", 2).unwrap().median;
    assert_eq!(value(None), 2e6);
    let stats = VmStat::ALL.map(|of| value(Some(of)));
    assert_eq!(stats, [5.0, 7.0, 99.0]);
}

#[test]
fn the_table_has_waits_and_outcomes() {
    let provenance = Provenance {
        machine: "m".to_owned(),
        cores: 2,
        kernel: "k".to_owned(),
        commit: "c".to_owned(),
        command: "spanlock vm".to_owned(),
        time: None,
    };
    let table = table::vm(&[run("ours"), run("stock")], &provenance, Width::of(200));
    let is_row = |line: &&str| line.contains("ours") && line.contains("99.0");
    let row = table.lines().find(is_row);
    let row = row.unwrap_or_else(|| panic!("{table}"));
    let cells: Vec<_> = row
        .split(['│', '┆'])
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(
        cells,
        ["ours", "5.0", "7.0", "99.0", "0.0", "0.0", "1.0"],
        "{table}"
    );
}

#[test]
fn the_claims_on_metis_are_about_the_patterns_and_what_follows_from_them() {
    let metis = |claim: &&Claim| claim.source.starts_with("P1 §7.2");
    let all = claims().filter(metis).count();
    let about = |panel| {
        claims()
            .filter(metis)
            .filter(|claim| claim.place.has(panel))
            .count()
    };
    let stats: usize = VmStat::ALL
        .map(|of| about(panel(Some(of))))
        .into_iter()
        .sum();
    assert!(
        about(panel(None)) > 10 && stats >= 5,
        "{} and {stats} of {all}",
        about(panel(None))
    );
}
