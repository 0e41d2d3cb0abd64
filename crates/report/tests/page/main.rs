//! The page: from fixed lines, read as a browser reads it.

mod lines;

use lines::{all, arr, has, input, latency, meta, page, simulated, text, within, words};
use machines::Machine;
use serde_json::json;
use spanlock_records::record::Line;
use spanlock_records::record::finding::Verdict;
use spanlock_report::page::chart::STYLES;
use spanlock_report::page::figures::{figures, picture};
use spanlock_report::page::findings::Findings;
use spanlock_report::page::input::Input;
use std::collections::{HashMap, HashSet};

#[test]
fn the_page_is_whole_and_needs_nothing_from_elsewhere() {
    let page = page(&input());
    let ids: Vec<_> = all(&page, "[id]")
        .iter()
        .map(|one| one.attribute("id").unwrap())
        .collect();
    let distinct: HashSet<_> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    let named = |attribute: &str| {
        let found = all(&page, &format!("[{attribute}]"));
        found
            .iter()
            .map(|one| one.attribute(attribute).unwrap())
            .collect::<Vec<_>>()
    };
    assert!(named("href").len() > 10);
    for link in named("href") {
        let target = link.strip_prefix('#');
        assert!(
            target.is_some_and(|target| distinct.contains(target)),
            "{link}"
        );
    }
    for label in named("aria-labelledby") {
        assert!(distinct.contains(label), "{label}");
    }
    assert_eq!(
        named("src").len()
            + named("style").len()
            + all(&page, "script").len()
            + all(&page, "link").len(),
        0
    );
    let whole = page.input_text();
    for outside in ["http://", "https://", "url(", "@import"] {
        assert!(!whole.contains(outside), "{outside}");
    }
    for (selector, count) in [
        ("h1", 1),
        ("main", 1),
        ("nav[aria-label]", 1),
        ("html[lang]", 1),
    ] {
        assert_eq!(all(&page, selector).len(), count, "{selector}");
    }
    let first = all(&page, "body > *")[0];
    assert_eq!(
        (first.attribute("class"), first.attribute("href")),
        (Some("skip"), Some("#main"))
    );
    assert_eq!(
        all(&page, "table").len(),
        all(&page, "div[tabindex][aria-label] > table > caption").len()
    );
    assert_eq!(
        all(&page, "svg").len(),
        all(&page, "svg[role=img] > title").len()
    );
}

#[test]
fn figures_are_drawn_where_there_are_runs_and_others_said_to_be_left_out() {
    let page = page(&input());
    let count = |selector: &str| all(&page, selector).len();
    assert_eq!(count("#p1-7-1-fig-3-a-b svg"), 2);
    assert_eq!(count("#p1-7-1-fig-3-a-b svg .curve"), 8);
    assert_eq!(count("#p1-7-1-fig-3-a-b svg .mark"), 16);
    has(&page, "#p1-7-1-fig-3-a-b svg .name", "lustre-ex");
    has(
        &page,
        "#p1-7-1-fig-3-a-b .mark title",
        "list-rw, 2 threads: 4.000 ±0 % million operations per second",
    );
    has(&page, "#p1-7-1-fig-3-a-b td", "4.000 ±0 %");
    assert_eq!(count("#p2-5-2-fig-2 svg"), 1);
    assert_eq!(count("#p3-vi-b1-fig-10 svg"), 2);
    assert_eq!(count("#latency svg"), 2);
    has(&page, "#latency td", "5000");
    assert_eq!(count("#p2-5-3-fig-3 svg"), 0);
    has(&page, "#p2-5-3-fig-3 p", "Left out");
    has(&page, "#places p", "P2 §5.3, Fig. 3");
}

#[test]
fn what_was_not_run_is_folded_and_what_was_is_not() {
    let page = page(&input());
    let is_folded = |figure: &str| {
        let folded = all(&page, &format!("details.empty #{figure}")).len();
        assert_eq!(all(&page, &format!("#{figure}")).len(), 1, "{figure}");
        folded == 1
    };
    for figure in ["p1-7-1-fig-4", "p2-5-3-fig-3", "p4-4-3-3-fig-4-2"] {
        assert!(is_folded(figure), "{figure}");
    }
    for figure in ["p1-7-1-fig-3-a-b", "p2-5-2-fig-2", "p3-vi-b1-fig-10"] {
        assert!(!is_folded(figure), "{figure}");
    }
    has(
        &page,
        "#p2 > details.empty > summary",
        "6 figures without runs, ",
    );
    let open = all(&page, "#p1-7-1-fig-3-a-b > details > .claims > li");
    assert!(!open.is_empty());
    for claim in open {
        let text = words(claim);
        assert!(
            !text.contains("holds.") && !text.contains("fails."),
            "{text}"
        );
    }
    has(
        &page,
        "#p1-7-1-fig-3-a-b > .claims li",
        "lustre-ex does not scale",
    );
}

#[test]
fn the_page_begins_with_the_winner() {
    let page = page(&input());
    let first = words(all(&page, "#summary p")[0]);
    assert_eq!(
        first,
        "slots, which is under RangeLock, is ahead of every other lock in 4 of 4 contests, level with the best in 0, \
         and behind it in 0."
    );
    has(
        &page,
        "#summary > p",
        "these runs decide 5 statements: 4 hold and 1 fails",
    );
    has(&page, "#summary > p", "half of all medians lie within 0 %");
    assert_eq!(
        all(&page, "#summary .card svg .level").len(),
        2,
        "measured and simulated"
    );
    has(
        &page,
        "#summary .mark title",
        "arr, 2 threads: 1.25 times the best other lock",
    );
    has(&page, "#places p", "these led: bravo-pf-q in 1");
    has(&page, "#places h3", "simulated: small-1x2x1, unpinned");
    has(&page, "#places details td", "1.00");
    assert_eq!(
        all(&page, ".warning").len(),
        0,
        "no run says how busy the machine was"
    );
}

/// Runs that say which share of a processor one thread had, with a lock that spins and one that sleeps.
fn runs_with_share(share: f64) -> Input {
    let run = |lock: &str, share: f64| {
        let mut run = arr(lock, 1, 0, 1e6);
        run["cpu_seconds"] = (share * 0.05).into();
        run
    };
    let runs = [run("slots", share), run("kernel-rw", share / 4.0)];
    let begin = std::iter::once(meta("spanlock bench arr", 2));
    let mut input = Input::default();
    input.add("real.jsonl", &text(begin.chain(runs))).unwrap();
    input
}

#[test]
fn the_picture_is_a_file_that_says_where_it_comes_from() {
    let picture = picture(&input()).expect("slots met others");
    for said in [
        "http://www.w3.org/2000/svg",
        "simulated: small-1x2x1",
        "spanlock sim arr (c0ffee)",
        "prefers-color-scheme: dark",
    ] {
        assert!(picture.contains(said), "{said}");
    }
    let mut alone = Input::default();
    let lines = [meta("spanlock bench arr", 2), arr("slots", 1, 0, 1e6)];
    alone.add("real.jsonl", &text(lines)).unwrap();
    assert_eq!(self::picture(&alone), None);
}

#[test]
fn the_tables_of_the_front_page_have_a_row_for_each_panel_and_what_leads_is_bold() {
    let command = format!("spanlock bench arr{}", " --threads 1,2".repeat(7));
    let lines = [
        meta(&command, 2),
        arr("slots", 1, 0, 4e6),
        arr("kernel-rw", 1, 0, 1e6),
        arr("slots", 2, 0, 1e6),
        arr("kernel-rw", 2, 0, 4e6),
    ];
    let mut input = Input::default();
    input.add("real.jsonl", &text(lines)).unwrap();
    let tables = figures(&input);
    for line in [
        "| Range locks: million operations per second | slots | kernel-rw |",
        "|---|---:|---:|",
        "| full range, 100 % reads, 1 thread | **4.00** | 1.00 |",
        "| full range, 100 % reads, 2 threads | 1.00 | **4.00** |",
    ] {
        assert!(tables.lines().any(|one| one == line), "{line}: {tables}");
    }
    let (first, rest) = command.split_at(command.len() - " --threads 1,2".len());
    let folded = format!("```sh\n{first} \\\n   {rest}\n```");
    assert!(tables.ends_with(&folded), "{folded}: {tables}");
}

#[test]
fn a_busy_machine_is_told_before_all_else() {
    let busy = page(&runs_with_share(0.6));
    let first = words(all(&busy, "#summary p")[0]);
    assert!(first.contains("had 60 % of the processor time"), "{first}");
    has(&busy, "#summary .card p", "level with the best in 1");
    has(&busy, "#summary > p", "all runs are single");
    let quiet = page(&runs_with_share(0.98));
    assert_eq!(
        all(&quiet, ".warning").len(),
        0,
        "a lock that sleeps is no sign of it"
    );
}

#[test]
fn a_lock_has_one_colour_on_the_page() {
    let page = page(&input());
    let mut styles: HashMap<String, HashSet<&str>> = HashMap::new();
    let mut named = 0;
    for name in all(&page, "svg .name") {
        named += 1;
        let class = name.attribute("class").unwrap();
        styles.entry(words(name)).or_default().insert(class);
    }
    assert!(named > styles.len(), "{styles:?}");
    for (lock, styles) in &styles {
        assert_eq!(styles.len(), 1, "{lock}: {styles:?}");
    }
    let css = words(all(&page, "style")[0]);
    for style in 0..STYLES {
        assert!(css.contains(&format!(".c{style} {{")), "{style}");
        let colour = format!("--c{style}: #");
        assert_eq!(css.matches(&colour).count(), 2, "light and dark: {style}");
    }
}

#[test]
fn measured_and_simulated_charts_of_a_panel_have_one_kind_of_axis() {
    let mut input = Input::default();
    let real = [("list-rw", 2e6), ("kernel-rw", 1e6)];
    let real = real.map(|(lock, ops)| arr(lock, 1, 0, ops)).into_iter();
    let begin = std::iter::once(meta("spanlock bench arr", 2));
    input.add("real.jsonl", &text(begin.chain(real))).unwrap();
    let mut machine = serde_json::to_value(Machine::find("small-1x2x1").unwrap()).unwrap();
    machine["workload"] = "sim-machine".into();
    let far = [("list-rw", 9e6), ("kernel-rw", 1e4)];
    let far = far.map(|(lock, ops)| simulated(lock, 1, 0, ops));
    let lines = [meta("spanlock sim arr", 2), machine]
        .into_iter()
        .chain(far);
    input.add("simulated.jsonl", &text(lines)).unwrap();
    let page = page(&input);
    let axes = all(&page, "#p1-7-1-fig-3-a-b svg .axis");
    let axes: Vec<_> = axes.into_iter().map(words).collect();
    let powers = "operations per second, by powers of ten";
    let found = axes.iter().filter(|axis| *axis == powers);
    assert_eq!(found.count(), 2, "{axes:?}");
}

#[test]
fn each_place_has_a_verdict_of_its_own() {
    let page = page(&input());
    let claims = all(&page, "#p1-7-1-fig-3-a-b .claims > li");
    let said = |wanted: &str| {
        let found = claims.iter().find(|claim| words(**claim).contains(wanted));
        let verdicts = within(*found.unwrap(), "li").into_iter().map(words);
        verdicts.collect::<Vec<_>>()
    };
    let lustre = said("lustre-ex does not scale at all");
    assert!(
        lustre[0].contains("holds. measured: Some <Processor>, 2 processors"),
        "{lustre:?}"
    );
    assert!(
        lustre[1].contains("fails. simulated: small-1x2x1, unpinned"),
        "{lustre:?}"
    );
    let segments = said("segment locks do not scale");
    assert!(segments[0].contains("cannot tell"), "{segments:?}");
    assert!(segments[0].contains("pnova-rw"), "{segments:?}");
    has(&page, "#p2-5-2-fig-2 .claims li", "holds. measured");
    has(&page, "#p1-7-1-fig-4 .claims li", "it is no throughput");
}

#[test]
fn simulation_is_held_against_measurement() {
    let page = page(&input());
    let rows: Vec<_> = all(&page, "#validation tbody tr")
        .into_iter()
        .map(words)
        .collect();
    assert_eq!(rows.len(), 2);
    for (row, wanted) in rows.iter().zip(["1.00", "1.00"]) {
        assert!(
            row.contains(wanted) && row.contains("off: simulated does 2.00 times as much"),
            "{row}"
        );
    }
    has(&page, "#validation p", "0 of 2");
}

#[test]
fn winners_parameters_and_origins_are_there() {
    let page = page(&input());
    for (selector, wanted) in [
        ("#winners td", "slots"),
        (
            "#machines tr",
            "load_modified_local230prototype: 57 to 61 ns one way",
        ),
        ("#sources code", "spanlock bench arr & co"),
        ("#sources dd", "c0ffee"),
        ("#sources h3", "simulated.jsonl"),
        ("#sources dd", "it simulated small-1x2x1"),
    ] {
        has(&page, selector, wanted);
    }
}

#[test]
fn of_a_sweep_the_machine_itself_is_drawn_and_what_outlasts_it_told() {
    let machine = |name: &str| {
        let mut machine = serde_json::to_value(Machine::find(name).unwrap()).unwrap();
        machine["workload"] = "sim-machine".into();
        machine
    };
    let varied = "small-1x2x1:rmw=30";
    let mut there = simulated("list-rw", 1, 0, 9e6);
    there["simulated"]["machine"] = varied.into();
    let mut times = latency("list-rw", 700);
    let run = simulated("list-rw", 1, 0, 2e6);
    times["simulated"] = run["simulated"].clone();
    let ranking = json!({"workload": "sim-ranking", "panel": "full range, 100 % reads", "threads": 1,
        "machine": "small-1x2x1", "order": [{"lock": "list-rw", "ops_per_sec": 2e6}], "pairs": 0, "machines": 1,
        "swaps": []});
    let mut input = Input::default();
    let begin = [
        meta("spanlock sim arr --sweep", 2),
        machine("small-1x2x1"),
        machine(varied),
    ];
    let lines = begin.into_iter().chain([run, there, times, ranking]);
    input.add("sweep.jsonl", &text(lines)).unwrap();
    assert_eq!(input.sites.len(), 1);
    let page = page(&input);
    has(&page, "#p1-7-1-fig-3-a-b td", "2.000");
    assert!(
        !page.input_text().contains('±'),
        "a single run has no spread"
    );
    has(&page, "#latency td", "700");
    has(&page, "#validation pre", "full range, 100 % reads");
    let mut input = Input::default();
    let lines = [meta("spanlock sim arr", 2), machine(varied)]
        .into_iter()
        .chain([{
            let mut run = simulated("list-rw", 1, 0, 2e6);
            run["simulated"]["machine"] = varied.into();
            run
        }]);
    input.add("varied.jsonl", &text(lines)).unwrap();
    let page = self::page(&input);
    has(&page, "#machines tr", "rmw30not the file's");
    has(&page, "#machines tr", "load_modified_local230prototype");
}

#[test]
fn what_lines_say_is_text_and_not_markup() {
    let mut input = Input::default();
    let name = "<b>\"&'";
    input
        .add("<i>.jsonl", &text([meta("<u>", 2), arr(name, 1, 0, 1e6)]))
        .unwrap();
    let page = page(&input);
    for markup in ["b", "i", "u"] {
        assert_eq!(all(&page, markup).len(), 0);
    }
    has(&page, "#winners td", name);
}

#[test]
fn lines_of_json_have_the_same_findings() {
    let lines = Findings::of(&input()).lines();
    let verdict = |line| match line {
        Line::Claim(one) if one.says == "on the full range, lustre-ex does not scale at all" => {
            Some((one.place?, one.verdict))
        }
        _ => None,
    };
    let verdicts: Vec<_> = lines.filter_map(verdict).collect();
    let places = [
        "measured: Some <Processor>, 2 processors",
        "simulated: small-1x2x1, unpinned",
    ];
    let expected = places.map(str::to_owned).into_iter();
    let expected: Vec<_> = expected.zip([Verdict::Holds, Verdict::Fails]).collect();
    assert_eq!(verdicts, expected);
}

#[test]
fn lines_that_cannot_be_used_are_named() {
    let run = || arr("list-rw", 1, 0, 1e6);
    let begin = || meta("spanlock bench arr", 2);
    let other = json!({"workload": "meat"});
    let half = json!({"workload": "arr", "panel": "a half", "lock": "list-rw", "threads": 1});
    for (lines, line, wanted) in [
        (format!("{}\n\nnot json\n", begin()), 3, "expected"),
        (text([begin(), other]), 2, "meat"),
        (text([begin(), half]), 2, "seed"),
        (text([run()]), 1, "meta"),
        (
            text([begin(), simulated("list-rw", 1, 0, 1e6)]),
            2,
            "sim-machine",
        ),
        (
            text([begin(), run(), begin()]),
            3,
            "the same runs as in given.jsonl",
        ),
        (String::new(), 1, "no measurements"),
    ] {
        let broken = Input::default().add("given.jsonl", &lines).unwrap_err();
        assert_eq!(
            (broken.file.as_str(), broken.line),
            ("given.jsonl", line),
            "{broken}"
        );
        assert!(broken.what.contains(wanted), "{broken}");
        assert!(
            broken
                .to_string()
                .starts_with(&format!("given.jsonl, line {line}: "))
        );
    }
}
