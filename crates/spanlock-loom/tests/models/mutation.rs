//! Runs models in processes in which one named edge is weakened.

#[path = "edges.rs"]
mod edges;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

/// An edge, and the model that fails without it.
pub type Mutant = (&'static str, &'static str);

/// What loom and the library say of a broken execution.
const VERDICTS: &[(&str, &str)] = &[
    ("Causality violation", "race"),
    ("deadlock; threads", "deadlock"),
    ("exceeded maximum number of branches", "livelock"),
    ("a reader overtook", "overtaken"),
    ("nobody holds it", "refused"),
    ("starts over without end", "livelock"),
    (
        "waits for a range that the same thread holds",
        "waits for itself",
    ),
    ("was released twice", "released twice"),
    ("nobody reads", "a hold is lost"),
    ("nobody is there", "a hold is left"),
    ("neither sees the other", "unfenced"),
    ("Leaked", "leak"),
    ("Allocation leaked", "leak"),
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

/// Prints the table of mutants and what became of each.
///
/// # Panics
/// When one survives.
pub fn kill_all(mutants: &[Mutant]) {
    if env::var_os("SPANLOCK_MUTANT").is_some() {
        return;
    }
    let mut survivors = Vec::new();
    for (edge, model) in mutants {
        let killed = run(model, edge);
        println!("{edge:18} {:16} {model}", killed.unwrap_or("SURVIVES"));
        if killed.is_none() {
            survivors.push(edge);
        }
    }
    assert!(survivors.is_empty(), "not killed: {survivors:?}");
}

/// # Panics
/// When the model fails although nothing is weakened.
pub fn survives_a_mutant_of_nothing(model: &str) {
    assert_eq!(run(model, "no such edge"), None);
}

/// # Panics
/// When an edge named in the sources of these folders has no mutant, or a mutant no edge.
pub fn covers(sources: &[&str], mutants: &[Mutant]) {
    let named = sources.iter().map(Path::new).map(edges::named_in);
    let named: BTreeSet<_> = named.flat_map(Result::unwrap).collect();
    let tested = mutants.iter().map(|(edge, _)| (*edge).to_owned()).collect();
    assert!(!named.is_empty());
    assert_eq!(named, tested);
}
