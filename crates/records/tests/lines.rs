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
    let kind = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["workload"].to_string()
    };
    let kinds = LINES.lines().map(kind);
    let kinds: std::collections::BTreeSet<_> = kinds.collect();
    assert!(kinds.len() > 15, "{kinds:?}");
}

#[test]
fn what_is_no_field_of_a_run_is_a_setting() {
    let text = "{\"workload\":\"new\",\"panel\":\"a new one\",\"depth\":3,\"shape\":\"flat\",\"lock\":\"null\",\
                \"threads\":2,\"seed\":1,\"ops_per_sec\":1.5}";
    let Line::Run(run) = text.parse().unwrap() else {
        panic!("a run")
    };
    assert_eq!((run.ops_per_sec, run.threads), (Some(1.5), 2));
    assert!(!run.lock.competes());
    let panel = run.panel;
    assert_eq!(
        (panel.workload(), panel.to_string()),
        ("new", "a new one".to_owned())
    );
    let settings: Vec<_> = panel.settings().map(|(name, _)| name).collect();
    assert_eq!(settings, ["depth", "shape"]);
    assert_eq!(
        (panel.number("depth"), panel.word()),
        (Some(3), Some("flat"))
    );
}

#[test]
fn what_is_no_line_says_why() {
    for (text, why) in [
        (
            "{\"workload\":\"arr\",\"panel\":\"full\",\"lock\":\"null\",\"threads\":1}",
            "missing field `seed`",
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
