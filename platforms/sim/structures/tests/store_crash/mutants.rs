//! Each named edge is needed: some crash test fails when it is weakened. `--nocapture` prints how.

#[path = "../../../../loom/structures/tests/store/edges.rs"]
mod edges;

use crate::common::{Model, Op};
use crate::concurrent::{self, Pages};
use crate::crash::explore::{Plan, explore};
use crate::crash::images::Crash;
use crate::crash::workloads;
use crate::directed;
use prim::{Machine, Setup, run};
use spanlock_testkit::mutation::parse;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// What finds a mutant.
#[derive(Debug, Clone, Copy)]
enum Hunt {
    /// A short sequence, and how it is crashed.
    Ops(Crash, &'static [Op]),
    /// One of the longer sequences.
    Long(Crash, usize),
    /// Concurrent writers, under the random schedules from this one on.
    Concurrent(u64),
    /// A slow writer beside a rewriting of the log.
    Slow,
    /// A slow writer beside a compaction of the log in a full store.
    Full,
}

use Crash::{Lines, Sectors};
use Hunt::{Concurrent, Full, Long, Ops, Slow};

const FOO: &str = "/foo";
const WRITE: Op = Op::Write(FOO, 0, 8192, 9);
const SHORT: Op = Op::Write(FOO, 0, 3000, 8);
const AGAIN: [Op; 4] = [WRITE, WRITE, WRITE, WRITE];

/// The edges, what finds each, and which fault of which file system it stands for.
const MUTANTS: &[(&str, Hunt, &str)] = &[
    (
        "as-published",
        Long(Lines, 6),
        "P3's scheme: marks of recycled log pages count",
    ),
    ("mark", Long(Sectors, 7), "H1"),
    ("size-max", Ops(Lines, &[WRITE, SHORT]), "H2; NOVA_BUG7"),
    ("round-pages", Concurrent(0), "H3"),
    ("link-first", Long(Lines, 0), "H4"),
    ("branch-first", Concurrent(2), "H4, of a group's log"),
    ("later", Concurrent(2), "a clock that stands still"),
    (
        "by-time",
        Concurrent(2),
        "logs of two groups, one after the other",
    ),
    ("free-after", Ops(Sectors, &AGAIN), "H5"),
    ("free-at-sync", Ops(Sectors, &AGAIN), "H5, page cache"),
    ("clean-waits", Slow, "H6"),
    ("compact-alone", Full, "H6, in a full store"),
    ("clean-sync", Long(Sectors, 0), "H6, page cache"),
    ("data-fence", Ops(Lines, &[WRITE]), "PMFS_BUG2, WINEFS_BUG2"),
    ("data-flush", Ops(Lines, &[WRITE]), "PMFS_BUG4"),
    (
        "data-checksum",
        Ops(Sectors, &[WRITE]),
        "unordered write-back",
    ),
    (
        "entry-flush",
        Ops(Lines, &[WRITE]),
        "NOVA_BUG2, of an entry",
    ),
    (
        "entry-fence",
        Ops(Lines, &[WRITE]),
        "missing fence before return",
    ),
    (
        "head-first",
        Ops(Lines, &[Op::Create("/bar"), Op::Write("/bar", 0, 10, 1)]),
        "NOVA_BUG2",
    ),
    ("head-halves", Long(Lines, 0), "in-place update of an inode"),
    ("tail-after", Ops(Lines, &[Op::Create("/bar")]), "NOVA_BUG3"),
    (
        "inode-generation",
        Ops(Lines, &[Op::Unlink(FOO), Op::Create("/bar")]),
        "a recycled inode",
    ),
    (
        "epoch-first",
        Ops(Lines, &[Op::Unlink(FOO), Op::Create("/bar")]),
        "a repeated generation",
    ),
    (
        "drop-for-good",
        Ops(Sectors, &[WRITE]),
        "recovery that forgets what it dropped",
    ),
    (
        "truncate-zaps",
        Ops(Lines, &[Op::Truncate(FOO, 0), Op::Truncate(FOO, 9000)]),
        "H2, truncation as a barrier",
    ),
    (
        "truncate-zeroes",
        Ops(Lines, &[Op::Truncate(FOO, 100), Op::Truncate(FOO, 9000)]),
        "stale bytes",
    ),
    (
        "rename-once",
        Ops(Lines, &[Op::Rename(FOO, "/bar")]),
        "NOVA_BUG4, NOVA_BUG5",
    ),
    (
        "tree-order",
        Ops(
            Sectors,
            &[Op::Mkdir("/A"), Op::Mkdir("/A/C"), Op::Mkdir("/B")],
        ),
        "lost order of directories",
    ),
];

/// Runs something with an edge weakened, or with all intact.
pub fn with_mutant(
    edge: Option<&str>,
    what: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let machine = Machine::find("small-1x2x1").expect("built in");
    let setup = Setup {
        mutant: edge.map(str::to_owned),
        ..Setup::new(machine)
    };
    match run(&setup, what) {
        Ok(ended) => ended.value,
        Err(failure) => Err(failure.to_string()),
    }
}

fn hunt(edge: Option<&'static str>, hunt: Hunt) -> Result<(), String> {
    match hunt {
        Ops(crash, ops) => with_mutant(edge, move || {
            let before = workloads::needs(&Model::default(), &WRITE);
            explore(&Plan::new(crash, 64, 1), &before, ops).map(drop)
        }),
        Long(crash, which) => with_mutant(edge, move || {
            let mut plan = Plan::new(crash, 6, 1);
            plan.apart = 5;
            let ops = workloads::long().swap_remove(which);
            explore(&plan, &[], &ops).map(drop)
        }),
        Concurrent(first) => concurrent::search::<Pages>(edge, first..first + 3000).map(drop),
        Slow => with_mutant(edge, directed::a_rewriting_meets_a_slow_writer),
        Full => with_mutant(edge, directed::a_compaction_meets_a_slow_writer),
    }
}

#[test]
fn every_mutant_is_killed() {
    let only = std::env::var("SPANLOCK_MUTANT").ok();
    let mut survivors = Vec::new();
    println!("| edge | fault | found by | seconds |");
    for &(edge, by, fault) in MUTANTS {
        if only.as_ref().is_some_and(|only| only != edge) {
            continue;
        }
        let begin = Instant::now();
        match hunt(Some(edge), by) {
            Ok(()) => survivors.push(edge),
            Err(trace) => {
                println!(
                    "| {edge} | {fault} | {by:?} | {:.1} |",
                    begin.elapsed().as_secs_f64()
                );
                let lines = if only.is_some() { usize::MAX } else { 1 };
                trace
                    .lines()
                    .take(lines)
                    .for_each(|line| println!("    {line}"));
            }
        }
    }
    assert!(survivors.is_empty(), "nothing fails without {survivors:?}");
}

/// The mutants are found because of what they weaken: without one, the same sequences pass.
#[test]
fn nothing_is_found_where_nothing_is_weakened() {
    for &(_, by, _) in MUTANTS
        .iter()
        .filter(|(_, by, _)| matches!(by, Ops(..) | Slow | Full))
    {
        if let Err(trace) = hunt(None, by) {
            panic!("{by:?}\n{trace}");
        }
    }
}

#[test]
fn every_named_edge_has_a_mutant_and_is_cited() {
    let sources = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../crates/structures/src/store"
    ));
    let named = spanlock_testkit::edges::named_in(sources).expect("the sources are there");
    let crashes = MUTANTS.iter().map(|(edge, ..)| *edge);
    // The others have theirs in `spanlock-structures-loom`.
    let models = [edges::ORDERINGS, edges::WAITS].map(parse).concat();
    let models = models.into_iter().map(|(edge, _)| edge);
    let edges: Vec<_> = crashes.chain(models).collect();
    let mutants: BTreeSet<_> = edges.iter().map(|&edge| edge.to_owned()).collect();
    assert_eq!(named, mutants);
    let citations = spanlock_testkit::edges::cited_in(sources).expect("the sources are there");
    assert_eq!(
        spanlock_testkit::edges::faults(&citations, &edges),
        Vec::<String>::new()
    );
}
