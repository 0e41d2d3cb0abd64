//! The requests in a queue that are awake.

use super::entry::{Entry, Stage};
use crate::range::raw::Mode;

/// The positions in the queue of the awake requests. A dispatch compares each sleeper with these few, not with all the
/// other sleepers.
pub(super) struct Awake {
    positions: Vec<usize>,
    any_exclusive: bool,
}

impl Awake {
    pub(super) fn new(entries: &[Entry]) -> Self {
        let mut awake = Self {
            positions: Vec::new(),
            any_exclusive: false,
        };
        for (at, entry) in entries.iter().enumerate() {
            if entry.stage == Stage::Awake {
                awake.add(entries, at);
            }
        }
        awake
    }

    pub(super) fn add(&mut self, entries: &[Entry], at: usize) {
        self.positions.push(at);
        self.any_exclusive |= entries[at].request.mode == Mode::Exclusive;
    }

    /// The position of an awake request that conflicts with a sleeping one.
    pub(super) fn conflicting_with(&self, entries: &[Entry], asleep: &Entry) -> Option<usize> {
        if asleep.request.mode == Mode::Shared && !self.any_exclusive {
            return None;
        }
        let mut positions = self.positions.iter().copied();
        positions.find(|&at| entries[at].request.conflicts(&asleep.request))
    }
}
