//! Traces that are no traces.

use spanlock_records::vm_trace::text::{Error, parse, read};
use spanlock_records::vm_trace::trace::{Area, Backing, Call, Event, Map, Remap, Trace};

const GOOD: &str = "spanlock vm trace 1\n# two\n# lines\nheap 10\nbefore 1\n10 2 3 4\nevents 9\n\
    0 0 m +20 4 1 2 1 7\n0 5 u +0 1\n1 0 p +21 1 3\n0 1 b -8\n1 2 a -1 4 4\n0 3 r +8 1 2 +10\n0 3 f -1 2\n\
    0 3 f +1 1\n0 3 f +0 4\nafter 1\n20 1 0 0 2 ff\nend\n";

#[test]
fn every_kind_of_line_is_read() {
    let trace = parse(GOOD).unwrap();
    assert_eq!(trace.about, "two\nlines");
    let backing = Backing::File { file: 0, page: 7 };
    let call = Call::Map(Map {
        start: 0x20,
        pages: 4,
        protection: 1,
        flags: 2,
        backing,
    });
    assert_eq!(
        trace.events[0],
        Event {
            thread: 0,
            think: 0,
            call
        }
    );
    assert_eq!(
        trace.events[5].call,
        Call::Remap(Remap {
            from: 0x20,
            pages: 1,
            start: 0x30,
            grown: 2
        })
    );
    let backing = Backing::File {
        file: 1,
        page: 0xff,
    };
    let area = Area {
        start: 0x20,
        end: 0x21,
        protection: 0,
        attributes: 0,
        backing,
    };
    assert_eq!(trace.after, [area]);
    assert_eq!((trace.threads(), trace.faults()), (2, 3));
}

#[test]
fn an_empty_trace_is_a_trace() {
    let empty = "spanlock vm trace 1\nheap 0\nbefore 0\nevents 0\nafter 0\nend\n";
    let empty = parse(empty).unwrap();
    assert_eq!(empty, Trace::default());
    assert_eq!(empty.threads(), 0);
}

#[test]
fn a_wrong_line_is_named() {
    let cases = [
        (
            "spanlock vm trace 1",
            "spanlock vm trace 2",
            1,
            "begins with",
        ),
        ("heap 10", "heap -1", 4, "hexadecimal"),
        ("heap 10", "heap ffffffffffff", 4, "no page"),
        ("before 1", "before", 5, "`before`"),
        ("before 1", "before ffffffffff", 5, "too many"),
        ("10 2 3 4", "10 0 3 4", 6, "no 0 pages"),
        ("10 2 3 4", "10 fffffffffffffff 3 4", 6, "pages from"),
        ("10 2 3 4", "10 2 8 4", 6, "no protection"),
        ("10 2 3 4", "10 2 3 80000000", 6, "unknown bits"),
        ("10 2 3 4", "10 2 3", 6, "four numbers"),
        ("10 2 3 4", "10 2 3 4 5", 6, "two numbers"),
        ("10 2 3 4", "10 2 3 4 0 5", 6, "numbered from 1"),
        ("0 5 u +0 1", "0 5 u +0", 9, "no event"),
        ("0 5 u +0 1", "0 5 x +0 1", 9, "no event"),
        ("0 5 u +0 1", "0 -5 u +0 1", 9, "decimal"),
        ("0 5 u +0 1", "7 5 u +0 1", 9, "thread 7"),
        ("0 5 u +0 1", "0 5 u 0 1", 9, "difference"),
        ("0 5 u +0 1", "0 5 u -21 1", 9, "difference"),
        ("0 5 u +0 1", "0 5 u + 1", 9, "difference"),
        ("0 5 u +0 1", "0 5 u \u{e9} 1", 9, "difference"),
        ("0 5 u +0 1", "0 5", 9, "too short"),
        ("0 3 f -1 2", "0 3 f -1 3", 14, "one access"),
        ("0 3 f -1 2", "0 3 f -1 0", 14, "one access"),
        ("after 1", "after 2", 19, "four numbers"),
        ("end\n", "", 19, "ends here"),
        ("end\n", "more\n", 19, "`end`"),
    ];
    for (good, bad, line, why) in cases {
        let text = GOOD.replacen(good, bad, 1);
        assert_ne!(text, GOOD);
        let Err(Error::Line { number, what }) = parse(&text) else {
            panic!("`{bad}` was read");
        };
        assert!(
            number == line && what.contains(why),
            "`{bad}`: line {number}: {what}"
        );
    }
    let overlapping = GOOD.replace("before 1\n10 2 3 4", "before 2\n10 2 3 4\n11 1 0 0");
    assert!(
        parse(&overlapping)
            .unwrap_err()
            .to_string()
            .contains("do not overlap")
    );
}

#[test]
fn a_file_that_is_not_compressed_is_refused() {
    assert!(matches!(read(GOOD.as_bytes()), Err(Error::Io(_))));
}
