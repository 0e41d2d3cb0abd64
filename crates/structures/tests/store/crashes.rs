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
