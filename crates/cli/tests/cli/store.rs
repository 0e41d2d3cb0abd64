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
        let promise = if is_plain { "none" } else { "promised" };
        assert_eq!(run["exclusion"], promise, "{run}");
        assert_eq!(run["lost_updates"], 0, "{run}");
        assert!(is_plain || run["torn_reads"] == 0, "{run}");
        assert!(run["ops_per_sec"].is_number(), "{run}");
    }
    let claims = of(&lines, "claim");
    assert!(!claims.is_empty());
    for claim in claims {
        assert!(
            claim["source"].as_str().unwrap().starts_with("P3 §VI"),
            "{claim}"
        );
    }
}
