//! The watchdog: ends a process whose work gets nowhere.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A scenario that takes so long hangs, on any machine.
pub const HANG: Duration = Duration::from_secs(60);

/// Does `work`. When `progress` stays the same for as long as `patience`, prints what `report` says and aborts.
///
/// A scenario that is short as a whole has no progress: `()`.
pub fn watched<P: PartialEq + Send, R>(
    patience: Duration,
    progress: impl Fn() -> P + Send,
    report: impl Fn(&P) -> String + Send,
    work: impl FnOnce() -> R,
) -> R {
    let mut before = None;
    let mut stuck = move || {
        let now = Some(progress());
        let stuck = now == before;
        before = now;
        before.as_ref().filter(|_| stuck).map(&report)
    };
    let mut work = Some(work);
    let mut result = None;
    guard(patience, &mut stuck, &mut || {
        let work = work.take().expect("it is called once");
        result = Some(work());
    });
    result.expect("the work has ended")
}

/// Compiled once, where [`watched`] is compiled for each scenario. `stuck` says what to report, if nothing has changed
/// since it was last asked.
fn guard(
    patience: Duration,
    stuck: &mut (dyn FnMut() -> Option<String> + Send),
    work: &mut dyn FnMut(),
) {
    let name = thread::current().name().map(str::to_owned);
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            stuck();
            while ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                if let Some(report) = stuck() {
                    let name = name.as_deref().unwrap_or("a thread");
                    abort(&format!("{name} hangs\n{report}"));
                }
            }
        });
        work();
        drop(running);
    });
}

/// Ends the process with a message that no test harness captures.
pub fn abort(message: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "{message}");
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::watched;
    use std::env;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::thread;
    use std::time::Duration;

    const SHORT: Duration = Duration::from_millis(100);

    /// In a process of its own, which the watchdog ends.
    #[test]
    fn work_without_progress_ends_the_process_with_a_report() {
        let name = "watchdog::tests::work_without_progress_ends_the_process_with_a_report";
        if env::var_os("SPANLOCK_HANGS").is_some() {
            let report = |(): &()| "nobody holds it".to_owned();
            return watched(SHORT, || (), report, || thread::sleep(super::HANG));
        }
        let own = env::current_exe().expect("a test has a file");
        let mut command = Command::new(own);
        command.args(["--exact", name]).env("SPANLOCK_HANGS", "1");
        let output = command.output().expect("a test can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("hangs\nnobody holds it"), "{text}");
    }

    #[test]
    fn work_with_progress_goes_on_past_the_limit() {
        let steps = AtomicU32::new(0);
        let progress = || steps.fetch_add(1, Relaxed);
        watched(
            SHORT,
            progress,
            |_| String::new(),
            || thread::sleep(4 * SHORT),
        );
        assert!(steps.into_inner() > 1);
    }
}
