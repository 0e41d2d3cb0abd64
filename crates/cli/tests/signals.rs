//! `spanlock run` and signals: the program gets those that are sent to `spanlock`, once, and they end together.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod compiler;

use compiler::compiled;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes so long: it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the program is run.
const WAYS: [&[&str]; 2] = [&[], &["--stats"]];

/// By the number that the program tells.
const SENT: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TERM,
    Signal::CONT,
    Signal::WINCH,
];

/// The program that tells of signals; `None`, with a word why, where there is no compiler.
fn program(test: &str) -> Option<PathBuf> {
    let name = format!("signals-{test}");
    compiled("signals.c", &name, &["-Wall", "-Wextra", "-Werror"], &[])
}

/// Runs a test of the program in each way, if there is a compiler for it.
fn in_each_way(test: &str, run: impl Fn(&'static [&'static str], &Path)) {
    if let Some(program) = program(test) {
        for way in WAYS {
            run(way, &program);
        }
    }
}

fn spanlock(way: &[&str], program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.arg("run").args(way).arg("--").arg(program);
    command.env_remove("LD_PRELOAD");
    command
}

/// What was started, which is killed when this is dropped, and what is written to its standard output.
struct Running {
    child: Child,
    lines: Receiver<String>,
    /// The program that tells of signals, once it has said so.
    program: Option<Pid>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // It ends with the last of those who can write there.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            program: None,
        }
    }

    /// The next line; panics if there is none.
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line is told")
    }

    fn await_ready(&mut self) {
        let line = self.line();
        let number = line.strip_prefix("ready ").map(str::parse).unwrap();
        self.program = Pid::from_raw(number.unwrap());
    }

    fn tells(&self, signal: Signal, by: &str) {
        assert_eq!(self.line(), format!("{} {by}", signal.as_raw()));
    }

    /// To the process that was started.
    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn send_to_program(&self, signal: Signal) {
        kill_process(self.program.unwrap(), signal).unwrap();
    }

    /// How it has ended; panics if it does not.
    fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends at the power signal, with the program's code, and reports nothing more.
    fn ends_in_silence(mut self, way: &[&str]) {
        self.send(Signal::POWER);
        assert_eq!(self.end().code(), Some(7), "{way:?}");
        self.is_silent_for_good();
    }

    /// Nobody is left who could write.
    fn is_silent_for_good(&self) {
        let next = self.lines.recv_timeout(PATIENCE);
        assert_eq!(next, Err(mpsc::RecvTimeoutError::Disconnected));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Each may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking()
            && let Some(program) = self.program
        {
            let _ = kill_process(program, Signal::KILL);
        }
    }
}

#[test]
fn what_is_sent_to_spanlock_the_program_gets() {
    in_each_way("sent", |way, program| {
        let mut running = Running::start(&mut spanlock(way, program));
        running.await_ready();
        for signal in SENT {
            running.send(signal);
            running.tells(signal, "process");
        }
        running.ends_in_silence(way);
    });
}

#[test]
fn without_statistics_the_process_is_the_programs() {
    let Some(program) = program("same") else {
        return;
    };
    let mut running = Running::start(&mut spanlock(&[], &program));
    running.await_ready();
    assert_eq!(running.program, Some(Pid::from_child(&running.child)));
    running.send(Signal::KILL);
    assert_eq!(running.end().signal(), Some(9));
}

#[test]
fn a_signal_that_ends_the_program_is_in_the_exit_status() {
    let Some(program) = program("ended") else {
        return;
    };
    let mut running = Running::start(spanlock(&["--stats"], &program).stderr(Stdio::null()));
    running.await_ready();
    running.send_to_program(Signal::KILL);
    assert_eq!(running.end().code(), Some(128 + 9));
}

#[test]
fn the_program_is_killed_with_spanlock_and_no_file_stays() {
    in_each_way("killed", |way, program| {
        let folder = tempfile::tempdir().unwrap();
        let mut running = Running::start(spanlock(way, program).env("TMPDIR", folder.path()));
        running.await_ready();
        running.send(Signal::KILL);
        assert_eq!(running.end().signal(), Some(9));
        running.is_silent_for_good();
        let left: Vec<_> = folder.path().read_dir().unwrap().collect();
        assert!(left.is_empty(), "{way:?}: {left:?}");
    });
}

/// A parent that ignores SIGCHLD leaves that to `spanlock`, which then is not told that its child ends.
#[test]
fn the_parent_of_spanlock_may_ignore_its_children() {
    let Some(program) = program("ignored") else {
        return;
    };
    let mut command = spanlock(&["--stats"], &program);
    let ignore = || {
        // SAFETY: no code is run for a signal that is ignored.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: it makes a system call and allocates nothing.
    unsafe { command.pre_exec(ignore) };
    let mut running = Running::start(command.stderr(Stdio::null()));
    running.await_ready();
    running.send(Signal::POWER);
    assert_eq!(running.end().code(), Some(7));
}

/// A pseudo-terminal: what is typed there.
struct Terminal {
    keyboard: File,
    screen: OwnedFd,
}

impl Terminal {
    /// `None`, with a word why, where none is to be had.
    fn new() -> Option<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)
            .inspect_err(|error| println!("skipped: there is no pseudo-terminal: {error}"))
            .ok()?;
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let screen = rustix::fs::open(
            OsStr::from_bytes(name.as_bytes()),
            flags,
            rustix::fs::Mode::empty(),
        );
        Some(Self {
            keyboard: master.into(),
            screen: screen.unwrap(),
        })
    }

    /// Has the command run as the leader of a session on this terminal.
    fn start(&self, command: &mut Command) -> Running {
        let lead = || {
            setsid()?;
            ioctl_tiocsctty(std::io::stdin())?;
            Ok(())
        };
        // SAFETY: it makes system calls and allocates nothing.
        unsafe { command.pre_exec(lead) };
        Running::start(command.stdin(self.screen.try_clone().unwrap()))
    }

    fn type_in(&mut self, key: u8) {
        self.keyboard.write_all(&[key]).unwrap();
    }
}

const CONTROL_C: u8 = 0x03;
const CONTROL_BACKSLASH: u8 = 0x1c;
const CONTROL_Z: u8 = 0x1a;

#[test]
fn what_a_terminal_sends_the_program_gets_once() {
    in_each_way("terminal", |way, program| {
        let Some(mut terminal) = Terminal::new() else {
            return;
        };
        let mut running = terminal.start(&mut spanlock(way, program));
        running.await_ready();
        // Signals that come at once may become one.
        for round in 1..=20 {
            terminal.type_in(CONTROL_C);
            running.tells(Signal::INT, "kernel");
            terminal.type_in(CONTROL_BACKSLASH);
            running.tells(Signal::QUIT, "kernel");
            let size = Winsize {
                ws_row: 24 + round,
                ws_col: 80,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            tcsetwinsize(&terminal.keyboard, size).unwrap();
            running.tells(Signal::WINCH, "kernel");
        }
        // By then `spanlock` has read what the terminal sent, with which the next one would become one signal.
        running.send(Signal::USR1);
        running.tells(Signal::USR1, "process");
        // What is sent is still told apart from what the terminal sends.
        running.send(Signal::INT);
        running.tells(Signal::INT, "process");
        running.ends_in_silence(way);
    });
}

#[test]
fn the_program_is_told_that_the_terminal_hangs_up() {
    in_each_way("hangs-up", |way, program| {
        let Some(terminal) = Terminal::new() else {
            return;
        };
        let mut running = terminal.start(&mut spanlock(way, program));
        running.await_ready();
        drop(terminal);
        let (hung_up, number) = (running.line(), Signal::HUP.as_raw());
        assert!(hung_up.starts_with(&format!("{number} ")), "{hung_up}");
        running.send(Signal::POWER);
        assert_eq!(running.end().code(), Some(7), "{way:?}");
    });
}

#[test]
fn a_shell_sees_the_program_stop_and_go_on() {
    in_each_way("stops", |way, program| {
        let Some(mut terminal) = Terminal::new() else {
            return;
        };
        let mut shell = Command::new("sh");
        let spanlock = [&[env!("CARGO_BIN_EXE_spanlock"), "run"], way, &["--"]].concat();
        let script = "set -m; \"$@\"; echo stopped $?; fg > /dev/null; echo ended $?";
        shell.args(["-c", script, "sh"]).args(spanlock).arg(program);
        let mut running = terminal.start(shell.env_remove("LD_PRELOAD").stderr(Stdio::null()));
        running.await_ready();
        terminal.type_in(CONTROL_Z);
        assert_eq!(running.line(), format!("stopped {}", 128 + libc::SIGTSTP));
        // From the shell to the whole job; `spanlock` cannot know.
        running.tells(Signal::CONT, "process");
        running.send_to_program(Signal::POWER);
        let rest: Vec<_> = running.lines.iter().collect();
        let again = format!("{} process", Signal::CONT.as_raw());
        let ended: Vec<_> = rest.iter().filter(|&line| *line != again).collect();
        assert_eq!(ended, ["ended 7"], "{way:?}");
    });
}
