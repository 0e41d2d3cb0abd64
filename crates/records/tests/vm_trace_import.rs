//! Recordings, put together by hand.

use spanlock_records::vm_trace::import::{LeftOut, Recording, import};
use spanlock_records::vm_trace::trace::{Backing, Call, Map};

const BEFORE: &str = "\
00400000-00402000 r-xp 00001000 fe:00 12                     /bin/some thing\nVmFlags: rd ex mr mw me \n\
7ffd0000e000-7ffd00010000 rw-p 00000000 00:00 0              [stack]\nVmFlags: rd wr mr mw me gd ac \n\
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0      [vsyscall]\nVmFlags: ex \n";

const AFTER: &str = "\
00400000-00402000 r-xp 00001000 fe:00 12                     /bin/some thing\nVmFlags: rd ex mr mw me \n\
00900000-00901000 rw-p 00000000 00:00 0                      [heap]\nVmFlags: rd wr mr mw me ac \n\
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me ac nh \n\
7f0000004000-7f0000005000 r--s 00002000 fe:00 13             /lib/x (deleted)\nVmFlags: rd mr me ms \n\
7ffd0000d000-7ffd00010000 rw-p 00000000 00:00 0              [stack]\nVmFlags: rd wr mr mw me gd ac \n";

/// Thread 11 maps what thread 10 unmaps, while strace has seen neither call end.
const STRACE: &str = "\
9 1.000000000 mmap(NULL, 0x1000, 0x1, 0x22, -1, 0) = 0x7e0000000000 <0.000001000>
10 1.100000000 mmap(NULL, 0x1000, 0x1, 0x22, -1, 0) = 0x7d0000000000 <0.000001000>
10 1.200000000 execve(0x1, [\"some thing\"], 0x2 /* 3 vars */) = 0 (DELAYED) <0.000001000>
10 1.300000000 brk(NULL)             = 0x900000 <0.000001000>
10 1.400000000 brk(0x901000)         = 0x901000 <0.000001000>
10 1.410000000 brk(0x901000)         = 0x901000 <0.000001000>
10 1.420000000 mprotect(0x900000, 0, 0x1) = 0 <0.000001000>
10 1.500000000 mmap(NULL, 4096, 0x3, 0x20022, -1, 0) = 0x7f0000000000 <0.000010000>
10 1.510000000 clone3({flags=0x3d0f00, stack_size=0x800} <unfinished ...>
11 1.520000000 mmap(NULL, 0x1000, 0x3, 0x20022, -1, 0 <unfinished ...>
10 1.530000000 <... clone3 resumed> => {parent_tid=[11]}, 88) = 11 <0.020000000>
10 1.519000000 munmap(0x7f0000000000, 4096 <unfinished ...>
11 1.540000000 <... mmap resumed>) = 0x7f0000000000 <0.020000000>
10 1.550000000 <... munmap resumed>) = 0 <0.031000000>
10 1.560000000 clone(child_stack=NULL, flags=0x1200000|17) = 12 <0.001000000>
12 1.570000000 mmap(NULL, 0x1000, 0x3, 0x22, -1, 0) = 0x7f1000000000 <0.001000000>
11 1.580000000 mmap(NULL, 0x801, 0x1, 0x1, 3</lib/x>, 0x2000) = 0x7f0000004000 <0.001000000>
10 1.590000000 madvise(0x123000, 4096, 4) = -1 ENOMEM (Cannot allocate memory) <0.001000000>
11 1.600000000 exit_group(0 <unfinished ...>
10 1.610000000 munmap(0x7f0000000000, 4096) = 0 <0.001000000>
11 1.700000000 <... exit_group resumed>) = ?
10 1.700000000 +++ exited with 0 +++
";

const FAULTS: &str = "\
10/10 1.150000000: 7ffd00000000
9/9 1.300000001: 7e0000000000
10/11 1.545000000: 7f0000000008
10/10 1.546000000: 400010
10/10 1.547000000: 7ffd0000d010
10/10 1.548000000: 10
";

fn recording() -> Recording<'static> {
    Recording {
        strace: STRACE,
        faults: FAULTS,
        before: BEFORE,
        after: AFTER,
        process: 10,
        about: "some thing",
    }
}

#[test]
fn a_recording_becomes_a_trace() {
    let (trace, left_out) = import(&recording()).unwrap();
    assert_eq!(
        left_out,
        LeftOut {
            failed: 1,
            signals: 1
        }
    );
    let page = 0x7_f000_0000;
    let anonymous = |start| {
        let backing = Backing::Anonymous;
        Call::Map(Map {
            start,
            pages: 1,
            protection: 3,
            flags: 0x20022,
            backing,
        })
    };
    let file = Call::Map(Map {
        start: page + 4,
        pages: 1,
        protection: 1,
        flags: 1,
        backing: Backing::File { file: 1, page: 2 },
    });
    let fault = |page, access| Call::Fault { page, access };
    let calls: Vec<_> = trace
        .events
        .iter()
        .map(|event| (event.thread, event.call))
        .collect();
    let expected = [
        (0, Call::Break { end: 0x901 }),
        (0, anonymous(page)),
        (
            0,
            Call::Unmap {
                start: page,
                pages: 1,
            },
        ),
        (1, anonymous(page)),
        (1, fault(page, 2)),
        (0, fault(0x400, 4)),
        (0, fault(0x7_ffd0_000d, 2)),
        (1, file),
    ];
    assert_eq!(calls, expected);
    let thinks: Vec<_> = trace
        .events
        .iter()
        .map(|event| event.think)
        .take(2)
        .collect();
    assert_eq!(thinks, [199_999, 99_999]);
    assert_eq!((trace.heap, trace.about.as_str()), (0x900, "some thing"));
}

#[test]
fn a_recording_that_is_not_complete_is_refused() {
    let cases: [(Recording<'static>, &str); 7] = [
        (
            Recording {
                process: 7,
                ..recording()
            },
            "no program",
        ),
        (
            Recording {
                strace: STRACE.split("11 1.6000").next().unwrap(),
                ..recording()
            },
            "not ended",
        ),
        (
            Recording {
                strace: "what is this",
                ..recording()
            },
            "what is this",
        ),
        (
            Recording {
                faults: "10/10 1.5: 10",
                ..recording()
            },
            "no fault",
        ),
        (
            Recording {
                after: BEFORE,
                ..recording()
            },
            "lead to",
        ),
        (
            Recording {
                before: "",
                ..recording()
            },
            "before: no areas",
        ),
        (
            Recording {
                before: &BEFORE[..60],
                after: "0-1000 r--p 0 0 0",
                ..recording()
            },
            "before: no areas",
        ),
    ];
    for (recording, why) in cases {
        let error = import(&recording).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    let without = STRACE.replace(
        "10 1.519000000 munmap(0x7f0000000000, 4096 <unfinished ...>\n",
        "",
    );
    let without = without.replace(
        "10 1.550000000 <... munmap resumed>) = 0 <0.031000000>\n",
        "",
    );
    let error = import(&Recording {
        strace: &without,
        ..recording()
    })
    .unwrap_err();
    assert!(error.to_string().contains("the place is taken"), "{error}");
}
