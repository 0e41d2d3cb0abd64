//! Which events of other threads an event has to wait for.
//!
//! Threads of a recording took turns by locks that are not recorded. Threads that replay it flat out would map where
//! another thread has not unmapped yet. So an event waits for the events before it, in the order of the trace, that
//! touch the same pages, unless both are faults. Events on disjoint pages commute: areas that are neighbours become
//! one in any order.
//!
//! A wait is a number of events of one other thread that must be over. Waits that follow from others are left out:
//! threads keep their own order.

use crate::vm_trace::trace::Trace;
use std::collections::BTreeMap;

/// What an event waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The other thread.
    pub thread: usize,
    /// So many of its events must be over.
    pub events: usize,
}

/// The waits of all events of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    waits: Vec<Wait>,
    /// Where in `waits` those of each event end.
    ends: Vec<usize>,
}

impl Waits {
    /// Those of the event with this number.
    #[must_use]
    pub fn of(&self, event: usize) -> &[Wait] {
        let start = event.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.waits[start..self.ends[event]]
    }
}

/// The last events on some pages.
#[derive(Debug, Clone, Default)]
struct Touched {
    /// The page after the last.
    end: u64,
    /// The last call, and the faults since: by thread, the number of events that must be over.
    call: Option<Wait>,
    faults: Vec<Wait>,
}

/// Finds what each event of a trace waits for.
#[must_use]
pub fn waits(trace: &Trace) -> Waits {
    let threads = trace.threads();
    let mut over = vec![0; threads]; // events of each thread so far
    let mut waited = vec![vec![0; threads]; threads]; // by thread: what it has waited for in each other
    let mut heap = trace.heap;
    let mut pages: BTreeMap<u64, Touched> = BTreeMap::new();
    let mut waits = Waits::default();
    for event in &trace.events {
        let thread = event.thread;
        over[thread] += 1;
        let own = Wait {
            thread,
            events: over[thread],
        };
        let mut needed = vec![0; threads];
        for range in event.call.ranges(heap) {
            if range.is_empty() {
                continue;
            }
            cut(&mut pages, range.start);
            cut(&mut pages, range.end);
            let fault = event.call.is_fault();
            for (_, touched) in pages.range(range.clone()) {
                let faults = touched.faults.iter().filter(|_| !fault);
                for wait in touched.call.iter().chain(faults) {
                    needed[wait.thread] = wait.events.max(needed[wait.thread]);
                }
            }
            touch(&mut pages, range.start, range.end, own, fault);
        }
        for (other, events) in needed.into_iter().enumerate() {
            if other != thread && events > waited[thread][other] {
                waited[thread][other] = events;
                waits.waits.push(Wait {
                    thread: other,
                    events,
                });
            }
        }
        waits.ends.push(waits.waits.len());
        if let crate::vm_trace::Call::Break { end } = event.call {
            heap = end;
        }
    }
    waits
}

/// Makes a page the first of its piece.
fn cut(pages: &mut BTreeMap<u64, Touched>, page: u64) {
    let piece = pages.range_mut(..page).next_back();
    if let Some((_, piece)) = piece.filter(|(_, piece)| page < piece.end) {
        let rest = piece.clone();
        piece.end = page;
        pages.insert(page, rest);
    }
}

/// Notes an event on pages whose pieces begin and end with the range.
fn touch(pages: &mut BTreeMap<u64, Touched>, start: u64, end: u64, own: Wait, fault: bool) {
    if fault {
        let piece = pages.entry(start).or_default();
        piece.end = end;
        piece.faults.retain(|wait| wait.thread != own.thread);
        piece.faults.push(own);
        return;
    }
    let within: Vec<_> = pages.range(start..end).map(|(page, _)| *page).collect();
    for page in within {
        pages.remove(&page);
    }
    let call = Some(own);
    pages.insert(
        start,
        Touched {
            end,
            call,
            faults: Vec::new(),
        },
    );
}
