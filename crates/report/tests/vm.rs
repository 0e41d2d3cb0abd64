//! Address spaces: values of records, the table, and claims about them.

use spanlock_records::record::lock::Lock;
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Kind, Panel, Record, VmStat};
use spanlock_records::trial::vm::{Mode, Name, Speculations, Stat, TreeWaits, Waits};
use spanlock_report::compare::{Claim, Dataset, claims};
use spanlock_report::table::{self, Width};

fn panel(of: Option<VmStat>) -> Panel {
    let settings = serde_json::json!({ "traffic": "wr", "pace": "recorded", "growths": 100 });
    let panel = Panel::new("vm", Kind::Built, "pattern of wr", &settings);
    of.map_or(panel, |of| of.of(panel))
}

fn run(lock: &str) -> Record {
    let waits = |operation, mode, acquired, waited| Waits {
        operation: Name::new(operation),
        mode,
        acquired,
        waited,
        ns: acquired * 6,
        longest_ns: 2500,
    };
    let stat = Stat {
        protects: 200,
        speculations: Speculations {
            in_place: 198,
            whole_for_range: 2,
            ..Speculations::default()
        },
        tree: (lock == "tree-full").then_some(TreeWaits {
            requests: 100,
            tree_ns: 300,
            range_ns: 900,
        }),
        waits: vec![
            waits("fault", Mode::Shared, 100, 50),
            waits("mmap", Mode::Exclusive, 10, 0),
            waits("mprotect", Mode::Exclusive, 200, 3),
        ],
    };
    Record {
        ops_per_sec: Some(2e6),
        space: Some(stat),
        ..Record::new(panel(None), Lock::named(lock), 2, 1)
    }
}

#[test]
fn a_run_has_its_throughput_its_waits_and_its_speculations() {
    let data = Dataset::of([&run("ours"), &run("tree-full")]);
    let value = |lock, of| Some(data.throughput(panel(of), lock, 2)?.median);
    assert_eq!(value("ours", None), Some(2e6));
    let stats = |lock| VmStat::ALL.map(|of| value(lock, Some(of)));
    let [reads, writes, speculated, of_a_tree @ ..] = stats("ours");
    assert_eq!([reads, writes, speculated], [6.0, 6.0, 99.0].map(Some));
    assert_eq!(of_a_tree, [None; 3]);
    assert_eq!(stats("tree-full")[3..], [3.0, 25.0, 75.0].map(Some));
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
    let table = table::runs(
        &[run("ours"), run("stock")],
        "",
        &provenance,
        Width::of(200),
    );
    let rows = |words: &[&str]| {
        let lines = table.lines().map(|line| {
            let cells = line.split(['│', '┆']).map(str::trim);
            cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
        });
        let rows: Vec<_> = lines.filter(|cells| cells.starts_with(words)).collect();
        rows
    };
    assert!(
        rows(&["ours"]).contains(&vec![
            "ours", "6.0", "6.0", "99.0", "0.0", "0.0", "0.0", "0.0", "1.0", "0.0"
        ]),
        "{table}"
    );
    assert_eq!(
        rows(&["ours", "mprotect"]),
        [["ours", "mprotect", "exclusive", "200", "1.5", "6", "2.5"]],
        "{table}"
    );
    assert!(
        rows(&["ours", "mmap"]).is_empty(),
        "it never waited: {table}"
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
