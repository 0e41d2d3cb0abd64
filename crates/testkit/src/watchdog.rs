//! The watchdog: ends a process whose work gets nowhere.
//!
//! Its limit counts the time that the process *had*, in steps of a sixtieth of the limit. When none of the process's
//! threads wants a processor or waits for a disk, the process is asleep, and a step counts as a whole. Otherwise the
//! step counts as long as the process ran in it. So a deadlock and an endless loop are found after the limit, and a
//! process that others leave no processor has as long as it needs. A step never counts more than a step: time in which
//! the process or the machine was stopped does not count. On systems other than Linux, and under Miri, each step counts
//! as a whole.

use std::io::Write;
use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A scenario that has so much time and does not end hangs, on any machine.
pub const HANG: Duration = Duration::from_secs(60);

/// How often a limit is looked at before it is over.
const STEPS: u32 = 60;

/// Does `work`. When `progress` stays the same while the process has [as much time](self) as `patience`, prints what
/// `report` says and aborts.
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
            let step = patience / STEPS;
            let (mut had, mut ran) = (Duration::ZERO, process::ran());
            while ended.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
                let before = mem::replace(&mut ran, process::ran());
                had += match process::is_asleep() {
                    true => step,
                    false => step.min(ran.saturating_sub(before)),
                };
                if had < patience {
                    continue;
                }
                had = Duration::ZERO;
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

/// What Linux says of the process.
#[cfg(all(target_os = "linux", not(miri)))]
mod process {
    use std::fs::{self, File};
    use std::io::Read;
    use std::time::Duration;

    /// For how long its threads, and those that have ended, have had a processor.
    pub(super) fn ran() -> Duration {
        let mut ran = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: it writes to the place it is given.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut ran) };
        assert_eq!(failed, 0, "every process has this clock");
        Duration::new(ran.tv_sec as u64, ran.tv_nsec as u32)
    }

    /// Whether none of its threads, apart from the one that asks, has a processor, wants one, or waits for a disk.
    /// Where threads cannot be looked at they are taken to be asleep.
    pub(super) fn is_asleep() -> bool {
        let Ok(threads) = fs::read_dir("/proc/self/task") else {
            return true;
        };
        let own = fs::read_link("/proc/thread-self").unwrap_or_default();
        let mut others = threads
            .map_while(Result::ok)
            .filter(|thread| own.file_name() != Some(&thread.file_name()));
        // The state is behind the name, which is in parentheses. A thread that has ended has none. Tests of memory
        // are watched, so little is allocated.
        others.all(|thread| {
            let mut stat = [0; 256];
            let opened = File::open(thread.path().join("stat"));
            let read = opened.and_then(|mut file| file.read(&mut stat));
            let behind = stat[..read.unwrap_or(0)]
                .rsplit(|&byte| byte == b')')
                .next();
            !behind.is_some_and(|state| state.starts_with(b" R") || state.starts_with(b" D"))
        })
    }
}

/// Elsewhere nothing is known of it.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod process {
    use std::time::Duration;

    pub(super) fn ran() -> Duration {
        Duration::ZERO
    }

    pub(super) fn is_asleep() -> bool {
        true
    }
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
    use std::process::{Command, Output};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    use std::thread;
    use std::time::Duration;

    const SHORT: Duration = Duration::from_millis(100);

    /// Says to a process of [`elsewhere`] what it is.
    const CHILD: &str = "SPANLOCK_WATCHED";

    fn is_the_child() -> bool {
        env::var_os(CHILD).is_some()
    }

    /// A process of its own that runs the test of that name, which finds [itself there](is_the_child).
    fn elsewhere(name: &str) -> Command {
        let own = env::current_exe().expect("a test has a file");
        let mut command = Command::new(own);
        let name = format!("watchdog::tests::{name}");
        command.args(["--exact", &name]).env(CHILD, "1");
        command
    }

    fn watched_for(patience: Duration, work: impl FnOnce()) {
        watched(patience, || (), |()| "nobody holds it".to_owned(), work);
    }

    fn is_ended(output: &Output) {
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("hangs\nnobody holds it"), "{text}");
    }

    #[test]
    fn work_that_sleeps_without_progress_ends_the_process_with_a_report() {
        if is_the_child() {
            return watched_for(SHORT, || thread::sleep(super::HANG));
        }
        let name = "work_that_sleeps_without_progress_ends_the_process_with_a_report";
        is_ended(&elsewhere(name).output().expect("a test can be started"));
    }

    #[test]
    fn work_that_spins_without_progress_ends_the_process_with_a_report() {
        if is_the_child() {
            return watched_for(SHORT, || {
                loop {
                    std::hint::spin_loop();
                }
            });
        }
        let name = "work_that_spins_without_progress_ends_the_process_with_a_report";
        is_ended(&elsewhere(name).output().expect("a test can be started"));
    }

    /// A process that is stopped stands for one that others leave no processor.
    #[cfg(target_os = "linux")]
    #[test]
    fn time_that_the_process_does_not_have_does_not_count() {
        const LIMIT: Duration = Duration::from_secs(1);
        if is_the_child() {
            return watched_for(LIMIT, || {
                // The watchdog looks before that and afterwards.
                thread::sleep(LIMIT / 10);
                // SAFETY: raise has no preconditions.
                unsafe { libc::raise(libc::SIGSTOP) };
                thread::sleep(LIMIT / 10);
            });
        }
        let name = "time_that_the_process_does_not_have_does_not_count";
        let child = elsewhere(name).spawn();
        let mut child = child.expect("a test can be started");
        let pid = child.id() as libc::pid_t;
        let mut status = 0;
        // SAFETY: it writes to the place it is given.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) };
        assert!(waited == pid && libc::WIFSTOPPED(status), "{status:x}");
        thread::sleep(2 * LIMIT);
        // SAFETY: kill has no preconditions, and the process is a child that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        assert!(child.wait().expect("it is ours").success());
    }

    /// Has the calling thread, and those that it starts, stay on one processor.
    #[cfg(target_os = "linux")]
    fn stay() {
        // SAFETY: it has no preconditions.
        let here = unsafe { libc::sched_getcpu() };
        // SAFETY: a set is an array of bits.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the processor has a bit in the set, or it changes nothing.
        unsafe { libc::CPU_SET(here as usize, &mut set) };
        // SAFETY: the set is live.
        let stays = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
        assert_eq!(stays, 0, "it may run there");
    }

    /// Has the calling thread run only when no other thread wants the processor, or seldom.
    #[cfg(target_os = "linux")]
    fn give_way() {
        // SAFETY: it is plain data.
        let priority: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: the parameter is live.
        let gives = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) };
        assert_eq!(gives, 0, "every thread may");
    }

    /// Beside another process that spins on the same processor.
    #[cfg(target_os = "linux")]
    #[test]
    fn time_in_which_others_have_the_processor_does_not_count() {
        const LIMIT: Duration = Duration::from_millis(500);
        if is_the_child() {
            return watched_for(LIMIT, || {
                give_way();
                let before = super::process::ran();
                while super::process::ran() - before < LIMIT / 50 {
                    std::hint::spin_loop();
                }
            });
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            stay();
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let name = "time_in_which_others_have_the_processor_does_not_count";
            let output = elsewhere(name).output();
            is_over.store(true, Relaxed);
            let output = output.expect("a test can be started");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
        });
    }

    #[test]
    fn work_with_progress_goes_on_past_the_limit() {
        let steps = AtomicU32::new(0);
        let progress = || steps.fetch_add(1, Relaxed);
        let report = |_: &u32| String::new();
        watched(SHORT, progress, report, || {
            // The second look at the progress is at the end of the limit.
            while steps.load(Relaxed) < 3 {
                thread::sleep(SHORT / 10);
            }
        });
    }
}
