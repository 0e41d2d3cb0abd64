//! What runs show: the text below tables.

use crate::compare::{self, Certainty, Dataset, Duel, KINDS, Outcome, Shares, workload};
use spanlock_records::record::{Kind, Record};
use spanlock_records::stats::distinct;
use std::fmt::Write;

/// What to use by these runs, of workloads that are judged.
pub(super) fn compared(records: &[Record], cores: usize) -> String {
    if is_judged(records) {
        let busy = Shares::of(records, cores).warning();
        concluded(&Dataset::of(records), busy)
    } else {
        "\n".to_owned()
    }
}

/// Whether the locks of these runs are judged below their table.
fn is_judged(records: &[Record]) -> bool {
    let is_judged = |run: &Record| [Kind::Ranges, Kind::Built].contains(&run.panel.kind());
    records.first().is_some_and(is_judged)
}

/// What to use by these runs, and how sure that is: the few lines that a person reads first. Of a machine that was busy
/// there is a warning.
#[must_use]
pub fn concluded(data: &Dataset, busy: Option<String>) -> String {
    let advice: String = KINDS
        .iter()
        .map(|kind| advice(kind, &data.duels(kind)))
        .collect();
    let mut text = match advice.as_str() {
        "" => String::new(),
        advice => {
            format!(
                "\nwhat to use, by these runs, each panel with each number of threads:\n{advice}"
            )
        }
    };
    let _ = writeln!(text, "how sure: {}", Certainty::of([data]));
    if let Some(busy) = busy {
        let _ = writeln!(text, "doubtful: {busy}");
    }
    text + "more: --format json has each run; spanlock report makes of its lines who leads by how much, and what \
             becomes \
            of the papers' claims\n\n"
}

/// For each workload, which lock these runs advise: the library's default, unless it was behind more often than ahead.
fn advice(kind: &compare::Kind, duels: &[Duel<'_>]) -> String {
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
        let (name, default, all) = (of, kind.choice, here.len());
        let (choice, worst) = match worst {
            Some(worst) if behind > ahead => (worst.best.0, format!(", most in {worst}")),
            Some(worst) => (default, format!(", most in {worst}")),
            None => (default, String::new()),
        };
        let _ = match ahead + behind {
            0 => writeln!(
                text,
                "  {name}: no difference is to be seen in any of {all}, so take what is the default"
            ),
            _ => writeln!(
                text,
                "  {name}: {choice}. Of {all}, {default} was ahead of all others in {ahead}, level in {level}, behind \
                 in {behind}{worst}"
            ),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Dataset, concluded};
    use crate::compare::tests::{arr, listed};
    use spanlock_records::record::Panel;

    fn full() -> Panel {
        arr("full", 80)
    }

    #[test]
    fn what_to_use_is_said_and_ties_are_no_loss() {
        let data = Dataset::of(&listed(
            full(),
            "slots 1 2e6, slots 2 1e6, slots 4 1e6, \
             kernel-rw 1 1e6, kernel-rw 2 4e6, kernel-rw 4 1.001e6",
        ));
        let text = concluded(&data, None);
        let advice = "  arr full: slots. Of 3, slots was ahead of all others in 1, level in 1, behind in 1, most in \
                      full range, 80 % reads, 2 threads, 0.25 of kernel-rw\n";
        assert!(text.contains(advice), "{text}");
        assert!(text.lines().count() <= 10, "{text}");
        let busy = concluded(&data, Some("a storm".to_owned()));
        assert!(busy.contains("\ndoubtful: a storm\n"), "{busy}");
    }

    #[test]
    fn nothing_is_advised_but_the_default_where_nothing_differs() {
        let level = Dataset::of(&listed(full(), "slots 1 1e6, kernel-rw 1 1.001e6"));
        let text = concluded(&level, None);
        let advice =
            "arr full: no difference is to be seen in any of 1, so take what is the default";
        assert!(text.contains(advice), "{text}");
    }

    #[test]
    fn a_default_that_loses_more_than_it_wins_is_not_advised_nor_one_that_met_nobody() {
        let lost = Dataset::of(&listed(full(), "slots 1 1e6, kernel-rw 1 2e6"));
        let text = concluded(&lost, None);
        assert!(
            text.contains("  arr full: kernel-rw. Of 1, slots"),
            "{text}"
        );
        let alone = Dataset::of(&listed(full(), "slots 1 1e6"));
        let text = concluded(&alone, None);
        assert!(!text.contains("what to use"), "{text}");
    }
}
