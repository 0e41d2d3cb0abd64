//! Lines of JSON as users' files hold them: one of each kind, and of each set of fields within a kind.

use spanlock_records::record::Line;

const LINES: &str = include_str!("lines.jsonl");

#[test]
fn every_line_is_read_and_written_back_byte_by_byte() {
    for text in LINES.lines() {
        let line: Line = text
            .parse()
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(line.to_string(), text);
    }
    let kinds = LINES
        .lines()
        .map(|line| line.split(['"', ':']).nth(4).unwrap());
    let kinds: std::collections::BTreeSet<_> = kinds.collect();
    assert_eq!(kinds.len(), 31, "{kinds:?}");
}

#[test]
fn a_run_without_one_of_its_fields_is_refused() {
    let required = |text: &str| {
        let line: serde_json::Value = serde_json::from_str(text).unwrap();
        let fields = line.as_object().unwrap().clone();
        let optional = [
            "family",
            "exclusion",
            "policy",
            "counters",
            "acquire_ns",
            "skipped",
            "handoff_ns",
            "cpu_seconds",
            "cpu_share",
            "sleeper_cpu_ms",
            "inside",
            "outside",
        ];
        let names: Vec<_> = fields
            .keys()
            .filter(|name| !optional.contains(&name.as_str()))
            .cloned()
            .collect();
        (fields, names)
    };
    let runs = LINES
        .lines()
        .filter(|text| matches!(text.parse(), Ok(Line::Run(_))));
    let mut tried = 0;
    for text in runs {
        let (fields, names) = required(text);
        for name in names {
            let mut fields = fields.clone();
            fields.remove(&name);
            let text = serde_json::to_string(&fields).unwrap();
            let read = text.parse::<Line>();
            assert!(read.is_err(), "without {name}: {text}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn lines_of_an_older_program_lack_what_was_added_since() {
    let text = "{\"workload\":\"arr\",\"variant\":\"full\",\"reads\":100,\"threads\":2,\"lock\":\"null\",\
                \"ops_per_sec\":1.5,\"repeat\":0,\"seed\":1,\"seconds\":0.1,\"min_ops_per_thread\":1,\
                \"max_ops_per_thread\":2,\"lost_updates\":0}";
    let Line::Run(run) = text.parse().unwrap() else {
        panic!("a run")
    };
    assert_eq!(
        (run.ops_per_sec, run.cpu_seconds, run.acquire_ns),
        (Some(1.5), None, None)
    );
    assert!(!run.lock.competes());
}

#[test]
fn what_is_no_line_says_why() {
    for (text, why) in [
        (
            "{\"workload\":\"arr\",\"variant\":\"full\",\"lock\":\"null\",\"seed\":1}",
            "missing field `reads`",
        ),
        (
            "{\"workload\":\"elsewhere\"}",
            "unknown variant `elsewhere`",
        ),
        ("{}", "missing field `workload`"),
        ("arr", "expected value"),
    ] {
        let error = text.parse::<Line>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}
