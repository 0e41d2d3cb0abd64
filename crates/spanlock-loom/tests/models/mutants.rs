//! Each named edge, weakened, must make a model fail.
//!
//! `cargo test -p spanlock-loom --test models mutants -- --nocapture` prints the table.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// An edge, and the model that fails without it.
const MUTANTS: &[(&str, &str)] = &[
    ("admit-reader", "segment::a_reader_and_a_writer"),
    ("admit-writer", "segment::two_writers_overlapping"),
    ("age", "segment::a_sleeping_writer_ages"),
    ("age", "segment::a_writer_that_gave_way_ages"),
    ("cut-off", "list::neighbours_are_unlinked_together"),
    ("demote", "list::fast_path_against_regular_path"),
    (
        "demote-acquire",
        "list::fast_nodes_come_and_go_under_a_walk",
    ),
    ("downgrade", "list::downgrade_lets_waiting_readers_in"),
    ("downgrade-wake", "list::downgrade_lets_waiting_readers_in"),
    ("fast-acquire", "list::fast_path_against_regular_path"),
    ("fast-publish", "list::fast_path_against_regular_path"),
    ("fast-release", "list::fast_path_against_regular_path"),
    ("fresh-node", "list::a_writer_starts_over_with_a_fresh_node"),
    (
        "gate",
        "segment::newcomers_give_way_to_a_writer_that_waited_too_long",
    ),
    (
        "holder-bypass",
        "segment::a_holder_does_not_give_way_to_who_waits_for_it",
    ),
    ("give-up-dispatch", "queue::giving_up_passes_the_turn_on"),
    ("grace", "reclaim::nodes_return_only_after_a_grace_period"),
    (
        "holder-bypass",
        "queue::a_holder_does_not_give_way_to_who_waits_for_it",
    ),
    ("holder-dispatch", "queue::a_holder_is_woken_past_a_claim"),
    ("inherit", "queue::sleepers_are_woken_one_after_another"),
    ("leave-reader", "segment::a_reader_and_a_writer"),
    ("leave-writer", "segment::two_writers_overlapping"),
    ("lost-race", "segment::writers_race_to_grow_the_tree"),
    (
        "last-link",
        "skip::the_last_link_is_removed_by_another_thread",
    ),
    (
        "mark-inherited",
        "segment::sleepers_are_woken_one_after_another",
    ),
    ("mark-sleeper", "segment::two_writers_overlapping"),
    (
        "newcomers",
        "reclaim::nodes_return_only_after_a_grace_period_in_the_exclusive_lock",
    ),
    (
        "no-fast-release",
        "queue::sleepers_are_woken_one_after_another",
    ),
    ("node-acquire", "segment::writers_race_to_grow_the_tree"),
    ("node-publish", "segment::writers_race_to_grow_the_tree"),
    ("node-winner", "segment::writers_race_to_grow_the_tree"),
    ("pin", "reclaim::nodes_return_only_after_a_grace_period"),
    ("publish", "list::figure_one_with_a_detour"),
    ("publish-acquire", "list::figure_one"),
    (
        "reader-handshake",
        "list::figure_one_with_a_lasting_separator",
    ),
    (
        "reader-validation",
        "list::figure_one_with_a_lasting_separator",
    ),
    ("reach", "skip::figure_one_with_a_waypoint_as_separator"),
    ("release", "list::two_writers_overlapping"),
    ("release-acquire", "list::two_writers_overlapping"),
    ("roll-back", "segment::a_sleeper_has_empty_hands"),
    ("rung-cut-off", "skip::searching_past_neighbours_that_leave"),
    ("rung-prepare", "skip::entering_behind_one_that_leaves"),
    ("rung-publish", "skip::entering_behind_one_that_leaves"),
    (
        "seal",
        "reclaim::nodes_return_only_after_a_grace_period_in_the_exclusive_lock",
    ),
    ("share", "segment::downgrade_lets_waiting_readers_in"),
    ("share-wake", "segment::downgrade_lets_waiting_readers_in"),
    (
        "sleep-dispatch",
        "queue::going_back_to_sleep_passes_the_turn_on",
    ),
    ("sleeper", "list::two_writers_overlapping"),
    ("unlink", "list::unlinked_by_one_who_goes_beyond"),
    ("unlink-acquire", "list::fast_path_against_regular_path"),
    ("unpin", "reclaim::nodes_return_only_after_a_grace_period"),
    ("wake", "list::two_writers_overlapping"),
    ("wake-sleeper", "segment::two_writers_overlapping"),
    ("withdraw", "queue::a_waiting_reader_blocks_nobody"),
    (
        "writer-handshake",
        "list::figure_one_with_a_lasting_separator",
    ),
    (
        "writer-validation",
        "list::figure_one_with_a_lasting_separator",
    ),
];

/// What loom and the library say of a broken execution.
const VERDICTS: &[(&str, &str)] = &[
    ("Causality violation", "race"),
    ("deadlock; threads", "deadlock"),
    ("exceeded maximum number of branches", "livelock"),
    (
        "waits for a range that the same thread holds",
        "waits for itself",
    ),
    ("was released twice", "released twice"),
    ("Leaked", "leak"),
    // Of loom's own table, by an atomic that lies in freed memory.
    ("index out of bounds", "use after free"),
];

/// A model that runs for so long does not end: a broken list may have no end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs one model in a process of its own, in which `edge` is weakened; its verdict if it fails.
fn run(model: &str, edge: &str) -> Option<&'static str> {
    let models = env::current_exe().unwrap();
    let mut child = Command::new(models)
        .args(["--exact", model, "--nocapture"])
        .env("SPANLOCK_MUTANT", edge)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).unwrap();
        text
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut text = reader.join().unwrap();
    out.read_to_string(&mut text).unwrap();
    assert!(text.contains("running 1 test"), "no model is named {model}");
    match status {
        None => Some("does not end"),
        Some(status) if status.success() => None,
        Some(_) => {
            let verdict = VERDICTS.iter().find(|(sign, _)| text.contains(sign));
            Some(verdict.map_or("broken otherwise", |(_, verdict)| verdict))
        }
    }
}

#[test]
fn every_mutant_is_killed() {
    if env::var_os("SPANLOCK_MUTANT").is_some() {
        return;
    }
    let mut survivors = Vec::new();
    for (edge, model) in MUTANTS {
        let killed = run(model, edge);
        println!("{edge:18} {:16} {model}", killed.unwrap_or("SURVIVES"));
        if killed.is_none() {
            survivors.push(edge);
        }
    }
    assert!(survivors.is_empty(), "not killed: {survivors:?}");
}

/// The models fail because of the mutants: a name that weakens nothing changes nothing.
#[test]
fn a_mutant_of_nothing_survives() {
    assert_eq!(run("list::two_writers_overlapping", "no such edge"), None);
}

#[test]
fn every_named_edge_has_a_mutant() {
    let mut named = BTreeSet::new();
    collect_edges(Path::new("../spanlock/src"), &mut named);
    let tested = MUTANTS.iter().map(|(edge, _)| edge.to_string()).collect();
    assert!(!named.is_empty());
    assert_eq!(named, tested);
}

/// Finds `intact!("…")` and `order!("…"` in source files.
fn collect_edges(folder: &Path, edges: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_edges(&path, edges);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for opening in ["intact!(", "order!("] {
            edges.extend(text.split(opening).skip(1).filter_map(|rest| {
                let name = rest.trim_start().strip_prefix('"')?;
                Some(name.split('"').next()?.to_owned())
            }));
        }
    }
}
