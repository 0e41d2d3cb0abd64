//! What is said of arguments that are wrong.

use super::*;

#[test]
fn wrong_arguments_are_named_with_what_was_expected() {
    // The arguments, and two things that the error says.
    let rows = "
        bench arr --locks list-rw,lsit | lsit | kernel-rw
        bench arr --locks= | --locks | kernel-rw
        bench arr --locks list-rw,,null | --locks | kernel-rw
        bench arr --locks floor | floor | kernel-rw
        bench arr --variant half | half | disjoint
        bench arr --variant= | --variant | disjoint
        bench arr --reads 101 | 101 | from 0 to 100
        bench arr --reads=-1 | -1 | from 0 to 100
        bench arr --reads= | --reads | from 0 to 100
        bench arr --threads 0 | '0' | 1 <= a
        bench arr --threads 1,257 | 257 | 256
        bench arr --threads 4:1 | 4:1 | a <= b
        bench arr --threads 1:4:0 | 1:4:0 | step >= 1
        bench arr --threads= | --threads | 1 <= a
        bench arr --seconds 0 | '0' | more than 0
        bench arr --seconds -1 | -1 | more than 0
        bench arr --seconds NaN | NaN | more than 0
        bench arr --seconds inf | inf | 86400
        bench arr --warmup -1 | -1 | from 0
        bench arr --repeat 0 | '0' | 1..
        bench arr --seed x | 'x' | invalid digit
        bench arr --format xml | xml | json
        bench uncontended --locks nil | nil | floor-2rmw
        bench uncontended --pairs 0 | '0' | 1..
        bench waiting --threads 0 | '0' | from 1 to 256
        bench waiting --seconds 0 | '0' | more than 0
        bench async --locks lsit | lsit | tokio
        bench async --load hole | hole | whole
        bench async --writes 101 | 101 | from 0 to 100
        bench async --workers 0 | '0' | 1 <= a
        bench async --crowd 0 | '0' | from 1 to 1000000
        bench batch --hold 0 | '0' | from 1 to 1024
        bench batch --hold 1,1025 | 1025 | from 1 to 1024
        bench batch --hold= | --hold | from 1 to 1024
        bench batch --hold 16 --ranges 8 | --hold 16 | --ranges is 8
        bench batch --ranges 0 | '0' | from 1 to 1048576
        bench batch --locks list-rw:h=1 | list-rw:h=1 | takes no parameters
        bench batch --locks song:h=17 | song:h=17 | h=1..=16
        bench blob --records 0 | '0' | from 1 to 65536
        bench blob --records 65537 | 65537 | from 1 to 65536
        bench blob --cache 65 | 65 | from 0 to 64
        bench blob --cache -1 | -1 | from 0 to 64
        bench blob --draw often | often | uniform, zipfian
        bench blob --payload half | half | whole, word
        bench blob --locks coppy | coppy | own-area
        bench blob --locks bitmap:block=0 | block=0 | block=1..=
        bench blob --locks copy:h=1 | copy:h=1 | own-area
        bench blob --locks= | --locks | own-area
        bench arr --locks song:hight=2 | hight=2 | h=1..=16
        bench uncontended --locks bitmap:block=0 | block=0 | block=1..=
        bench set --keys 0 | '0' | from 1 to 268435456
        bench set --chosen often | often | uniform, zipfian
        bench set --mix reads | reads | updates, scans
        bench set --sets orgi | orgi | dashmap
        bench set --stall 1 | --stall | unexpected
        sim set --stall -1 | -1 | 1000000
        sim set --stall 1000001 | 1000001 | 1000000
        sim set --sets dashmap | dashmap | orig
        bench batch --threads 0 | '0' | 1 <= a
        bench pattern --pattern page | 'page' | files, pages
        bench pattern --reads 101 | 101 | from 0 to 100
        bench pattern --bystanders 1001 | 1001 | 1000
        bench many-locks --number 0 | '0' | from 1 to 1048576
        bench many-locks --threads 65 | 65 threads | at most 64
        bench many-locks --seconds 1 | --seconds | each lock once
        bench latency --parts 0 | '0' | from 1 to 1048576
        bench latency --threads 0 | '0' | 1 <= a
        bench latency --repeat 0 | '0' | 1..
        bench latency --locks floor | floor | kernel-rw
        bench memory --hold 0 | '0' | from 1 to 1024
        bench memory --hold 1,1025 | 1025 | from 1 to 1024
        bench memory --locks song:h=0 | song:h=0 | h=1..=16
        bench batch --locks null,song:h=2..17 | h=2..17 | h=1..=16
        bench batch --locks song:h=3..2 | h=3..2 | h=1..=16
        bench rw alternator --locks lsit | lsit | pthread
        bench rw readers --locks nil | nil | floor-private
        bench rw uncontended --locks nil | nil | floor-shared
        bench rw uncontended --pairs 0 | '0' | 1..
        bench rw interference --pool 0 | '0' | from 1 to 8192
        bench rw interference --pool 1,x | 'x' | from 1 to 8192
        bench rw test_rwlock --pause -1 | -1 | from 0 to 1048576
        bench rw rwbench --writes 1.5 | 1.5 | from 0 to 1
        bench rw rwbench --writes NaN | NaN | from 0 to 1
        bench rw rwbench --inside -1 | -1 | --inside
        bench rw hash_table --entries 0 | '0' | from 1 to 16777216
        bench rw hash_table --threads 0 | '0' | 1 <= a
        bench rw harm --repeat 0 | '0' | 1..
        bench rw harm --locks null | null | futex
        bench rw alternatr | alternatr | 'alternator'
        bench rw | Usage | hash_table
        bench | Usage | arr
        bench latency --seconds 1 | --seconds | --parts
        bench memory --seconds=1 | --seconds | --hold
        bench uncontended --seconds 1 | --pairs | --repeat
        bench rw uncontended --seconds 1 | --pairs | --repeat
        bench rw revocation --seconds 1 | rounds | --repeat
        sim latency --seconds 1 | --seconds | --parts
        bench array | array | arr
        frobnicate | frobnicate | Usage
        ";
    for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let [arguments, ref said @ ..] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        assert_eq!(said.len(), 2, "{row}");
        let output = run(arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(!errors.contains("panicked"), "{arguments}: {errors}");
        for word in said {
            assert!(errors.contains(word), "{arguments}: {word} not in {errors}");
        }
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(!errors.contains("--seed'"), "{arguments}: {errors}");
    }
}
