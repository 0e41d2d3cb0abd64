//! The simulated medium: memory that records what is written, flushed and fenced, by which thread and in which order.
//! The crash tests make from the record what a crash may leave.

use super::region::beyond_the_end;
use super::{Durable, Medium};
use prim::sync::Mutex;
use std::io;

/// A step of a thread on a simulated medium, or a remark of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A store. It is split where cache lines begin.
    Write {
        /// Who.
        thread: u32,
        /// Where.
        at: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// A flush of the lines of a range.
    Flush {
        /// Who.
        thread: u32,
        /// Where.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// A fence.
    Fence {
        /// Who.
        thread: u32,
    },
    /// A sync begins.
    SyncBegins {
        /// Who.
        thread: u32,
    },
    /// The sync that this thread has begun ends.
    SyncEnds {
        /// Who.
        thread: u32,
    },
    /// A remark.
    Mark {
        /// Who.
        thread: u32,
        /// Numbers whose meaning is the test's.
        what: [u64; 2],
    },
}

/// Memory with a record of all steps. It is not durable itself: the crash tests decide what a crash leaves.
#[derive(Debug)]
pub struct Simulated {
    state: Mutex<State>,
    size: u64,
    durable: Durable,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    events: Vec<Event>,
    /// So many syncs succeed before they fail.
    syncs: Option<u64>,
    /// A range that cannot be read.
    unreadable: (u64, u64),
}

impl Simulated {
    /// A medium with that content.
    #[must_use]
    pub fn new(bytes: Vec<u8>, durable: Durable) -> Self {
        let size = bytes.len() as u64;
        let state = Mutex::new(State {
            bytes,
            ..State::default()
        });
        Self {
            state,
            size,
            durable,
        }
    }

    /// The content as the running program sees it.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        self.state.lock().bytes.clone()
    }

    /// Takes the record of all steps since the last call.
    #[must_use]
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.state.lock().events)
    }

    /// Adds a remark to the record.
    pub fn mark(&self, what: [u64; 2]) {
        let thread = prim::thread::id();
        self.state.lock().events.push(Event::Mark { thread, what });
    }

    /// After so many more syncs, all fail.
    pub fn fail_syncs_after(&self, syncs: u64) {
        self.state.lock().syncs = Some(syncs);
    }

    /// From now on, reads of that range fail.
    pub fn make_unreadable(&self, at: u64, bytes: u64) {
        self.state.lock().unreadable = (at, at + bytes);
    }
}

/// The places of a range in the content.
fn places(state: &State, at: u64, bytes: usize) -> io::Result<std::ops::Range<usize>> {
    let begin = usize::try_from(at).map_err(|_| beyond_the_end())?;
    let end = begin.checked_add(bytes).ok_or_else(beyond_the_end)?;
    if end > state.bytes.len() {
        return Err(beyond_the_end());
    }
    Ok(begin..end)
}

impl Medium for Simulated {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        let places = places(&state, at, into.len())?;
        if at < state.unreadable.1 && at + into.len() as u64 > state.unreadable.0 {
            return Err(io::Error::other("the medium cannot be read there"));
        }
        into.copy_from_slice(&state.bytes[places]);
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let thread = prim::thread::id();
        let mut state = self.state.lock();
        let places = places(&state, at, from.len())?;
        state.bytes[places].copy_from_slice(from);
        let bytes = from.to_vec();
        state.events.push(Event::Write { thread, at, bytes });
        Ok(())
    }

    fn flush(&self, at: u64, bytes: u64) {
        let thread = prim::thread::id();
        let event = Event::Flush { thread, at, bytes };
        self.state.lock().events.push(event);
    }

    fn fence(&self) {
        let thread = prim::thread::id();
        self.state.lock().events.push(Event::Fence { thread });
    }

    fn sync(&self) -> io::Result<()> {
        let thread = prim::thread::id();
        let mut state = self.state.lock();
        state.events.push(Event::SyncBegins { thread });
        match &mut state.syncs {
            Some(0) => return Err(io::Error::other("the medium has lost writes")),
            Some(left) => *left -= 1,
            None => {}
        }
        state.events.push(Event::SyncEnds { thread });
        Ok(())
    }

    fn durable(&self) -> Durable {
        self.durable
    }
}
