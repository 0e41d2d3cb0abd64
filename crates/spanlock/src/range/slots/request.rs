//! A request as it is announced, and which of several rivals stays.

use crate::range::inspect::Request;
use crate::range::span::Span;
use crate::wait::Stay;
use std::panic::Location;

/// A request to be announced.
#[derive(Clone, Copy)] // By value it stays in registers on the short paths.
pub(super) struct Entry<'a> {
    pub(super) request: Request,
    /// What the thread may take again later, if it keeps it.
    pub(super) grant: Span,
    pub(super) seniority: Seniority,
    /// If the request is to wait in place while others are in its way, for how long.
    pub(super) in_place: Option<&'a Stay<'a>>,
    pub(super) at: &'static Location<'static>,
}

impl<'a> Entry<'a> {
    /// The entry of a request that tries for the first time.
    #[inline]
    pub(super) fn newcomer(request: Request, at: &'static Location<'static>) -> Self {
        Self {
            request,
            grant: request.span,
            seniority: Seniority::NEWCOMER,
            in_place: None,
            at,
        }
    }
}

/// Which of several rivals stays: the one with the smaller number.
///
/// - Of a request that is not decided: when it was blocked first.
/// - Of one that is decided: [`DECIDED`](Self::DECIDED). If the node of its thread is known, the last digits are the
///   node's number plus one, and those between tell when the turn of that node began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seniority(pub(super) u64);

impl Seniority {
    /// The request holds its range. It is not a rival any more.
    pub(super) const DECIDED: Self = Self(1 << 63);
    const NODE: u64 = (1 << 8) - 1;
    /// It tries for the first time.
    pub(super) const NEWCOMER: Self = Self(Self::DECIDED.0 - 1);

    /// It was blocked at that time for the first time.
    pub(super) fn blocked_at(nanoseconds: u64) -> Self {
        Self(nanoseconds.min(Self::NEWCOMER.0 - 1))
    }

    /// It holds its range. Its thread runs on that node of the machine, whose turn began at that time.
    pub(super) fn decided_on(node: usize, turn: u64) -> Self {
        let node = (node as u64 + 1).min(Self::NODE);
        Self(Self::DECIDED.0 | Self::blocked_at(turn).0 & !Self::NODE | node)
    }

    #[inline]
    pub(super) fn is_decided(self) -> bool {
        self >= Self::DECIDED
    }

    /// When the turn of its node began, if it holds its range and its node is known.
    pub(super) fn turn(self) -> Option<u64> {
        let is_known = self.is_decided() && self.0 & Self::NODE != 0;
        is_known.then_some(self.0 & !Self::DECIDED.0 & !Self::NODE)
    }

    /// Whether its node, which is known, is that one.
    pub(super) fn is_on(self, node: usize) -> bool {
        self.0 & Self::NODE == Self::decided_on(node, 0).0 & Self::NODE
    }

    /// Whether it was blocked, and does not hold its range yet.
    pub(super) fn has_waited(self) -> bool {
        self < Self::NEWCOMER
    }
}

#[cfg(test)]
mod tests {
    use super::Seniority;

    #[test]
    fn a_holder_tells_its_node_and_when_the_turn_began() {
        let began = 1_234_567_890;
        for node in [0, 1, 253] {
            let holder = Seniority::decided_on(node, began);
            assert!(holder.is_decided() && !holder.has_waited());
            assert!(holder.is_on(node) && !holder.is_on(node + 1));
            let turn = holder.turn().expect("its node is known");
            assert!(turn <= began && began - turn <= Seniority::NODE);
            // The next writer of the node hands on the same time.
            assert_eq!(Seniority::decided_on(node, turn), holder);
        }
        assert_eq!(Seniority::DECIDED.turn(), None);
    }

    #[test]
    fn a_rival_that_has_waited_is_senior_to_a_newcomer() {
        for blocked in [0, 1_234_567_890, u64::MAX] {
            let rival = Seniority::blocked_at(blocked);
            assert!(!rival.is_decided() && rival.has_waited());
            assert_eq!(rival.turn(), None);
            assert!(rival < Seniority::NEWCOMER);
        }
        assert!(!Seniority::NEWCOMER.is_decided() && !Seniority::NEWCOMER.has_waited());
    }
}
