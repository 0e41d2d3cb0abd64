//! Runs models in processes in which one named edge is weakened.

use crate::{do_all, edges};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, thread};

/// An edge, and the model that fails without it.
pub type Mutant = (&'static str, &'static str);

/// Makes the tests of a table of mutants. A line of the table is a model, a colon, and the edges without each of which
/// the model fails.
#[macro_export]
macro_rules! mutants {
    (edges in $($sources:literal),+; harmless $harmless:literal; killed by $table:literal) => {
        #[test]
        fn mutants_are_killed() {
            $crate::mutation::kill_all(&$crate::mutation::parse($table));
        }

        /// The models fail because of the mutants: a name that weakens nothing changes nothing.
        #[test]
        fn a_mutant_of_nothing_survives() {
            $crate::mutation::survives_a_mutant_of_nothing($harmless);
        }

        #[test]
        fn every_named_edge_has_a_mutant() {
            $crate::mutation::covers(&[$($sources),+], &$crate::mutation::parse($table));
        }

        #[test]
        fn every_edge_is_cited_where_it_stands() {
            $crate::mutation::are_cited(&[$($sources),+], &$crate::mutation::parse($table));
        }
    };
}

/// The mutants of a table.
///
/// # Panics
/// When a line has no colon.
#[must_use]
pub fn parse(table: &'static str) -> Vec<Mutant> {
    let lines = table.lines().map(str::trim);
    let rows = lines.filter(|line| !line.is_empty()).map(|line| {
        let row = line.split_once(": ");
        row.unwrap_or_else(|| panic!("no model and edges: {line}"))
    });
    let mutants = rows.flat_map(|(model, edges)| edges.split(' ').map(move |edge| (edge, model)));
    mutants.collect()
}

/// What loom and the library say of a broken execution.
const VERDICTS: &[(&str, &str)] = &[
    ("Causality violation", "race"),
    ("deadlock; threads", "deadlock"),
    ("exceeded maximum number of branches", "livelock"),
    ("a reader overtook", "overtaken"),
    ("a reader is overtaken", "overtaken"),
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
    ("a block that nobody keeps", "use after free"),
    ("a block of another range", "wrong block"),
    ("under a lease that is lost", "late"),
    ("nobody gives it up", "a block is left"),
    ("Leaked", "leak"),
    ("Allocation leaked", "leak"),
    // Of loom's own table, by an atomic that lies in freed memory.
    ("index out of bounds", "use after free"),
];

/// A model that runs for so long does not end: a broken list may have no end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the test harness prints when a name selects one test.
const RUNS_ONE: &str = "running 1 test";

/// Runs one model in a process of its own, in which `edge` is weakened. Returns the verdict if the model fails, and
/// ends the process as soon as it reports a failure.
fn run(model: &str, edge: &str) -> Option<&'static str> {
    let models = env::current_exe().expect("a test has a file");
    let mut child = Command::new(models)
        .args(["--exact", model, "--nocapture"])
        .env("SPANLOCK_MUTANT", edge)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a test can be started");
    let verdict = await_verdict(&mut child);
    let mut text = String::new();
    let out = child
        .stdout
        .take()
        .map(|mut out| out.read_to_string(&mut text));
    out.expect("it is piped").expect("it is text");
    assert!(text.contains(RUNS_ONE), "no model is named {model}");
    verdict
}

/// The verdict on a process that runs a model. The process has ended afterwards.
fn await_verdict(child: &mut Child) -> Option<&'static str> {
    let (sender, lines) = mpsc::channel();
    let err = BufReader::new(child.stderr.take().expect("it is piped"));
    let reader = thread::spawn(move || {
        for line in err.lines().map_while(Result::ok) {
            // Nobody receives once the verdict is known.
            _ = sender.send(line);
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let verdict = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => {
                let verdict = VERDICTS.iter().find(|(sign, _)| line.contains(sign));
                if let Some((_, verdict)) = verdict {
                    break Some(*verdict);
                }
            }
            Err(RecvTimeoutError::Timeout) => break Some("does not end"),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if verdict.is_some() {
        child.kill().expect("it is ours");
    }
    let status = child.wait().expect("it is ours");
    reader.join().expect("reading does not panic");
    verdict.or_else(|| (!status.success()).then_some("broken otherwise"))
}

/// One mutant of so many is run, unless the tests [do all](do_all).
pub const SAMPLE: usize = 10;

/// Runs the models of the mutants, as many at a time as there are processors. Prints for each what became of it and how
/// long that took.
///
/// # Panics
/// When a mutant survives.
pub fn kill_all(mutants: &[Mutant]) {
    if env::var_os("SPANLOCK_MUTANT").is_some() {
        return;
    }
    let step = if do_all() { 1 } else { SAMPLE };
    let sample = mutants.iter().step_by(step);
    println!("{} of {} mutants", sample.len(), mutants.len());
    let next = Mutex::new(sample);
    let survivors = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some((edge, model)) = next.lock().expect("no panic while held").next() else {
                return;
            };
            let start = Instant::now();
            let killed = run(model, edge);
            let (verdict, took) = (killed.unwrap_or("SURVIVES"), start.elapsed());
            println!(
                "{edge:18} {verdict:16} {:6.1} s {model}",
                took.as_secs_f64()
            );
            if killed.is_none() {
                survivors.lock().expect("no panic while held").push(edge);
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(work))));
    let survivors = survivors.into_inner().expect("no panic while held");
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
    let named: BTreeSet<_> = gathered(sources, edges::named_in).collect();
    let tested = mutants.iter().map(|(edge, _)| (*edge).to_owned()).collect();
    assert!(!named.is_empty());
    assert_eq!(named, tested);
}

/// # Panics
/// When a comment in the sources of these folders cites an edge that has no mutant, or does not cite one that has.
pub fn are_cited(sources: &[&str], mutants: &[Mutant]) {
    let citations: Vec<_> = gathered(sources, edges::cited_in).collect();
    let edges: BTreeSet<_> = mutants.iter().map(|(edge, _)| *edge).collect();
    let faults = edges::faults(&citations, &Vec::from_iter(edges));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn gathered<C: IntoIterator>(
    sources: &[&str],
    gather: impl Fn(&Path) -> io::Result<C>,
) -> impl Iterator<Item = C::Item> {
    let each = sources.iter().map(move |folder| gather(Path::new(folder)));
    each.flat_map(|gathered| gathered.expect("the source is there"))
}
