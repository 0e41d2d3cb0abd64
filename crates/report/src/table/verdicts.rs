//! The text below tables: the fastest locks, where ours is slower, and the papers' claims.

use crate::compare::{Dataset, OURS, Open, RIVALS, judged, standings};
use spanlock_records::record::finding::Judgement;
use spanlock_records::record::{Line, Panel, Record, plural};
use spanlock_records::stats::{Order, distinct};
use std::fmt::Write;
use std::mem::discriminant;

/// The fastest locks and the papers' claims, of workloads that the text below a table judges.
pub(super) fn compared(records: &[Record], cores: usize) -> String {
    if is_judged(records) {
        concluded(&Dataset::of(records), cores)
    } else {
        "\n".to_owned()
    }
}

/// Whether the locks of these runs are judged below their table, or by their lines of JSON.
fn is_judged(records: &[Record]) -> bool {
    let is_judged = |run: &Record| {
        use Panel::{Latency, Micro, Rw, Waiting};
        !matches!(run.panel, Latency { .. } | Micro | Rw(_) | Waiting { .. })
    };
    records.first().is_some_and(is_judged)
}

/// The fastest locks and the papers' claims, as lines of JSON.
#[must_use]
pub fn conclusions(records: &[Record], cores: usize) -> Vec<Line> {
    if !is_judged(records) {
        return Vec::new();
    }
    let data = &Dataset::of(records);
    let standings = standings(data).into_iter().map(Line::Standing);
    let judged = judged(data, cores).into_iter();
    let claims = judged.map(|(judgement, _)| Line::Claim(judgement));
    standings.chain(claims).collect()
}

/// The same for people, and where our lock is slower.
#[must_use]
pub fn concluded(data: &Dataset, cores: usize) -> String {
    let mut text =
        "\nwho wins where, the best of each family of locks (fractions of the leader):\n"
            .to_owned();
    for standing in standings(data) {
        let _ = writeln!(text, "  {standing}");
    }
    text += &below(data);
    let _ = writeln!(
        text,
        "what the papers say, by runs with a processor for each thread:"
    );
    text + &verdicts(&judged(data, cores), cores) + "\n"
}

/// Claims for people: a line for each that is decided, and a line for all that stay open for one reason.
fn verdicts(judged: &[(Judgement, Option<Open>)], cores: usize) -> String {
    let open = || judged.iter().filter_map(|(_, open)| open.as_ref());
    let alike = |one: &Open| {
        let reason = discriminant(one);
        let alike = open().filter(move |other| discriminant(*other) == reason);
        alike.collect::<Vec<_>>()
    };
    let is_folded = |one: &&Open| alike(one).len() > 1;
    let mut text = String::new();
    for (judgement, open) in judged {
        if open.as_ref().filter(is_folded).is_none() {
            let _ = writeln!(text, "  {judgement}");
        }
    }
    let mut folded: Vec<&Open> = Vec::new();
    for one in open().filter(is_folded) {
        if folded
            .iter()
            .all(|other| discriminant(*other) != discriminant(one))
        {
            folded.push(one);
            let (count, of) = (alike(one).len(), common(&alike(one), cores));
            let _ = writeln!(text, "  cannot tell: {count} claims about {of}");
        }
    }
    text
}

/// The runs that several claims lack, which stay open for one reason.
fn common(all: &[&Open], cores: usize) -> String {
    let missing = |open: &&Open| match open {
        Open::NotRun(locks) => locks.clone(),
        Open::Processors(_) | Open::Single => Vec::new(),
    };
    match all.first() {
        Some(Open::Processors(_)) => {
            format!("more threads than there are processors here: {cores}")
        }
        Some(Open::Single) => "single runs, and these have no spread: see --repeat".to_owned(),
        Some(Open::NotRun(_)) | None => {
            let mut what = distinct(all.iter().flat_map(missing));
            if all.iter().any(|open| missing(open).is_empty()) {
                what.push("other workloads or numbers of threads");
            }
            format!("what did not run: {}", what.join(", "))
        }
    }
}

/// The places where our lock is slower than a rival, beyond the spreads.
fn below(data: &Dataset) -> String {
    let rivals = RIVALS.join(" or ");
    let mut all = 0;
    let mut text = String::new();
    for (panel, threads) in data.cells() {
        for rival in RIVALS {
            let of = |lock| data.throughput(panel, lock, threads);
            let Some((ours, theirs)) = of(OURS).zip(of(rival)) else {
                continue;
            };
            all += 1;
            if ours.order(&theirs) == Order::Below {
                let ratio = ours.median / theirs.median;
                let threads = plural(threads);
                let _ = writeln!(text, "  {panel}, {threads}: {ratio:.2} of {rival}");
            }
        }
    }
    match (all, text.is_empty()) {
        (0, _) => format!("no run of {OURS} together with {rivals}: nothing to compare\n"),
        (_, true) => format!("{OURS} is nowhere below {rivals}\n"),
        (_, false) => format!("where {OURS} is below {rivals}:\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dataset, concluded, conclusions};
    use crate::compare::tests::{arr, dataset, listed, records};
    use spanlock_records::record::{Line, Panel};
    use spanlock_records::trial::arr::Variant;
    use spanlock_records::trial::batch::Load;

    const FULL: Panel = arr(Variant::Full, 80);

    #[test]
    fn medians_decide_where_we_lose_and_ties_are_no_loss() {
        let data = Dataset::of(&listed(
            FULL,
            "slots 1 2e6, slots 2 1e6, slots 4 1e6, \
             kernel-rw 1 1e6, kernel-rw 2 4e6, kernel-rw 4 1.001e6",
        ));
        let text = concluded(&data, 4);
        assert!(text.contains("where slots is below"), "{text}");
        assert!(text.contains("2 threads: 0.25 of kernel-rw"), "{text}");
        assert!(
            !text.contains("of kernel-rw\n  full range, 80 % reads, 4"),
            "{text}"
        );
    }

    #[test]
    fn claims_that_cannot_be_told_for_one_reason_are_a_line() {
        let two = [
            (FULL, "list-rw", 1, 2e6),
            (FULL, "list-rw", 2, 3e6),
            (FULL, "kernel-rw", 2, 1e6),
        ];
        let text = |cores| concluded(&dataset(two), cores);
        let folded = |text: &str, reason: &str| {
            let line = |line: &&str| line.contains("cannot tell: ") && line.contains(reason);
            text.lines().filter(line).count()
        };
        let on_two = text(2);
        let not_run = "claims about what did not run: lustre-ex, ";
        assert_eq!(folded(&on_two, not_run), 1, "{on_two}");
        assert_eq!(
            folded(&on_two, ""),
            2,
            "the other needs 9 threads: {on_two}"
        );
        assert!(on_two.contains("  holds: on the full range, list-rw scales"));
        let on_one = text(1);
        let more = "claims about more threads than there are processors here: 1";
        assert_eq!(folded(&on_one, more), 1, "{on_one}");
        let lines = conclusions(&records(two), 2).into_iter();
        let claims = lines.filter(|line| matches!(line, Line::Claim(_)));
        assert!(claims.count() > 20, "as JSON each is a line");
    }

    #[test]
    fn claims_are_of_the_workload_that_ran() {
        let lines = |panel| {
            let lines = conclusions(&records([(panel, "list-rw", 1, 2e6)]), 4).into_iter();
            let source = |line| match line {
                Line::Claim(judgement) => Some(judgement.source),
                _ => None,
            };
            lines.filter_map(source).collect::<Vec<_>>()
        };
        let (w1, arr) = (
            Panel::Batch(Load {
                hold: 1,
                ranges: 64,
            }),
            lines(FULL),
        );
        assert!(arr.iter().any(|source| source.starts_with("P1")));
        assert!(!arr.iter().any(|source| source.starts_with("P4")));
        assert!(lines(w1).iter().any(|source| source.starts_with("P4")));
    }
}
