//! Calls from the output of strace.
//!
//! A line is `THREAD SECONDS call(arguments) = result <SECONDS>`, with numbers in place of names. When another thread's
//! line comes in between it is two: `call(arguments <unfinished ...>` and `<... call resumed>arguments) = …`.

use super::{Error, Files, Seen, Time, file, page, pages, time, wrong};
use crate::vm_trace::model::linux;
use crate::vm_trace::trace::{Backing, Call, Map, Remap};
use std::collections::{HashMap, HashSet};

/// The thread shares its address space's process (`CLONE_THREAD`).
const CLONE_THREAD: u64 = 0x10000;

/// The calls of a process.
pub(super) struct Calls {
    /// When its program began.
    pub(super) begin: Time,
    /// When it was about to end.
    pub(super) end: Time,
    /// Calls that changed something, with the kernel's numbers of threads.
    pub(super) seen: Vec<Seen>,
    /// The page where the heap begins, if there is one.
    pub(super) heap: Option<u64>,
    /// Calls that failed.
    pub(super) failed: usize,
}

/// One call, with both of its lines put together.
struct Line<'a> {
    thread: u32,
    begin: Time,
    end: Time,
    name: &'a str,
    arguments: String,
    /// What it yielded; `None` if it failed, or never ended.
    result: Option<u64>,
}

pub(super) fn calls(text: &str, process: u32, files: &mut Files) -> Result<Calls, Error> {
    let lines = lines(text)?;
    let threads = threads(&lines, process);
    let (mut begin, mut end) = (None, None);
    let (mut seen, mut heap, mut failed) = (Vec::new(), None, 0);
    // Where the heap ends, as far as the thread that moves it knows.
    let mut heap_end = None;
    for line in lines {
        match line.name {
            _ if !threads.contains(&line.thread) => {}
            "clone" | "clone3" | "fork" | "vfork" => {}
            "execve" if line.result.is_some() => {
                begin = Some(line.end);
                (seen, heap, heap_end, failed) = (Vec::new(), None, None, 0);
            }
            "exit_group" => end = end.or(Some(line.begin)),
            _ if line.result.is_none() => failed += 1,
            "brk" => {
                let now = pages(line.result.unwrap_or(0));
                heap = heap.or(Some(now));
                if heap_end.replace(now).is_some_and(|before| before != now) {
                    seen.push(line.seen(Call::Break { end: now }));
                }
            }
            _ => match line.call(files) {
                // A call for no bytes changes nothing.
                Some(call) if call.ranges(0)[0].is_empty() => {}
                Some(call) => seen.push(line.seen(call)),
                None => return wrong(format!("strace: `{}({})`", line.name, line.arguments)),
            },
        }
    }
    match (begin, end) {
        (Some(begin), Some(end)) => Ok(Calls {
            begin,
            end,
            seen,
            heap,
            failed,
        }),
        (None, _) => wrong(format!("strace: process {process} has started no program")),
        (_, None) => wrong(format!("strace: process {process} has not ended by itself")),
    }
}

/// The threads of a process. A thread may run before strace has seen the end of the call that made it.
fn threads(lines: &[Line<'_>], process: u32) -> HashSet<u32> {
    let mut made: Vec<_> = lines.iter().filter(|line| is_thread(line)).collect();
    made.sort_by_key(|line| line.begin);
    let mut threads = HashSet::from([process]);
    for line in made {
        let child = line
            .result
            .and_then(small)
            .filter(|_| threads.contains(&line.thread));
        threads.extend(child);
    }
    threads
}

fn is_thread(line: &Line<'_>) -> bool {
    let makes = ["clone", "clone3"].contains(&line.name);
    let flags = line
        .arguments
        .split_once("flags=")
        .filter(|_| makes)
        .map(|(_, rest)| rest);
    let digits = flags.and_then(|rest| rest.split([',', '}', '|', ' ', ')']).next());
    digits
        .and_then(number)
        .is_some_and(|flags| flags & CLONE_THREAD != 0)
}

/// The calls by the time at which strace saw them begin; those that never end last.
fn lines(text: &str) -> Result<Vec<Line<'_>>, Error> {
    let mut lines = Vec::new();
    let mut unfinished: HashMap<u32, Line<'_>> = HashMap::new();
    for line in text.lines() {
        let Some((thread, at, rest)) = parts(line) else {
            return wrong(format!("strace: `{line}`"));
        };
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        let call = if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some(begun) = unfinished.remove(&thread) else {
                return wrong(format!(
                    "strace: nothing of thread {thread} could be resumed"
                ));
            };
            let (_, rest) = resumed.split_once("resumed>").unwrap_or(("", resumed));
            let arguments = begun.arguments + rest;
            Line {
                end: at,
                arguments,
                ..begun
            }
        } else {
            let Some((name, arguments)) = rest.split_once('(') else {
                return wrong(format!("strace: `{line}`"));
            };
            let call = Line {
                thread,
                begin: at,
                end: at,
                name,
                arguments: String::new(),
                result: None,
            };
            match arguments.strip_suffix("<unfinished ...>") {
                Some(arguments) => {
                    unfinished.insert(
                        thread,
                        Line {
                            arguments: arguments.to_owned(),
                            ..call
                        },
                    );
                    continue;
                }
                None => Line {
                    arguments: arguments.to_owned(),
                    ..call
                },
            }
        };
        lines.push(ended(call));
    }
    lines.extend(unfinished.into_values());
    Ok(lines)
}

/// The thread, the time, and the rest of a line.
fn parts(line: &str) -> Option<(u32, Time, &str)> {
    let (thread, rest) = line.split_once(' ')?;
    let (at, rest) = rest.trim_start().split_once(' ')?;
    Some((thread.parse().ok()?, time(at)?, rest))
}

/// Splits `arguments) = result <SECONDS>`.
fn ended(line: Line<'_>) -> Line<'_> {
    let Some((arguments, outcome)) = line.arguments.rsplit_once(") = ").or_else(|| {
        // strace aligns results in columns.
        let (arguments, outcome) = line.arguments.rsplit_once(" = ")?;
        Some((arguments.trim_end().strip_suffix(')')?, outcome))
    }) else {
        return line;
    };
    let result = outcome.split(' ').next().and_then(number);
    let took = outcome
        .rsplit_once('<')
        .and_then(|(_, took)| time(took.strip_suffix('>')?));
    // A resumed line has the time of its end, and any other that of its beginning.
    let end = line.end.max(line.begin + took.unwrap_or(0));
    Line {
        end,
        arguments: arguments.trim_end().to_owned(),
        result,
        ..line
    }
}

fn number(digits: &str) -> Option<u64> {
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

impl Line<'_> {
    const fn seen(&self, call: Call) -> Seen {
        Seen {
            thread: self.thread,
            begin: self.begin,
            end: self.end,
            call,
        }
    }

    /// The call that this line is; `None` if it is none of ours.
    fn call(&self, files: &mut Files) -> Option<Call> {
        let arguments: Vec<_> = self.arguments.split(", ").collect();
        let at = |index: usize| {
            let argument = arguments.get(index)?;
            if *argument == "NULL" {
                Some(0)
            } else {
                number(argument)
            }
        };
        let result = page(self.result?);
        Some(match self.name {
            "mmap" => {
                let flags = small(at(3)?)?;
                let backing = if flags & linux::MAP_ANONYMOUS == 0 {
                    let (_, name) = arguments.get(4)?.split_once('<')?;
                    file(files, name.strip_suffix('>')?, at(5)?)
                } else {
                    Backing::Anonymous
                };
                let (pages, protection) = (pages(at(1)?), small(at(2)?)?);
                Call::Map(Map {
                    start: result,
                    pages,
                    protection,
                    flags,
                    backing,
                })
            }
            "munmap" => Call::Unmap {
                start: page(at(0)?),
                pages: pages(at(1)?),
            },
            "mprotect" => {
                let (start, pages, protection) = (page(at(0)?), pages(at(1)?), small(at(2)?)?);
                Call::Protect {
                    start,
                    pages,
                    protection,
                }
            }
            "madvise" => {
                let (start, pages, advice) = (page(at(0)?), pages(at(1)?), small(at(2)?)?);
                Call::Advise {
                    start,
                    pages,
                    advice,
                }
            }
            "mremap" => {
                let (from, pages, grown) = (page(at(0)?), pages(at(1)?), pages(at(2)?));
                Call::Remap(Remap {
                    from,
                    pages,
                    start: result,
                    grown,
                })
            }
            _ => return None,
        })
    }
}
