use super::{Verdict, judge};
use crate::compare::Dataset;
use crate::compare::claims::{Claim, Place, Quorum, Relation};
use crate::compare::tests::{arr, dataset, record};
use spanlock_records::record::{Kind, Panel};

fn place(text: &str) -> Place {
    serde_json::from_str(text).unwrap()
}

/// A claim that a is above b.
fn claim() -> Claim {
    Claim {
        source: "P0 §0",
        says: "a is above b",
        place: place(r#"{ "workload": "arr", "variant": "full", "reads": [60, 100] }"#),
        threads: (1, 4),
        relation: Relation::Above,
        locks: vec!["a"],
        than: vec!["b"],
        bound: 1.0,
        from: 0,
        quorum: Quorum::All,
    }
}

fn full() -> Panel {
    arr("full", 80)
}

/// Locks `a` and `b` by one, two and four threads.
fn runs(a: [f64; 3], b: [f64; 3]) -> Dataset {
    let of = |lock, ops: [f64; 3]| {
        [1, 2, 4]
            .into_iter()
            .zip(ops)
            .map(move |(threads, ops)| (full(), lock, threads, ops))
    };
    dataset(of("a", a).chain(of("b", b)))
}

#[track_caller]
fn verdict(claim: &Claim, data: &Dataset, cores: usize, because: &str) -> Verdict {
    let judgement = judge(claim, data, cores);
    assert!(judgement.because.contains(because), "{judgement:?}");
    judgement.verdict
}

#[test]
fn all_most_or_some_places_decide_and_ties_do_not() {
    let with = |quorum| Claim { quorum, ..claim() };
    let wins = runs([3.0; 3], [1.0, 2.0, 2.9]);
    let mixed = runs([3.0; 3], [1.0, 2.0, 4.0]);
    let ties = runs([3.0; 3], [1.0, 2.99, 3.0]);
    let loses = runs([1.0; 3], [2.0; 3]);
    for (quorum, expected) in [
        (
            Quorum::All,
            [
                Verdict::Holds,
                Verdict::Fails,
                Verdict::CannotTell,
                Verdict::Fails,
            ],
        ),
        (
            Quorum::Most,
            [
                Verdict::Holds,
                Verdict::Holds,
                Verdict::CannotTell,
                Verdict::Fails,
            ],
        ),
        (
            Quorum::Some,
            [
                Verdict::Holds,
                Verdict::Holds,
                Verdict::Holds,
                Verdict::Fails,
            ],
        ),
    ] {
        let found =
            [&wins, &mixed, &ties, &loses].map(|data| verdict(&with(quorum), data, 4, "wanted"));
        assert_eq!(found, expected, "{quorum:?}");
    }
}

#[test]
fn only_threads_with_a_processor_each_count() {
    let mixed = runs([3.0; 3], [1.0, 2.0, 4.0]);
    assert_eq!(verdict(&claim(), &mixed, 2, "2 of 2 so"), Verdict::Holds);
    let beyond = Claim {
        threads: (9, 40),
        ..claim()
    };
    assert_eq!(
        verdict(&beyond, &mixed, 8, "9 threads or more"),
        Verdict::CannotTell
    );
}

#[test]
fn locks_that_did_not_run_leave_open_what_they_could_change() {
    let with = |quorum| Claim {
        than: vec!["b", "c"],
        quorum,
        ..claim()
    };
    let (wins, loses) = (runs([3.0; 3], [1.0; 3]), runs([1.0; 3], [3.0; 3]));
    for (quorum, [if_wins, if_loses]) in [
        (Quorum::All, [Verdict::CannotTell, Verdict::Fails]),
        (Quorum::Most, [Verdict::CannotTell, Verdict::CannotTell]),
        (Quorum::Some, [Verdict::Holds, Verdict::CannotTell]),
    ] {
        let found = [&wins, &loses].map(|data| judge(&with(quorum), data, 4));
        assert_eq!(found[0].verdict, if_wins, "{quorum:?} {:?}", found[0]);
        assert_eq!(found[1].verdict, if_loses, "{quorum:?} {:?}", found[1]);
        let open = found
            .iter()
            .filter(|one| one.verdict == Verdict::CannotTell);
        assert!(
            open.into_iter()
                .all(|one| one.because.ends_with("not run: c"))
        );
    }
}

#[test]
fn shares_of_reads_are_compared_in_both_directions() {
    let claim = Claim {
        relation: Relation::LikeReads,
        than: Vec::new(),
        bound: 1.5,
        from: 60,
        ..claim()
    };
    for (ops, expected) in [
        (1.2, Verdict::Holds),
        (1.6, Verdict::Fails),
        (0.6, Verdict::Fails),
    ] {
        let other = arr("full", 60);
        let data = dataset([(full(), "a", 1, ops), (other, "a", 1, 1.0)]);
        assert_eq!(verdict(&claim, &data, 4, "of"), expected, "{ops}");
    }
}

#[test]
fn threads_beside_those_counted_need_processors_too() {
    let panel = Panel::new("test_rwlock", Kind::Whole, "one writer", &()).beside(1);
    let claim = Claim {
        place: place(r#"{ "workload": "test_rwlock" }"#),
        ..claim()
    };
    let data = dataset([(panel, "a", 2, 2.0), (panel, "b", 2, 1.0)]);
    assert_eq!(verdict(&claim, &data, 3, "1 of 1 so"), Verdict::Holds);
    let judgement = verdict(&claim, &data, 1, "2 threads or more");
    assert_eq!(judgement, Verdict::CannotTell);
    let judgement = verdict(&claim, &data, 2, "not all it compares");
    assert_eq!(judgement, Verdict::CannotTell);
}

#[test]
fn an_undecidable_claim_says_why() {
    let claim = Claim {
        relation: Relation::Unmeasured("for a reason"),
        ..claim()
    };
    let data = runs([3.0; 3], [1.0; 3]);
    assert_eq!(
        verdict(&claim, &data, 4, "for a reason"),
        Verdict::CannotTell
    );
}

#[test]
fn what_was_not_measured_or_only_once_decides_nothing() {
    let elsewhere = dataset([(arr("random", 80), "a", 1, 1.0)]);
    assert_eq!(
        verdict(
            &claim(),
            &elsewhere,
            4,
            "not all it compares was measured: a, b"
        ),
        Verdict::CannotTell
    );
    let once = ["a", "b"].map(|lock| record(full(), lock, 1, 1.0));
    assert_eq!(
        verdict(&claim(), &Dataset::of(&once), 4, "single run"),
        Verdict::CannotTell
    );
}

#[test]
fn growth_is_judged_for_what_it_is() {
    let of = |(relation, bound)| Claim {
        relation,
        bound,
        from: 1,
        threads: (2, 4),
        ..claim()
    };
    let is = |relation, ops, expected| {
        let found = verdict(&of(relation), &runs(ops, [5.0; 3]), 4, "of");
        assert_eq!(found, expected, "{relation:?} {ops:?}");
    };
    // Each holds of the first throughputs, and of none of the others.
    let tells_apart = |relation, holds, fails: &[[f64; 3]]| {
        is(relation, holds, Verdict::Holds);
        for &ops in fails {
            is(relation, ops, Verdict::Fails);
        }
    };
    use Relation::*;
    tells_apart((Rises, 1.0), [1.0, 1.5, 1.8], &[[1.0, 1.5, 1.2]]);
    tells_apart((Linear, 0.8), [1.0, 1.8, 3.5], &[[1.0, 1.8, 2.5]]);
    tells_apart((Flat, 1.2), [1.0, 1.1, 0.3], &[[1.0, 1.1, 1.4]]);
    tells_apart((Falls, 1.0), [1.0, 0.9, 0.8], &[[1.0, 0.9, 1.3]]);
    tells_apart((Sublinear, 1.0), [1.0, 1.8, 2.5], &[[1.0, 2.2, 4.5]]);
    tells_apart(
        (Steady, 1.2),
        [1.0, 1.1, 0.9],
        &[[1.0, 1.1, 0.7], [1.0, 1.1, 1.5]],
    );
    tells_apart((ScalesBeyond, 1.0), [1.0, 1.5, 1.8], &[[9.0, 8.0, 7.0]]);
    tells_apart(
        (Alike, 1.1),
        [4.9, 5.0, 5.1],
        &[[5.0, 5.0, 6.0], [5.0, 5.0, 4.0]],
    );
}

#[test]
fn a_value_exceeds_a_number_and_is_not_below_that_of_fewer_threads() {
    let of = |relation, bound, from| Claim {
        relation,
        bound,
        from,
        than: Vec::new(),
        threads: (2, 4),
        ..claim()
    };
    let data = runs([1.0, 3.0, 2.0], [1.0; 3]);
    let exceeds = |bound| verdict(&of(Relation::Exceeds, bound, 0), &data, 4, ": a ");
    assert_eq!(
        [exceeds(1.9), exceeds(2.1)],
        [Verdict::Holds, Verdict::Fails]
    );
    let not_below = |bound| verdict(&of(Relation::NotBelow, bound, 2), &data, 4, "a with");
    assert_eq!(
        [not_below(0.6), not_below(0.9)],
        [Verdict::Holds, Verdict::Fails]
    );
}

#[test]
fn a_lock_that_got_nothing_done_was_not_measured() {
    let not_run = "not all it compares was measured";
    for (a, b) in [
        ([3.0; 3], [0.0; 3]),
        ([0.0; 3], [3.0; 3]),
        ([0.0; 3], [0.0; 3]),
    ] {
        let data = runs(a, b);
        assert_eq!(verdict(&claim(), &data, 4, not_run), Verdict::CannotTell);
        let multiple = Claim {
            relation: Relation::ScalesBeyond,
            ..claim()
        };
        assert_eq!(verdict(&multiple, &data, 4, not_run), Verdict::CannotTell);
    }
    let once = runs([3.0; 3], [1.0, 0.0, 1.0]);
    assert_eq!(verdict(&claim(), &once, 4, "2 of 2 so"), Verdict::Holds);
}
