//! The lines, the page that is made of them, and what a reader finds there.

use prim_sim::Machine;
use scraper::{ElementRef, Html, Selector};
use serde_json::{Value, json};
use spanlock_report::page::findings::Findings;
use spanlock_report::page::input::Input;
use spanlock_report::page::render::html;

pub fn meta(command: &str, cores: usize) -> Value {
    json!({"workload": "meta", "machine": "Some <Processor>", "cores": cores, "kernel": "linux 1", "commit": "c0ffee",
        "command": command})
}

pub fn arr(lock: &str, threads: usize, repeat: u32, ops_per_sec: f64) -> Value {
    json!({"workload": "arr", "variant": "full", "reads": 100, "threads": threads, "lock": lock,
        "ops_per_sec": ops_per_sec, "repeat": repeat, "seed": 1, "seconds": 0.05, "min_ops_per_thread": 1,
        "max_ops_per_thread": 2, "cpu_seconds": null, "lost_updates": 0})
}

pub fn simulated(lock: &str, threads: usize, seed: u32, ops_per_sec: f64) -> Value {
    json!({"workload": "sim-arr", "variant": "full", "reads": 100, "threads": threads, "lock": lock,
        "ops_per_sec": ops_per_sec, "min_ops_per_thread": 1, "max_ops_per_thread": 2, "machine": "small-1x2x1",
        "placement": "unpinned", "seed": seed, "seconds": 0.001, "simulated": 9})
}

pub fn alternator(lock: &str, threads: usize, repeat: u32, ops_per_sec: f64) -> Value {
    json!({"workload": "rw", "load": "alternator", "lock": lock, "threads": threads, "repeat": repeat, "seed": 1,
        "seconds": 0.1, "ops_per_sec": ops_per_sec, "reads_per_sec": ops_per_sec, "writes_per_sec": 0.0,
        "min_ops_per_thread": 1, "max_ops_per_thread": 2, "cpu_seconds": null, "lost_updates": 0, "torn_reads": 0})
}

pub fn latency(lock: &str, longest: u64) -> Value {
    let times = json!({"p50": 20, "p90": 30, "p99": 40, "p999": 50, "max": longest});
    json!({"workload": "latency", "lock": lock, "threads": 1, "parts": 9, "rounds": 1, "seed": 1, "first_count": 9,
        "first_ns": times, "again_count": 9, "again_ns": times})
}

pub fn text(lines: impl IntoIterator<Item = Value>) -> String {
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// Locks in the order of their throughput. The simulated ones do twice as much, and lustre-ex scales only there.
pub const LOCKS: [(&str, f64); 5] = [
    ("slots", 5e6),
    ("list-rw", 4e6),
    ("list-ex", 3e6),
    ("kernel-rw", 2e6),
    ("lustre-ex", 1e6),
];

pub fn input() -> Input {
    let twice = || [0, 1];
    let real = LOCKS.iter().flat_map(|&(lock, ops)| {
        twice().map(|repeat| [1, 2].map(|threads| arr(lock, threads, repeat, ops)))
    });
    let rings = twice().into_iter().flat_map(|repeat| {
        let bravo = alternator("bravo-pf-q", 2, repeat, 3e6);
        [alternator("pf-q", 2, repeat, 1e6), bravo]
    });
    let machine = serde_json::to_value(Machine::find("small-1x2x1").unwrap()).unwrap();
    let mut machine = machine.as_object().unwrap().clone();
    machine.insert("workload".to_owned(), "sim-machine".into());
    let virtual_ = LOCKS.iter().flat_map(|&(lock, ops)| {
        twice().map(|seed| {
            let scales = if lock == "lustre-ex" { 1.9 } else { 1.0 };
            let two = simulated(lock, 2, seed, 2.0 * scales * ops);
            [simulated(lock, 1, seed, 2.0 * ops), two]
        })
    });
    let mut input = Input::default();
    let measured = std::iter::once(meta("spanlock bench arr & co", 2))
        .chain(real.flatten())
        .chain([latency("srl-array", 900), latency("kernel-rw", 5000)])
        .chain(rings);
    input.add("real.jsonl", &text(measured)).unwrap();
    let begin = [meta("spanlock sim arr", 2), machine.into()];
    let lines = begin.into_iter().chain(virtual_.flatten());
    input.add("simulated.jsonl", &text(lines)).unwrap();
    input
}

pub fn page(input: &Input) -> Html {
    let page = Html::parse_document(&html(input, &Findings::of(input)));
    assert_eq!(page.errors, [] as [&str; 0]);
    page
}

pub fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

pub fn words(element: ElementRef<'_>) -> String {
    element.text().collect()
}

#[track_caller]
pub fn has(page: &Html, selector: &str, wanted: &str) {
    let found: Vec<_> = all(page, selector).into_iter().map(words).collect();
    let is_there = found.iter().any(|text| text.contains(wanted));
    assert!(is_there, "no {wanted:?} in {selector}: {found:#?}");
}
