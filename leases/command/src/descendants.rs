//! The processes that a program has started, and those that these have started.
//!
//! Linux tells of each process who its parent is. This process is made the *subreaper* of its descendants: it becomes
//! the parent of those whose parent has ended. So all that a program has started are found below this process, also
//! those that have made a session of their own.

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
    set_child_subreaper,
};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

/// When there were no descriptors left, or no memory.
const AGAIN: Duration = Duration::from_millis(10);

/// A process of the table. The time of its start tells it from others that have the number later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pid: Pid,
    parent: Option<Pid>,
    since: u64,
    /// It has ended, and nobody has asked for its status yet.
    has_ended: bool,
    pub(super) name: String,
}

impl Process {
    /// That of a number, if there is one.
    fn of(number: &str) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{number}/stat")) {
            Ok(text) => Ok(Self::read(&String::from_utf8_lossy(&text))),
            Err(why) if has_gone(&why) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// A line of `/proc/PID/stat`. The name, in parentheses, may contain anything.
    fn read(line: &str) -> Option<Self> {
        let (number, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<_> = rest.split_whitespace().collect();
        let pid = |text: &str| text.parse().ok().and_then(Pid::from_raw);
        let threads: u64 = fields.get(17)?.parse().ok()?;
        Some(Self {
            pid: pid(number)?,
            parent: pid(fields.get(1)?),
            since: fields.get(19)?.parse().ok()?,
            // Of the first thread; the others may run on.
            has_ended: ["Z", "X"].contains(fields.first()?) && threads <= 1,
            name: name.to_owned(),
        })
    }

    pub(super) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Nothing happens if it has ended meanwhile.
    fn signal(&self, signal: Signal) {
        let process = pidfd_open(self.pid, PidfdFlags::empty());
        let now = Self::of(&self.number().to_string());
        if now.is_ok_and(|now| now.is_none_or(|now| now.since != self.since)) {
            return;
        }
        let _ = match process {
            Ok(process) => pidfd_send_signal(&process, signal),
            // Where a sandbox forbids it, or there are no descriptors left.
            Err(_) => kill_process(self.pid, signal),
        };
    }
}

/// What is started from now on.
#[derive(Debug)]
pub(super) struct Descendants {
    /// Those of the program that started this one in its own place.
    not_ours: Vec<Process>,
}

impl Descendants {
    /// Those that are started after this.
    ///
    /// # Errors
    /// When the system does not tell who runs.
    pub(super) fn new() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self {
            not_ours: below(getpid(), table()?),
        })
    }

    /// Those that run. When the last of them ends, this process gets `SIGCHLD`.
    pub(super) fn running(&self) -> Vec<Process> {
        // It could be read before, so it can be read again.
        let mut table = loop {
            match table() {
                Ok(table) => break table,
                Err(_) => thread::sleep(AGAIN),
            }
        };
        let is_ours = |process: &Process| {
            !self
                .not_ours
                .iter()
                .any(|it| it.since == process.since && it.pid == process.pid)
        };
        table.retain(is_ours);
        let mut found = below(getpid(), table);
        found.retain(|process| !process.has_ended);
        found
    }

    /// Signals all that run.
    pub(super) fn signal(&self, signal: Signal) {
        for process in self.running() {
            process.signal(signal);
        }
    }
}

/// Whether an error says that there is no such process any more.
fn has_gone(why: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::SRCH];
    Errno::from_io_error(why).is_some_and(|errno| gone.contains(&errno))
}

fn table() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(number) = number {
            found.extend(Process::of(number)?);
        }
    }
    Ok(found)
}

/// Children of a process, their children, and so on.
fn below(root: Pid, table: Vec<Process>) -> Vec<Process> {
    let mut by_parent: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in table {
        if let Some(parent) = process.parent {
            by_parent.entry(parent).or_default().push(process);
        }
    }
    let mut found = by_parent.remove(&root).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let children = by_parent.remove(&process.pid);
        found.extend(children.unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Process, below};

    #[test]
    fn names_may_contain_what_separates_fields() {
        let line = |number: u32, name: &str, state: char, parent: u32| {
            let zeros = "0 ".repeat(17);
            Process::read(&format!("{number} ({name}) {state} {parent} {zeros}77 0"))
                .expect("a line")
        };
        let odd = line(7, "a) Z 1 (b", 'S', 3);
        assert_eq!((odd.number(), odd.since, odd.has_ended), (7, 77, false));
        assert_eq!(odd.name, "a) Z 1 (b");
        assert!(line(8, "c", 'Z', 7).has_ended);

        let table = vec![
            line(9, "d", 'S', 8),
            line(8, "c", 'Z', 7),
            odd.clone(),
            line(2, "e", 'S', 0),
        ];
        let found = below(odd.parent.expect("it has one"), table);
        let numbers: Vec<_> = found.iter().map(Process::number).collect();
        assert_eq!(numbers, [7, 8, 9]);
        assert_eq!(Process::read("7 (a) S"), None);
    }
}
