//! The counts of the preload library.

use super::symbols::{Symbols, demangled};
use crate::failure::Result;
use crate::output::Format;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Locks in the table; JSON has all.
const HOTTEST: usize = 20;

/// Characters of a function's name in the table; JSON has all.
const NAME: usize = 70;

/// Processes that a sentence names.
const NAMED: usize = 5;

/// A line that the library writes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    /// When a process exits, for each lock.
    Lock(Lock),
    /// When the library is loaded.
    Loaded { process: u32, program: String },
    /// When a process exits.
    Exited { process: u32, exited: bool },
}

/// One lock of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lock {
    process: u32,
    /// Its address, or 0x0: all that came after there was no more room.
    lock: String,
    /// The functions that acquired it first, the innermost first.
    callers: Vec<Caller>,
    fast_reads: u64,
    slow_reads: u64,
    writes: u64,
    waited_ns: u64,
}

/// A place in code from which a lock was acquired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Caller {
    /// As the dynamic linker knows it; empty if it does not.
    at: String,
    /// The file that this is in, and how far from its beginning, as loaded.
    object: String,
    offset: u64,
    /// The function that this is, and the line, as the file says.
    #[serde(skip_deserializing)]
    function: Option<String>,
    #[serde(skip_deserializing)]
    line: Option<String>,
    /// How tools call that place.
    #[serde(skip)]
    address: Option<u64>,
}

/// A process that has loaded the library, or was forked by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Process {
    process: u32,
    /// Its program; empty if it was forked and ran none of its own.
    program: String,
    /// Whether it has written what it counted.
    counted: bool,
}

/// All that was written.
#[derive(Debug, Default)]
struct Counted {
    /// The hottest first.
    locks: Vec<Lock>,
    processes: Vec<Process>,
}

impl Lock {
    fn reads(&self) -> u64 {
        self.fast_reads + self.slow_reads
    }

    fn acquisitions(&self) -> u64 {
        self.reads() + self.writes
    }

    fn name(&mut self, symbols: &mut Symbols) {
        for caller in &mut self.callers {
            caller.name(symbols);
        }
    }

    /// The function that acquired it first, if it has a name.
    fn function(&self) -> Option<&str> {
        self.callers.first()?.function.as_deref()
    }

    /// The functions that acquired it first, as many as asked for.
    fn places(&self, most: usize) -> String {
        let places: Vec<_> = self.callers.iter().take(most).map(Caller::place).collect();
        match &places[..] {
            [] => "not known".to_owned(),
            places => places.join("\n      called by "),
        }
    }
}

impl Caller {
    /// Finds the function and the line.
    fn name(&mut self, symbols: &mut Symbols) {
        self.address = symbols.address(&self.object, self.offset);
        if let Some(place) = symbols.caller(&self.object, self.offset) {
            (self.function, self.line) = (Some(place.function), place.line);
        } else if let Some((name, _)) = self.at.split_once(" (") {
            let (name, _) = name.rsplit_once('+').unwrap_or((name, ""));
            self.function = Some(demangled(name));
        }
    }

    fn place(&self) -> String {
        let function = self.function.as_deref().map(shortened);
        match (function, &self.line) {
            (Some(function), Some(line)) => format!("{function}, {line}"),
            (Some(function), None) => format!("{function}, in {}", self.object),
            (None, _) if self.at.is_empty() => "not known".to_owned(),
            (None, _) => self.at.clone(),
        }
    }
}

/// A name that fits a line. Those of templates may be longer.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

impl Counted {
    /// A line that a dying process cut short is left out.
    fn read(text: &str) -> Self {
        let mut counted = Self::default();
        for line in text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
        {
            match line {
                Line::Lock(lock) => counted.locks.push(lock),
                Line::Loaded { process, program } => {
                    // One program may be followed by another in the same process.
                    counted.processes.retain(|it| it.process != process);
                    counted.processes.push(Process {
                        process,
                        program,
                        counted: false,
                    });
                }
                Line::Exited { process, exited } => counted.end(process, exited),
            }
        }
        let hottest = |lock: &Lock| std::cmp::Reverse(lock.acquisitions());
        counted.locks.sort_by_key(hottest);
        counted
    }

    fn end(&mut self, process: u32, exited: bool) {
        match self.processes.iter_mut().find(|it| it.process == process) {
            Some(known) => known.counted = exited,
            None => self.processes.push(Process {
                process,
                program: String::new(),
                counted: exited,
            }),
        }
    }

    fn lines(&self) -> String {
        let lock = |lock| serde_json::to_string(lock).expect("numbers and strings") + "\n";
        let process = |it| serde_json::to_string(it).expect("numbers and strings") + "\n";
        let locks = self.locks.iter().map(lock);
        locks.chain(self.processes.iter().map(process)).collect()
    }

    /// For people, at most 80 columns wide but for names. `process` was started, and ended with that status.
    fn text(&self, process: u32, status: ExitStatus) -> String {
        let mut text = String::new();
        if !self.locks.is_empty() {
            self.write_table(&mut text);
        }
        let (counted, mut unknown): (Vec<_>, Vec<_>) =
            self.processes.iter().partition(|it| it.counted);
        let started = unknown.iter().position(|it| it.process == process);
        if let (Some(signal), Some(started)) = (status.signal(), started) {
            let _ = writeln!(
                text,
                "Counts are written by exit(), but signal {signal} killed {}.",
                names(&[unknown.remove(started)])
            );
        }
        if self.processes.is_empty() {
            text += "Nothing was counted: no process has loaded the library. It is not loaded into\n\
                     programs that are linked statically, are setuid, have capabilities, or are\n\
                     started without LD_PRELOAD.\n";
        } else if self.locks.is_empty() && !counted.is_empty() {
            let _ = writeln!(
                text,
                "No pthread_rwlock was used by {}.\n(The locks of Rust's standard library, of Go and of Java are others.)",
                names(&counted)
            );
        }
        if !unknown.is_empty() {
            let _ = writeln!(
                text,
                "Nothing is known of {}.\nCounts are written by exit(). It was killed, called _exit, became a program that\n\
                 does not load the library, may not open the file of counts, or still runs.",
                names(&unknown)
            );
        }
        text
    }

    fn write_table(&self, text: &mut String) {
        let shown = &self.locks[..self.locks.len().min(HOTTEST)];
        let (all, processes) = (self.locks.len(), self.processes.len());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} hottest of {all} pthread_rwlocks in {processes} process(es)\n\
             {:>12} {:>6} {:>12} {:>9} {:>8}  lock\n    first acquired in",
            shown.len(),
            "reads",
            "fast",
            "writes",
            "waited",
            "process",
        );
        // A function that acquires several of the locks does not tell them apart. Its callers may.
        let is_wrapper = |lock: &Lock| {
            let function = lock.function();
            function.is_some() && shown.iter().filter(|it| it.function() == function).count() > 1
        };
        for lock in shown {
            let fast = match lock.reads() {
                0 => "-".to_owned(),
                reads => format!("{:.1}%", 100.0 * lock.fast_reads as f64 / reads as f64),
            };
            let waited = format!("{:.1?}", Duration::from_nanos(lock.waited_ns));
            let _ = writeln!(
                text,
                "{:>12} {fast:>6} {:>12} {waited:>9} {:>8}  {}\n    {}",
                lock.reads(),
                lock.writes,
                lock.process,
                lock.lock,
                lock.places(if is_wrapper(lock) { usize::MAX } else { 1 }),
            );
        }
        let nameless = |lock: &Lock| match lock.callers.first()? {
            Caller {
                function: Some(_), ..
            } => None,
            caller => Some((caller.object.clone(), caller.address?)),
        };
        if let Some((object, address)) = shown.iter().find_map(nameless) {
            let _ = writeln!(
                text,
                "Where no function is named the file has neither symbols nor debug information.\nLink it with \
                 -rdynamic, build it with -g, or give a copy that has them to\naddr2line -Cfe {object} {address:#x}"
            );
        }
    }
}

/// Processes, and what they ran.
fn names(processes: &[&Process]) -> String {
    let name = |it: &&Process| {
        let program = if it.program.is_empty() {
            "forked"
        } else {
            &it.program
        };
        format!("{} ({program})", it.process)
    };
    let named: Vec<_> = processes.iter().take(NAMED).map(name).collect();
    let more = match processes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if processes.len() == 1 {
        "process"
    } else {
        "processes"
    };
    format!("{noun} {}{more}", named.join(", "))
}

/// Prints what the library has written, to the standard error: the standard output is the program's.
pub(super) fn print(text: &str, format: Format, process: u32, status: ExitStatus) -> Result {
    let mut counted = Counted::read(text);
    let named = match format {
        Format::Table => HOTTEST.min(counted.locks.len()),
        Format::Json => counted.locks.len(),
    };
    let mut symbols = Symbols::default();
    for lock in &mut counted.locks[..named] {
        lock.name(&mut symbols);
    }
    let text = match format {
        Format::Table => counted.text(process, status),
        Format::Json => counted.lines(),
    };
    Ok(io::stderr().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::Counted;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const LOCKS: &str = "\
        {\"process\":7,\"program\":\"/bin/a\"}\n\
        {\"process\":7,\"lock\":\"0x10\",\"callers\":[{\"at\":\"_ZN1a1fEv+0x1 (/bin/a)\",\"object\":\"/none\",\"offset\":9}],\
        \"fast_reads\":0,\"slow_reads\":0,\"writes\":2,\"waited_ns\":9}\n\
        {\"process\":7,\"lock\":\"0x20\",\"callers\":[{\"at\":\"/bin/a+0x9\",\"object\":\"/none\",\"offset\":9}],\
        \"fast_reads\":3,\"slow_reads\":1,\"writes\":0,\"waited_ns\":18446744073709551615}\n\
        {\"process\":7,\"exited\":true}\n\
        {\"process\":8,\"lo";

    fn text(lines: &str, status: i32) -> String {
        let mut counted = Counted::read(lines);
        for lock in &mut counted.locks {
            lock.name(&mut Default::default());
        }
        counted.text(7, ExitStatus::from_raw(status))
    }

    #[test]
    fn the_hottest_comes_first_and_what_was_cut_short_is_left_out() {
        let counted = Counted::read(LOCKS);
        let names: Vec<_> = counted.locks.iter().map(|lock| &lock.lock[..]).collect();
        assert_eq!(names, ["0x20", "0x10"]);
        let text = text(LOCKS, 0);
        for word in ["75.0%", "a::f()", "/bin/a+0x9"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        assert!(!text.contains("Nothing"), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }

    #[test]
    fn callers_are_named_where_one_function_acquires_several_locks() {
        let lock = |lock: u32, caller: &str| {
            let at = |name: &str| {
                format!("{{\"at\":\"{name}+0x1 (/bin/a)\",\"object\":\"/none\",\"offset\":9}}")
            };
            format!(
                "{{\"process\":7,\"lock\":\"0x{lock}\",\"callers\":[{},{}],\
                 \"fast_reads\":0,\"slow_reads\":1,\"writes\":0,\"waited_ns\":0}}\n",
                at("wrapper"),
                at(caller)
            )
        };
        let alone = text(&lock(1, "first"), 0);
        assert!(
            alone.contains("wrapper") && !alone.contains("first,"),
            "{alone}"
        );
        let both = text(&(lock(1, "first") + &lock(2, "second")), 0);
        for caller in ["called by first, in", "called by second, in"] {
            assert!(both.contains(caller), "{both}");
        }
    }

    #[test]
    fn reasons_for_no_locks_are_told_apart() {
        let not_loaded = text("", 0);
        assert!(not_loaded.contains("no process has loaded"), "{not_loaded}");
        let loaded = "{\"process\":7,\"program\":\"/bin/a\"}\n";
        let killed = text(loaded, 9);
        assert!(
            killed.contains("signal 9 killed process 7 (/bin/a)"),
            "{killed}"
        );
        let left = text(loaded, 0);
        assert!(left.contains("_exit") && !left.contains("signal"), "{left}");
        let exited = loaded.to_owned() + "{\"process\":7,\"exited\":true}\n";
        let unused = text(&exited, 0);
        assert!(
            unused.contains("No pthread_rwlock was used by process 7 (/bin/a)"),
            "{unused}"
        );
        // Another program in the same process, which was not left as it should be.
        let followed = text(&(exited + loaded), 0);
        assert!(
            followed.contains("Nothing is known of process 7"),
            "{followed}"
        );
    }
}
