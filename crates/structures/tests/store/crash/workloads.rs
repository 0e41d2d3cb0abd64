//! Operations for crashes: 56 single ones, all 3136 pairs of them, and a few longer sequences. As CrashMonkey's
//! generator ACE does, files and directories that an operation needs are made before it.

use crate::common::{Model, Op};

const FILES: [&str; 4] = ["/foo", "/bar", "/A/foo", "/A/bar"];

/// All single operations.
pub fn single() -> Vec<Op> {
    let mut ops = Vec::new();
    ops.extend(FILES.map(Op::Create));
    ops.push(Op::Create("/B/foo"));
    ops.extend(["/A", "/B", "/A/C"].map(Op::Mkdir));
    for path in ["/foo", "/A/foo"] {
        ops.push(Op::Append(path, 5000, 11));
        ops.extend([0, 100, 4096, 9000].map(|size| Op::Truncate(path, size)));
    }
    for path in ["/foo", "/A/foo", "/bar"] {
        // Over the beginning, over the end, within a page, a page, two pages, and behind a hole.
        let writes = [
            (0, 3000),
            (2500, 5000),
            (1000, 77),
            (4096, 4096),
            (0, 8192),
            (20_000, 4096),
        ];
        ops.extend(writes.map(|(at, length)| Op::Write(path, at, length, 22)));
    }
    let pairs = [
        ("/foo", "/bar"),
        ("/foo", "/A/bar"),
        ("/A/foo", "/bar"),
        ("/A/foo", "/A/bar"),
    ];
    ops.extend(pairs.map(|(path, new)| Op::Link(path, new)));
    ops.extend(FILES.map(Op::Unlink));
    ops.extend(["/A", "/B", "/A/C"].map(Op::Rmdir));
    ops.extend(pairs.map(|(path, new)| Op::Rename(path, new)));
    let others = [
        ("/bar", "/foo"),
        ("/A", "/B"),
        ("/B", "/A"),
        ("/A/C", "/B/C"),
    ];
    ops.extend(others.map(|(path, new)| Op::Rename(path, new)));
    ops.push(Op::Sync);
    ops
}

/// Sequences that reach what short ones do not: second log pages, rewritten logs, recycled pages and inodes.
pub fn long() -> Vec<Vec<Op>> {
    // The first page alone from some round on. Of the other pages a recycled log page may then have earlier entries
    // than the rewritten log has.
    let rewrite = |syncs: usize, alone: usize| -> Vec<Op> {
        let mut ops = vec![Op::Create("/foo")];
        let rounds = if alone < 280 { alone + 210 } else { alone };
        for round in 0..rounds {
            let page = if round < alone { round as u64 % 5 } else { 0 };
            ops.push(Op::Write("/foo", page * 4096, 4096, round as u8));
            if round % syncs == syncs - 1 {
                ops.push(Op::Sync);
            }
        }
        ops
    };
    let names = (0..70).flat_map(|_| [Op::Rename("/foo", "/bar"), Op::Rename("/bar", "/foo")]);
    let names: Vec<_> = [Op::Create("/foo")].into_iter().chain(names).collect();
    let inodes = (0..4).flat_map(|round| {
        [
            Op::Create("/foo"),
            Op::Write("/foo", 0, 5000, round),
            Op::Sync,
            Op::Unlink("/foo"),
            Op::Sync,
            Op::Create("/bar"),
            Op::Unlink("/bar"),
        ]
    });
    // Entries without pages: freed log pages become log pages again. More than a log page between two syncs.
    let sizes = (0..360).flat_map(|round| {
        let sync = (round % 90 == 89).then_some(Op::Sync);
        [Op::Truncate("/foo", 5000 + round)].into_iter().chain(sync)
    });
    let sizes = [Op::Create("/foo")].into_iter().chain(sizes).collect();
    // The page of a truncation is replaced, freed by a sync, and used for something else.
    let cuts = (0..8).flat_map(|round| {
        [
            Op::Write("/foo", 0, 12_000, round),
            Op::Truncate("/foo", 100),
            Op::Write("/foo", 50, 100, round + 1),
            Op::Sync,
            Op::Write("/bar", 0, 12_000, round + 2),
            Op::Write("/bar", 0, 12_000, round + 3),
        ]
    });
    let cuts = [Op::Create("/foo"), Op::Create("/bar")]
        .into_iter()
        .chain(cuts)
        .collect();
    // The number of a file with many entries, and then the pages of its log, become those of a file with few.
    let recycled = (0..4).flat_map(|round| {
        let many = (0..18).map(move |write| Op::Write("/foo", 4096 * write % 5, 20_000, round));
        let gone = [Op::Sync, Op::Unlink("/foo"), Op::Sync, Op::Create("/bar")];
        let few = (0..6).map(move |_| Op::Write("/bar", 0, 100, round));
        let first = [Op::Create("/foo")].into_iter().chain(many).chain(gone);
        first
            .chain(few)
            .chain([Op::Sync, Op::Unlink("/bar"), Op::Sync])
    });
    let recycled = recycled.collect();
    vec![
        rewrite(1000, 280),
        rewrite(20, 280),
        names,
        inodes.collect(),
        sizes,
        cuts,
        rewrite(1000, 150),
        recycled,
    ]
}

/// The operations that make what the next one needs, if it is not there.
pub fn needs(model: &Model, op: &Op) -> Vec<Op> {
    let above = |path: &'static str| match path.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => vec![Op::Mkdir(parent)],
        _ => Vec::new(),
    };
    let file = |path| {
        [
            above(path),
            vec![Op::Create(path), Op::Write(path, 0, 6000, 5)],
        ]
        .concat()
    };
    let directory = |path| [above(path), vec![Op::Mkdir(path)]].concat();
    let wanted = match *op {
        Op::Create(path) | Op::Mkdir(path) => above(path),
        Op::Write(path, ..) | Op::Append(path, ..) | Op::Truncate(path, _) | Op::Unlink(path) => {
            file(path)
        }
        Op::Rmdir(path) => directory(path),
        Op::Link(path, new) => [file(path), above(new)].concat(),
        Op::Rename(path @ ("/A" | "/B" | "/A/C"), new) => [directory(path), above(new)].concat(),
        Op::Rename(path, new) => [file(path), above(new)].concat(),
        Op::Sync => Vec::new(),
    };
    let mut model = model.clone();
    let mut made = false;
    let mut needs = Vec::new();
    for op in wanted {
        // The text of a file goes into a file that has just been made.
        let fills = matches!(op, Op::Write(..));
        if (!fills || made) && model.perform(&op) {
            made = matches!(op, Op::Create(_));
            needs.push(op);
        }
    }
    needs
}

#[test]
fn there_are_as_many_as_in_ace() {
    assert_eq!(single().len(), 56);
}
