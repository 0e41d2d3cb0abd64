//! The trace of operations, and the report that is made of it.

use super::{State, World, line};
use crate::report::{Failure, Trace};
use crate::run::Ended;
use std::borrow::Cow;
use std::hash::Hasher;
use std::panic::Location;

/// The number of marks in a failure.
const MARKS: usize = 60;

impl World {
    /// Adds an operation of the running thread to the trace and the digest.
    pub(super) fn note(
        &mut self,
        what: impl Into<Cow<'static, str>>,
        address: Option<usize>,
        value: Option<u64>,
        at: Option<&'static Location<'static>>,
    ) {
        let what = what.into();
        let place = address.map(|address| (self.line(address), (address % line::BYTES) as u8));
        let (time, thread) = (self.current().time, self.running);
        self.digest.write_u64(time);
        self.digest.write_usize(thread);
        self.digest.write(what.as_bytes());
        if let Some((line, byte)) = place {
            self.digest
                .write_u64(u64::from(line) << 8 | u64::from(byte));
        }
        if self.setup.trace > 0 {
            if self.trace.len() == self.setup.trace {
                self.trace.pop_front();
            }
            self.trace.push_back(Trace {
                time,
                thread,
                what,
                place,
                value,
                at,
            });
        }
    }

    /// Adds a mark of the running thread to the trace.
    pub(super) fn note_mark(&mut self, what: String, at: &'static Location<'static>) {
        let mark = Trace {
            time: self.current().time,
            thread: self.running,
            what: what.clone().into(),
            place: None,
            value: None,
            at: Some(at),
        };
        if let Some(listener) = self.setup.listener {
            listener(&mark);
        }
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
        self.current_mut().mark.clone_from(&what);
        self.note(what, None, None, Some(at));
    }

    pub(crate) fn ended(&self) -> Ended<()> {
        Ended {
            value: (),
            elapsed: self.duration(self.threads[0].time),
            operations: self.operations,
            digest: self.digest.0,
        }
    }

    pub(crate) fn failure(&mut self, what: String) -> Failure {
        let threads = (0..self.threads.len())
            .map(|number| {
                let state = match self.threads[number].state {
                    State::Ready => "runs".to_owned(),
                    State::Sleeping(address) => {
                        let line = self.line(address);
                        format!("sleeps on L{line}+{}", address % line::BYTES)
                    }
                    State::Joining(other) => format!("waits for t{other} to end"),
                    State::Waiting(why) => format!("waits for {why}"),
                    State::Done => return "has ended".to_owned(),
                };
                match self.threads[number].mark.as_str() {
                    "" => state,
                    mark => format!("{state}; last it {mark}"),
                }
            })
            .collect();
        Failure {
            what,
            time: self.duration(self.current().time),
            seed: self.setup.seed,
            threads,
            marks: self.marks.iter().cloned().collect(),
            trace: self.trace.iter().cloned().collect(),
        }
    }
}
