//! The lines, the page that is made of them, and what a reader finds there.

use machines::Machine;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use simplecss::{AttributeOperator, Element, PseudoClass, Selector};
use spanlock_report::page::findings::Findings;
use spanlock_report::page::input::Input;
use spanlock_report::page::render::html;

pub fn meta(command: &str, cores: usize) -> Value {
    json!({"workload": "meta", "machine": "Some <Processor>", "cores": cores, "kernel": "linux 1", "commit": "c0ffee",
        "command": command})
}

pub fn arr(lock: &str, threads: usize, repeat: u32, ops_per_sec: f64) -> Value {
    json!({"workload": "arr", "of": "ranges", "panel": "full range, 100 % reads", "variant": "full", "reads": 100,
        "threads": threads, "lock": lock, "ops_per_sec": ops_per_sec, "repeat": repeat, "seed": 1,
        "seconds": 0.05, "min_ops_per_thread": 1,
        "max_ops_per_thread": 2, "cpu_seconds": null, "lost_updates": 0})
}

pub fn simulated(lock: &str, threads: usize, seed: u32, ops_per_sec: f64) -> Value {
    json!({"workload": "arr", "of": "ranges", "panel": "full range, 100 % reads", "variant": "full", "reads": 100,
        "threads": threads, "lock": lock, "ops_per_sec": ops_per_sec, "min_ops_per_thread": 1, "max_ops_per_thread": 2,
        "seed": seed, "seconds": 0.001,
        "simulated": {"machine": "small-1x2x1", "placement": "unpinned", "operations": 9}})
}

pub fn alternator(lock: &str, threads: usize, repeat: u32, ops_per_sec: f64) -> Value {
    json!({"workload": "alternator", "of": "whole", "panel": "alternator", "lock": lock, "threads": threads,
        "repeat": repeat, "seed": 1, "seconds": 0.1, "ops_per_sec": ops_per_sec, "reads_per_sec": ops_per_sec,
        "writes_per_sec": 0.0,
        "min_ops_per_thread": 1, "max_ops_per_thread": 2, "cpu_seconds": null, "lost_updates": 0, "torn_reads": 0})
}

pub fn latency(lock: &str, longest: u64) -> Value {
    let times = json!({"p50": 20, "p90": 30, "p99": 40, "p999": 50, "max": longest});
    json!({"workload": "latency", "of": "others", "panel": "one part of 9", "parts": 9, "lock": lock, "threads": 1,
        "seed": 1, "first_count": 9, "first_ns": times, "again_count": 9, "again_ns": times})
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

/// The page, which is well-formed: a browser has nothing to guess.
pub fn page(input: &Input) -> Document<'static> {
    let text = html(input, &Findings::of(input)).leak();
    let allow_dtd = true; // its first line
    let options = ParsingOptions {
        allow_dtd,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).unwrap()
}

pub fn all<'a>(page: &'a Document<'_>, selector: &str) -> Vec<Node<'a, 'a>> {
    within(page.root(), selector)
}

/// Those elements of a node.
pub fn within<'a>(node: Node<'a, 'a>, selector: &str) -> Vec<Node<'a, 'a>> {
    let selector = Selector::parse(selector).unwrap();
    let elements = node
        .descendants()
        .filter(|one| *one != node && one.is_element());
    elements
        .filter(|one| selector.matches(&Styled(*one)))
        .collect()
}

/// An element, as selectors see it.
struct Styled<'a>(Node<'a, 'a>);

impl Element for Styled<'_> {
    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Self)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Self)
    }

    fn has_local_name(&self, name: &str) -> bool {
        self.0.tag_name().name() == name
    }

    fn attribute_matches(&self, name: &str, operator: AttributeOperator<'_>) -> bool {
        self.0
            .attribute(name)
            .is_some_and(|value| operator.matches(value))
    }

    fn pseudo_class_matches(&self, _: PseudoClass<'_>) -> bool {
        false
    }
}

pub fn words(element: Node<'_, '_>) -> String {
    let texts = element.descendants().filter(Node::is_text);
    texts.filter_map(|text| text.text()).collect()
}

#[track_caller]
pub fn has(page: &Document<'_>, selector: &str, wanted: &str) {
    let found: Vec<_> = all(page, selector).into_iter().map(words).collect();
    let is_there = found.iter().any(|text| text.contains(wanted));
    assert!(is_there, "no {wanted:?} in {selector}: {found:#?}");
}
