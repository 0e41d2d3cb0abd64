//! What reports of throughput have in common: panels, counters, who wins where, and what the papers say.

use super::panel::{Point, legend, panel};
use super::{Table, Width, measured, or_dash};
use crate::compare::{
    Field, Judgement, Kind, Open, Panel, claims, distinct, judge_and_say, plural, standings,
};
use crate::counters::{Event, Rate};
use crate::registry::{OURS, RIVALS, exclusion};
use crate::report::Line;
use crate::stats::{Order, Summary};
use std::fmt::Write;
use std::mem::discriminant;

/// A table for each panel, under a title; below them, what was counted.
pub(super) fn panels(field: &Field, width: Width, title: impl Fn(Panel) -> String) -> String {
    let mut text = String::new();
    for at in field.panels() {
        let points: Vec<_> = field
            .of_panel(at)
            .map(|run| Point {
                lock: &run.lock,
                exclusion: exclusion(&run.lock),
                column: run.threads,
                ops_per_sec: run.ops_per_sec.as_ref().copied().map_err(String::as_str),
            })
            .collect();
        let _ = writeln!(text, "{}\n{}", title(at), panel(&points, width));
    }
    text + &legend() + &counters(field, width)
}

/// What was counted per operation, if anything was to be; and below, why some was not.
fn counters(field: &Field, width: Width) -> String {
    let rates = || field.points().flat_map(|point| &point.counters);
    let has = |event: &Event| rates().any(|rate| rate.event == *event && rate.per_op.is_some());
    let events = distinct(rates().map(|rate| rate.event));
    let (present, absent): (Vec<_>, Vec<_>) = events.into_iter().partition(has);
    let mut text = String::new();
    if !present.is_empty() {
        let names = present.iter().map(|event| event.name());
        let header = ["panel", "threads", "lock"].into_iter().chain(names);
        let mut table = Table::new(3, header);
        for panel in field.panels() {
            for threads in field.threads(panel) {
                for lock in field.locks(panel) {
                    let cell = |&event: &Event| {
                        let runs = field.runs(panel, lock, threads);
                        let rates = runs.flat_map(|run| &run.counters);
                        let counted = rates.filter(|rate| rate.event == event);
                        let summary = Summary::of(counted.filter_map(|rate| rate.per_op));
                        or_dash(summary.map(|summary| measured(summary, 1.0, 1)))
                    };
                    let names = [panel.to_string(), threads.to_string(), lock.to_owned()];
                    table.add_row(names.into_iter().chain(present.iter().map(cell)));
                }
            }
        }
        let _ = write!(text, "\nper operation, in user mode\n{}", table.text(width));
    }
    for event in absent {
        let reason = |rate: &Rate| (rate.event == event).then(|| rate.absent.clone())?;
        let why = or_dash(rates().find_map(reason));
        let _ = writeln!(text, "no {}: {why}", event.name());
    }
    text
}

/// Who wins where, where we lose, and what the papers say: for people, and as lines of JSON.
#[must_use]
pub fn conclusions(field: &Field, cores: usize) -> (String, Vec<Line>) {
    (concluded(field, cores), conclusion_lines(field, cores))
}

/// The same, for people.
pub(super) fn concluded(field: &Field, cores: usize) -> String {
    let mut text =
        "\nwho wins where, the best of each family of locks (fractions of the leader):\n"
            .to_owned();
    for standing in standings(field) {
        let _ = writeln!(text, "  {standing}");
    }
    text += &below(field);
    let _ = writeln!(
        text,
        "what the papers say, by runs with a processor for each thread:"
    );
    text + &told(&judgements(field, cores), cores) + "\n"
}

/// A claim as it was judged, and what would have to be run if it cannot be told.
type Judged = (Judgement, Option<Open>);

/// Claims for people: what was decided one by one, and what cannot be told for one reason in a line for all.
fn told(judged: &[Judged], cores: usize) -> String {
    let open = || judged.iter().filter_map(|(_, open)| open.as_ref());
    let alike = |one: &Open| {
        let reason = discriminant(one);
        open().filter(move |other| discriminant(*other) == reason)
    };
    let is_folded = |one: &&Open| alike(one).count() > 1;
    let mut text = String::new();
    let alone = judged
        .iter()
        .filter(|(_, open)| open.as_ref().filter(is_folded).is_none());
    for (judgement, _) in alone {
        let _ = writeln!(text, "  {judgement}");
    }
    for reason in distinct(open().filter(is_folded).map(discriminant)) {
        let all: Vec<_> = open().filter(|one| discriminant(*one) == reason).collect();
        let (count, of) = (all.len(), common(&all, cores));
        let _ = writeln!(text, "  cannot tell: {count} claims, which are of {of}");
    }
    text
}

/// What several claims are of that cannot be told for one reason.
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

/// The same as lines of JSON.
#[must_use]
pub fn conclusion_lines(field: &Field, cores: usize) -> Vec<Line> {
    let standings = standings(field).into_iter().map(Line::Standing);
    let judgements = judgements(field, cores).into_iter();
    let claims = judgements.map(|(judgement, _)| Line::Claim(judgement));
    standings.chain(claims).collect()
}

/// Of the claims about workloads that were run.
fn judgements(field: &Field, cores: usize) -> Vec<Judged> {
    let kinds: Vec<Kind> = field.panels().into_iter().map(Panel::kind).collect();
    let was_run = |kind: Kind| kinds.contains(&kind);
    claims()
        .filter(|claim| claim.place.kind().is_some_and(was_run))
        .map(|claim| judge_and_say(claim, field, cores))
        .collect()
}

/// Where our lock does less than a rival, beyond the spreads.
fn below(field: &Field) -> String {
    let rivals = RIVALS.join(" or ");
    let mut all = 0;
    let mut text = String::new();
    for panel in field.panels() {
        for threads in field.threads(panel) {
            for rival in RIVALS {
                let of = |lock| field.throughput(panel, lock, threads);
                let Some((ours, theirs)) = of(OURS).zip(of(rival)) else {
                    continue;
                };
                all += 1;
                if ours.order(&theirs) == Order::Below {
                    let ratio = ours.median / theirs.median;
                    let _ = writeln!(
                        text,
                        "  {panel}, {}: {ratio:.2} of {rival}",
                        plural(threads)
                    );
                }
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
    use super::{Field, Width, concluded, conclusion_lines, panels};
    use crate::arr::Variant;
    use crate::compare::tests::{arr, field};
    use crate::compare::{Panel, Point};
    use crate::counters::{Event, Rate};
    use crate::report::Line;

    const FULL: Panel = arr(Variant::Full, 80);

    #[test]
    fn medians_decide_where_we_lose_and_ties_are_no_loss() {
        let field = field([
            (FULL, "list-rw", 1, 2e6),
            (FULL, "list-rw", 2, 1e6),
            (FULL, "list-rw", 4, 1e6),
            (FULL, "kernel-rw", 1, 1e6),
            (FULL, "kernel-rw", 2, 4e6),
            (FULL, "kernel-rw", 4, 1.001e6),
        ]);
        let text = concluded(&field, 4);
        assert!(text.contains("where list-rw is below"), "{text}");
        assert!(text.contains("2 threads: 0.25 of kernel-rw"), "{text}");
        assert!(
            !text.contains("of kernel-rw\n  full range, 80 % reads, 4"),
            "{text}"
        );
    }

    #[test]
    fn the_best_is_marked_and_null_is_not() {
        let field = field([
            (FULL, "list-rw", 1, 2e6),
            (FULL, "kernel-rw", 1, 1e6),
            (FULL, "null", 1, 9e6),
        ]);
        let text = panels(&field, Width::USUAL, |panel| panel.to_string());
        assert!(text.contains("2.000 ±1%*"), "{text}");
        assert!(text.contains("9.000 ±1% "), "{text}");
        assert!(concluded(&field, 4).contains("nowhere below kernel-rw or range-lock"));
    }

    #[test]
    fn claims_that_cannot_be_told_for_one_reason_are_a_line() {
        let two = [
            (FULL, "list-rw", 1, 2e6),
            (FULL, "list-rw", 2, 3e6),
            (FULL, "kernel-rw", 2, 1e6),
        ];
        let text = |cores| concluded(&field(two), cores);
        let folded = |text: &str, reason: &str| {
            let line = |line: &&str| line.contains("cannot tell: ") && line.contains(reason);
            text.lines().filter(line).count()
        };
        let on_two = text(2);
        let not_run = "claims, which are of what did not run: lustre-ex, ";
        assert_eq!(folded(&on_two, not_run), 1, "{on_two}");
        assert_eq!(
            folded(&on_two, ""),
            2,
            "the other needs 9 threads: {on_two}"
        );
        assert!(on_two.contains("  holds: on the full range, list-rw scales"));
        let on_one = text(1);
        let more = "claims, which are of more threads than there are processors here: 1";
        assert_eq!(folded(&on_one, more), 1, "{on_one}");
        let lines = conclusion_lines(&field(two), 2).into_iter();
        let claims = lines.filter(|line| matches!(line, Line::Claim(_)));
        assert!(claims.count() > 20, "as JSON each is a line");
    }

    #[test]
    fn a_single_run_has_no_spread() {
        let run = |lock: &str, ops_per_sec| Point {
            panel: FULL,
            lock: lock.to_owned(),
            threads: 1,
            ops_per_sec: Ok(ops_per_sec),
            counters: Vec::new(),
        };
        let field = Field::of_points([run("list-rw", 2e6), run("kernel-rw", 1e6)]);
        let text = panels(&field, Width::USUAL, |panel| panel.to_string()) + &concluded(&field, 1);
        assert!(
            text.contains("2.000*") && text.contains("leads, 2.000;"),
            "{text}"
        );
        assert!(!text.contains("0%"), "{text}");
    }

    #[test]
    fn claims_are_of_the_workload_that_ran() {
        let lines = |panel| {
            let lines = conclusion_lines(&field([(panel, "list-rw", 1, 2e6)]), 4).into_iter();
            let source = |line| match line {
                Line::Claim(judgement) => Some(judgement.source),
                _ => None,
            };
            lines.filter_map(source).collect::<Vec<_>>()
        };
        let (w1, arr) = (
            Panel::Batch {
                hold: 1,
                ranges: 64,
            },
            lines(FULL),
        );
        assert!(arr.iter().any(|source| source.starts_with("P1")));
        assert!(!arr.iter().any(|source| source.starts_with("P4")));
        assert!(lines(w1).iter().any(|source| source.starts_with("P4")));
    }

    #[test]
    fn counters_that_are_there_are_shown_and_others_said_to_be_absent() {
        let rate = |event, per_op: Result<f64, &str>| Rate {
            event,
            per_op: per_op.ok(),
            absent: per_op.err().map(str::to_owned),
        };
        let run = |counters| Point {
            panel: FULL,
            lock: "list-rw".to_owned(),
            threads: 2,
            ops_per_sec: Ok(1e6),
            counters,
        };
        let counted = [
            rate(Event::Cycles, Ok(123.4)),
            rate(Event::L1dMisses, Err("this machine has none")),
        ];
        let text = |counters: &[Rate]| {
            let field = Field::of_points([run(counters.to_vec()), run(counters.to_vec())]);
            panels(&field, Width::USUAL, |panel| panel.to_string())
        };
        let both = text(&counted);
        assert!(
            both.contains("123.4 ±0%") && both.contains("in user mode"),
            "{both}"
        );
        assert!(
            both.contains("no L1d misses: this machine has none\n"),
            "{both}"
        );
        let none = text(&counted[1..]);
        assert!(
            !none.contains("in user mode") && none.contains("no L1d misses"),
            "{none}"
        );
        assert!(!text(&[]).contains("misses"));
    }
}
