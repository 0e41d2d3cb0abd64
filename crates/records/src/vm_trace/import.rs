//! A trace from a recording: what strace, perf and `/proc/PID/smaps` wrote. `scripts/record-trace` makes recordings.
//!
//! A recording has one clock, so that calls and faults can be put in order. strace notes when a call began and ended,
//! and the call took effect in between; perf notes when a fault happened. An event counts as late as it may have
//! happened. A thread can map a place that another thread's call has just freed, while strace has seen the end of
//! neither: then the call that frees it is moved to the front.
//!
//! The events are checked on the [`model`](super::model): they must lead to the areas that the kernel reported.

mod faults;
mod smaps;
mod strace;

use crate::vm_trace::model::Model;
use crate::vm_trace::trace::{Area, Backing, Call, Event, Remap, Trace};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The files of a recording.
#[derive(Debug, Clone, Copy)]
pub struct Recording<'a> {
    /// `strace -f -y`, with calls' begin and length to the nanosecond and numbers in place of names.
    pub strace: &'a str,
    /// `perf script -F pid,tid,time,addr --ns`.
    pub faults: &'a str,
    /// `/proc/PID/smaps` when the program begins.
    pub before: &'a str,
    /// `/proc/PID/smaps` when it is about to end.
    pub after: &'a str,
    /// The process.
    pub process: u32,
    /// What was recorded, for those who read the trace.
    pub about: &'a str,
}

/// What a recording has that a trace has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Calls that failed.
    pub failed: usize,
    /// Faults where nothing is mapped, or nothing is allowed: the program got a signal.
    pub signals: usize,
}

/// Why a recording makes no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn wrong<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error(what.into()))
}

/// Nanoseconds since 1970.
type Time = u64;

/// A time in seconds, with nine digits after the point.
fn time(seconds: &str) -> Option<Time> {
    let (whole, part) = seconds.split_once('.')?;
    let part = (part.len() == 9).then_some(part)?;
    let (whole, part): (u64, u64) = (whole.parse().ok()?, part.parse().ok()?);
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

/// What a line of a recording says, before threads and files have numbers.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The kernel's number of the thread.
    thread: u32,
    begin: Time,
    end: Time,
    call: Call,
}

/// Numbers for files, by name.
#[derive(Debug, Default)]
struct Files(HashMap<String, u32>);

impl Files {
    fn number(&mut self, name: &str) -> u32 {
        // strace and smaps differ in how they write that a file has no name any more.
        let name = name.strip_suffix("(deleted)").unwrap_or(name).trim_end();
        let name = name.trim_start_matches('/');
        let next = u32::try_from(self.0.len()).expect("files are fewer than lines");
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

/// Makes a trace of a recording.
///
/// # Errors
/// What is missing, or does not fit together.
pub fn import(recording: &Recording<'_>) -> Result<(Trace, LeftOut), Error> {
    let mut files = Files::default();
    let mut before = smaps::areas("before", recording.before, &mut files)?;
    let after = smaps::areas("after", recording.after, &mut files)?;
    let calls = strace::calls(recording.strace, recording.process, &mut files)?;
    let mut left_out = LeftOut {
        failed: calls.failed,
        signals: 0,
    };
    grow_stack(&mut before, &after);

    let span = calls.begin..calls.end;
    let faults = faults::faults(recording.faults, recording.process)?;
    let faults = faults.into_iter().filter(|seen| span.contains(&seen.end));
    let mut seen: Vec<_> = calls
        .seen
        .into_iter()
        .filter(|seen| seen.begin < span.end)
        .collect();
    seen.extend(faults);
    seen.sort_by_key(|seen| seen.end);

    let heap = calls.heap.unwrap_or(0);
    let about = recording.about.to_owned();
    let mut trace = Trace {
        about,
        heap,
        before,
        events: Vec::new(),
        after,
    };
    let mut model = Model::new(&trace);
    let ordered = order(seen, &mut model, &mut left_out)?;
    compare(&model.areas(), &trace.after)?;
    trace.events = events(&ordered, span.start);
    Ok((trace, left_out))
}

/// The main thread's stack grows by faults. In a trace it has its final size from the beginning.
fn grow_stack(before: &mut [Area], after: &[Area]) {
    use crate::vm_trace::trace::attribute::GROWS_DOWN;
    for stack in before
        .iter_mut()
        .filter(|area| area.attributes & GROWS_DOWN != 0)
    {
        if let Some(grown) = after.iter().find(|area| area.end == stack.end) {
            stack.start = stack.start.min(grown.start);
        }
    }
}

/// Puts what was seen in an order in which it can have happened.
fn order(seen: Vec<Seen>, model: &mut Model, left_out: &mut LeftOut) -> Result<Vec<Seen>, Error> {
    let mut waiting: std::collections::VecDeque<_> = seen.into();
    let mut ordered = Vec::new();
    while let Some(mut next) = waiting.pop_front() {
        if let Call::Fault { page, access } = &mut next.call {
            match model.access(*page) {
                Some(allowed) => *access = allowed,
                None => {
                    left_out.signals += 1;
                    continue;
                }
            }
        }
        let Err(impossible) = model.apply(&next.call) else {
            ordered.push(next);
            continue;
        };
        // Calls of other threads that had begun when this ended may have taken effect before.
        let begun = |other: &&Seen| other.begin < next.end && other.thread != next.thread;
        let freeing = waiting.iter().position(|other| {
            begun(&other) && !other.call.is_fault() && meets(&other.call, &next.call)
        });
        match freeing.and_then(|at| waiting.remove(at)) {
            Some(freeing) => {
                waiting.push_front(next);
                waiting.push_front(freeing);
            }
            None => return wrong(format!("thread {}: {impossible}", next.thread)),
        }
    }
    Ok(ordered)
}

/// Whether a call unmaps pages that another needs.
fn meets(freeing: &Call, taking: &Call) -> bool {
    let (Call::Unmap { start, pages }
    | Call::Remap(Remap {
        from: start, pages, ..
    })) = *freeing
    else {
        return false;
    };
    let meets = |range: std::ops::Range<u64>| range.start < start + pages && start < range.end;
    taking.ranges(0).into_iter().any(meets)
}

/// Checks that both are the same areas.
fn compare(found: &[Area], reported: &[Area]) -> Result<(), Error> {
    let differing = found
        .iter()
        .zip(reported)
        .find(|(found, reported)| found != reported);
    match differing {
        Some((found, reported)) => wrong(format!(
            "the recorded events lead to {found:x?}, and the kernel reported {reported:x?}"
        )),
        None if found.len() != reported.len() => wrong(format!(
            "the recorded events lead to {} areas, and the kernel reported {}",
            found.len(),
            reported.len()
        )),
        None => Ok(()),
    }
}

/// Numbers threads in order of appearance, and measures what each did between its events.
fn events(seen: &[Seen], begin: Time) -> Vec<Event> {
    let mut threads: BTreeMap<u32, (usize, Time)> = BTreeMap::new();
    let mut events = Vec::new();
    for seen in seen {
        let next = threads.len();
        let (thread, last) = threads.entry(seen.thread).or_insert((next, begin));
        let think = seen.begin.saturating_sub(*last) / 1000;
        *last = seen.end;
        events.push(Event {
            thread: *thread,
            think,
            call: seen.call,
        });
    }
    events
}

/// The page of an address.
const fn page(address: u64) -> u64 {
    address / crate::vm_trace::trace::PAGE
}

/// The pages that so many bytes take.
const fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(crate::vm_trace::trace::PAGE)
}

/// The backing of a mapping of a file from this byte on.
fn file(files: &mut Files, name: &str, byte: u64) -> Backing {
    Backing::File {
        file: files.number(name),
        page: page(byte),
    }
}
