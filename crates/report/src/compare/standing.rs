//! The best of each family of locks, panel by panel.

use super::{Contest, Dataset};
use spanlock_records::record::finding::{Placed, Standing};
use spanlock_records::record::{Kind, Panel};
use spanlock_records::stats::distinct;

/// The standings of all panels in which more is better.
#[must_use]
pub fn standings(data: &Dataset) -> Vec<Standing> {
    let is_throughput = |panel: Panel| panel.kind() != Kind::Others;
    data.contests(is_throughput)
        .map(|one| standing(&one))
        .collect()
}

fn standing(contest: &Contest<'_>) -> Standing {
    let locks = || contest.ranked.iter();
    let families = distinct(locks().map(|(lock, _)| lock.family.as_str()));
    let best = families.into_iter().filter_map(|family| {
        let (lock, summary) = locks().find(|(lock, _)| lock.family == family)?;
        let lag = contest.lag(summary)?;
        Some(Placed {
            family: family.to_owned(),
            lock: lock.name.clone(),
            ops_per_sec: summary.median,
            spread: summary.spread,
            repeats: summary.count,
            of_leader: lag.of_leader,
            behind: lag.behind,
        })
    });
    Standing {
        panel: contest.panel.to_string(),
        threads: contest.threads,
        place: None,
        families: best.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::standings;
    use crate::compare::Dataset;
    use crate::compare::tests::{arr, listed, make_family};

    #[test]
    fn families_are_placed_by_their_best_and_ties_are_told_apart() {
        let at = arr("full", 80);
        let mut data = Dataset::of(&listed(
            at,
            "kernel-rw 2 1.00e6, list-rw-of-a-kind 2 2.5e6, lustre-ex 2 1.50e6, list-ex 2 1.0e6, \
             list-rw 2 2.99e6, song:h=2 2 3.00e6, song 2 2.9e6, null 2 9e6",
        ));
        for (family, locks) in [
            (
                "list",
                ["list-rw", "list-ex", "list-rw-of-a-kind"].as_slice(),
            ),
            ("interval tree", &["kernel-rw", "lustre-ex"]),
            ("skip list", &["song", "song:h=2"]),
        ] {
            make_family(&mut data, family, locks);
        }
        let all = standings(&data);
        let [standing] = &all[..] else {
            panic!("{all:?}")
        };
        let places: Vec<_> = standing
            .families
            .iter()
            .map(|placed| (placed.lock.as_str(), placed.behind))
            .collect();
        let expected = [("song:h=2", false), ("list-rw", false), ("lustre-ex", true)];
        assert_eq!(places, expected);
    }

    #[test]
    fn where_nobody_completed_an_operation_all_are_level() {
        let at = arr("full", 80);
        let mut data = Dataset::of(&listed(at, "list-rw 2 0.0, kernel-rw 2 0.0"));
        make_family(&mut data, "list", &["list-rw"]);
        make_family(&mut data, "interval tree", &["kernel-rw"]);
        let all = standings(&data);
        let places = all[0].families.iter();
        let places: Vec<_> = places
            .map(|placed| (placed.of_leader, placed.behind))
            .collect();
        assert_eq!(places, [(1.0, false), (1.0, false)]);
    }
}
