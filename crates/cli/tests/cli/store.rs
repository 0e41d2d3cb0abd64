//! Files that threads share.

use super::*;

#[test]
fn files_write_a_line_for_each_run_and_lose_nothing() {
    let lines = json_lines(
        "bench store --locks plain-file,inode,slots --kernel dwom,overlap-mixed --pages 4 --threads 2 \
         --seconds 0.01 --warmup 0 --repeat 1 --format json",
    );
    let runs = of(&lines, "store");
    assert_eq!(runs.len(), 3 * 2, "subjects, kernels");
    for run in &runs {
        let is_plain = run["lock"] == "plain-file";
        // A lock promises exclusion, unless its line says otherwise.
        let promise = is_plain.then_some("none");
        assert_eq!(
            run.get("exclusion").and_then(Value::as_str),
            promise,
            "{run}"
        );
        assert!(run.get("lost_updates").is_none(), "{run}");
        assert!(is_plain || run.get("torn_reads").is_none(), "{run}");
        assert!(run["ops_per_sec"].is_number(), "{run}");
    }
}
