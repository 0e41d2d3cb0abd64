//! Crashes of the store on this machine's platform: single operations, pairs, and longer sequences.

use crate::common::{Model, Op};
use crate::crash::explore::{Counts, Plan, explore};
use crate::crash::images::Crash;
use crate::crash::{scale, workloads};
use spanlock_structures::store::Durability;
use std::time::Instant;

/// A sequence of operations, and those that make what its first one needs.
fn sequence(first: &Op, rest: &[Op]) -> (Vec<Op>, Vec<Op>) {
    let mut model = Model::default();
    let before = workloads::needs(&model, first);
    for op in &before {
        model.perform(op);
    }
    let mut ops = Vec::new();
    for op in [first].into_iter().chain(rest) {
        let needs = workloads::needs(&model, op);
        for op in needs.iter().chain([op]) {
            model.perform(op);
        }
        ops.extend(needs);
        ops.push(op.clone());
    }
    (before, ops)
}

/// Explores sequences and prints a row of the table:
/// `cargo test -p spanlock-structures --test store crashes -- --nocapture`.
fn table(name: &str, plan: &Plan, sequences: impl Iterator<Item = (Vec<Op>, Vec<Op>)>) {
    let begin = Instant::now();
    let (mut workloads, mut operations) = (0, 0);
    let mut all = Counts::default();
    for (before, ops) in sequences {
        match explore(plan, &before, &ops) {
            Ok(counts) => {
                workloads += 1;
                operations += ops.len();
                all.moments += counts.moments;
                all.images += counts.images;
                all.states += counts.states;
                all.second += counts.second;
            }
            Err(what) => panic!("{what}"),
        }
    }
    println!(
        "| {name}, {:?}, {:?} | {} | {} | {} | {} | {} | {} | {:.1} |",
        plan.crash,
        plan.durability,
        workloads,
        operations,
        all.moments,
        all.images,
        all.states,
        all.second,
        begin.elapsed().as_secs_f64()
    );
}

const CRASHES: [Crash; 3] = [Crash::Lines, Crash::Sectors, Crash::Kill];

#[test]
fn single_operations() {
    println!(
        "| sequences | workloads | operations | moments | images | distinct | recoveries crashed | seconds |"
    );
    for crash in CRASHES {
        let plan = Plan::new(crash, 4 + 4 * scale(), 1);
        table(
            "single",
            &plan,
            workloads::single().iter().map(|op| sequence(op, &[])),
        );
    }
    let durability = Durability::Sync;
    let plan = Plan {
        durability,
        ..Plan::new(Crash::Sectors, 4 + 4 * scale(), 2)
    };
    table(
        "single",
        &plan,
        workloads::single().iter().map(|op| sequence(op, &[])),
    );
}

#[test]
fn pairs_of_operations() {
    let ops = workloads::single();
    for crash in CRASHES {
        let plan = Plan::new(crash, 4, 3);
        let apart = (64 / scale()).max(1);
        let pairs = ops
            .iter()
            .flat_map(|first| ops.iter().map(move |second| (first, second)));
        let some = pairs.skip(crash as usize).step_by(apart);
        table(
            "pairs",
            &plan,
            some.map(|(first, second)| sequence(first, std::slice::from_ref(second))),
        );
    }
}

#[test]
fn longer_sequences() {
    for crash in CRASHES {
        let apart = (48 / scale()).max(1) | 1;
        let plan = Plan {
            apart,
            ..Plan::new(crash, 4, 4)
        };
        table(
            "longer",
            &plan,
            workloads::long().into_iter().map(|ops| (Vec::new(), ops)),
        );
    }
}

/// Files beside one that fills a store.
const OTHERS: [&str; 4] = ["/bar", "/A/foo", "/A/bar", "/B/foo"];

/// Stores that one file fills, to their last pages or nearly so. The logs of the others grow, and are compacted so that
/// their writes find room.
#[test]
fn full_stores() {
    // More pages than these have no room, and from 36 on logs have to be compacted.
    let stores = (34..=38).map(|pages| {
        let mut before = vec![Op::Mkdir("/A"), Op::Mkdir("/B"), Op::Create("/foo")];
        before.extend(OTHERS.map(Op::Create));
        before.push(Op::Write("/foo", 0, pages * 4096, 1));
        let writes = OTHERS.map(|path| (0..140).map(move |round| Op::Write(path, 0, 3000, round)));
        (before, writes.into_iter().flatten().collect())
    });
    let stores: Vec<_> = stores.collect();
    for crash in CRASHES {
        let apart = (96 / scale()).max(1) | 1;
        let plan = Plan {
            apart,
            ..Plan::new(crash, 4, 5)
        };
        table("full", &plan, stores.iter().cloned());
    }
}

/// A recovery of a nearly full store writes into pages that it has dropped, for lack of others. It may be crashed.
#[test]
fn recoveries_of_full_stores() {
    for (pages, rounds) in [(30, 30), (29, 35), (30, 140)] {
        let mut before = vec![Op::Mkdir("/A"), Op::Mkdir("/B"), Op::Create("/foo")];
        before.extend(OTHERS.map(Op::Create));
        let writes =
            OTHERS.map(|path| (0..rounds).map(move |round| Op::Write(path, 0, 3000, round)));
        before.extend(writes.into_iter().flatten());
        before.push(Op::Write("/foo", 0, pages * 4096, 1));
        let ops = OTHERS.into_iter().zip(30..).flat_map(|(path, tag)| {
            [
                Op::Write(path, 1000, 9000, tag),
                Op::Append("/foo", 100, tag),
            ]
        });
        let ops = ops.collect();
        table(
            "nearly full",
            &Plan::new(Crash::Sectors, 8, 5),
            std::iter::once((before, ops)),
        );
    }
}

/// A recovery that cuts a page of one file off may write the same bytes as another file's write, which it drops, into
/// the page of that write.
#[test]
fn recoveries_that_write_what_they_drop() {
    let before = vec![
        Op::Create("/foo"),
        Op::Create("/bar"),
        Op::Write("/foo", 0, 3000, 1),
        Op::Write("/bar", 0, 10, 2),
    ];
    let ops = vec![Op::Write("/bar", 0, 100, 1), Op::Truncate("/foo", 100)];
    for seed in 0..4 {
        let plan = Plan::new(Crash::Sectors, 64, seed);
        table(
            "equal",
            &plan,
            std::iter::once((before.clone(), ops.clone())),
        );
    }
}
