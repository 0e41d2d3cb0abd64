//! The text below tables: the fastest locks, where ours is slower, and the papers' claims.

use crate::compare::{
    Certainty, Dataset, Duel, KINDS, Kind, Open, Outcome, Shares, judged, standings, workload,
};
use spanlock_records::record::finding::Judgement;
use spanlock_records::record::{Line, Panel, Record};
use spanlock_records::stats::distinct;
use std::fmt::Write;
use std::mem::discriminant;

/// The fastest locks and the papers' claims, of workloads that the text below a table judges.
pub(super) fn compared(records: &[Record], cores: usize) -> String {
    if is_judged(records) {
        let busy = Shares::of(records, cores).warning();
        concluded(&Dataset::of(records), busy, cores)
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

/// The same for people; then what to use, and how sure that is. Of a machine that was busy there is a warning.
#[must_use]
pub fn concluded(data: &Dataset, busy: Option<String>, cores: usize) -> String {
    let mut text =
        "\nwho wins where, the best of each family of locks (fractions of the leader):\n"
            .to_owned();
    for standing in standings(data) {
        let _ = writeln!(text, "  {standing}");
    }
    let _ = writeln!(
        text,
        "what the papers say, by runs with a processor for each thread:"
    );
    text += &verdicts(&judged(data, cores), cores);
    for kind in &KINDS {
        text += &advice(kind, &data.duels(kind));
    }
    let _ = writeln!(text, "how sure: {}", Certainty::of([data]));
    if let Some(busy) = busy {
        let _ = writeln!(text, "doubtful: {busy}");
    }
    text + "\n"
}

/// For each workload, which lock these runs advise: the library's default, unless it was behind more often than ahead.
fn advice(kind: &Kind, duels: &[Duel<'_>]) -> String {
    let mut text = String::new();
    for of in distinct(duels.iter().map(|duel| workload(duel.contest.panel))) {
        let here = duels
            .iter()
            .filter(|duel| workload(duel.contest.panel) == of);
        let here: Vec<_> = here.collect();
        let Outcome {
            ahead,
            level,
            behind,
            worst,
        } = Outcome::of(&here);
        let choice = match worst {
            Some(worst) if behind > ahead => worst.best.0,
            _ => kind.choice,
        };
        let worst = worst.map(|worst| format!(", most in {worst}"));
        let _ = writeln!(
            text,
            "  {}: {choice}. Of {}, {} was ahead of all others in {ahead}, level in {level}, behind in {behind}{}",
            of.1,
            here.len(),
            kind.choice,
            worst.unwrap_or_default()
        );
    }
    match text.is_empty() {
        true => text,
        false => {
            format!("what to use, by these runs, each panel with each number of threads:\n{text}")
        }
    }
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

#[cfg(test)]
mod tests {
    use super::{Dataset, concluded, conclusions};
    use crate::compare::tests::{arr, dataset, listed, records};
    use spanlock_records::record::{Line, Panel};
    use spanlock_records::trial::arr::Variant;
    use spanlock_records::trial::batch::Load;

    const FULL: Panel = arr(Variant::Full, 80);

    #[test]
    fn what_to_use_is_said_last_and_ties_are_no_loss() {
        let data = Dataset::of(&listed(
            FULL,
            "slots 1 2e6, slots 2 1e6, slots 4 1e6, \
             kernel-rw 1 1e6, kernel-rw 2 4e6, kernel-rw 4 1.001e6",
        ));
        let text = concluded(&data, None, 4);
        let advice = "  whole array: slots. Of 3, slots was ahead of all others in 1, level in 1, behind in 1, most in \
                      full range, 80 % reads, 2 threads, 0.25 of kernel-rw\n";
        assert!(text.contains(advice), "{text}");
        assert!(text.ends_with("of single runs\n\n"), "{text}");
        let busy = concluded(&data, Some("a storm".to_owned()), 4);
        assert!(busy.ends_with("doubtful: a storm\n\n"), "{busy}");
    }

    #[test]
    fn a_default_that_loses_more_than_it_wins_is_not_advised_nor_one_that_met_nobody() {
        let lost = Dataset::of(&listed(FULL, "slots 1 1e6, kernel-rw 1 2e6"));
        let text = concluded(&lost, None, 4);
        assert!(
            text.contains("  whole array: kernel-rw. Of 1, slots"),
            "{text}"
        );
        let alone = Dataset::of(&listed(FULL, "slots 1 1e6"));
        let text = concluded(&alone, None, 4);
        assert!(!text.contains("what to use"), "{text}");
    }

    #[test]
    fn claims_that_cannot_be_told_for_one_reason_are_a_line() {
        let two = [
            (FULL, "list-rw", 1, 2e6),
            (FULL, "list-rw", 2, 3e6),
            (FULL, "kernel-rw", 2, 1e6),
        ];
        let text = |cores| concluded(&dataset(two), None, cores);
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
