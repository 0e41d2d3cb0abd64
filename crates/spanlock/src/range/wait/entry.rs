//! The requests in a queue: where each stands.

use super::reservation::{Patience, Turn};
use crate::range::inspect::Request;
use crate::range::raw::Mode;
use crate::wait::Parker;
use prim::clock::Instant;

/// Identifies a holder: the address of its node, or of the segment's word.
pub(in crate::range) type HolderId = usize;

/// Identifies a request: a thread has one at a time, so the thread's parker names it.
pub(super) type RequestId = usize;

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Woken, and not yet granted, asleep again or removed.
    Awake,
    /// Asleep until that holder leaves.
    BehindHolder(HolderId),
    /// Asleep behind that request, which is awake, until that request sleeps again or is removed.
    BehindRequest(RequestId),
    /// Asleep until that request, which has a reservation, is removed, and until that turn ends at most.
    GivingWay(RequestId, Turn<Instant>),
    /// Asleep until that request, which has a reservation, is removed, and while another is `GivingWay` to it.
    Following(RequestId),
}

impl Stage {
    /// Whether it is that of a request which follows one at the other stage.
    pub(super) fn follows(self, other: Self) -> bool {
        matches!((self, other), (Self::Following(first), Self::GivingWay(to, _)) if first == to)
    }

    /// Whether the request sleeps because of the request `id`.
    pub(super) fn is_behind(self, id: RequestId) -> bool {
        matches!(self, Self::BehindRequest(at) | Self::GivingWay(at, _) | Self::Following(at) if at == id)
    }
}

/// A request in the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: RequestId,
    pub(super) request: Request,
    pub(super) parker: &'static Parker,
    /// When the request got its reservation, if it has one.
    pub(super) reserved: Option<Instant>,
    /// Whether it has asked for a reservation while reservations paused, and has none.
    pub(super) asks: bool,
    /// The lock's patience.
    pub(super) patience: Patience,
    /// When it asks for a reservation if others overtake it; `None`: never.
    pub(super) due: Option<Instant>,
    /// Whether its thread may hold a range of this lock.
    pub(super) holds: bool,
    /// What its owner shares, and keeps while it waits to have some of it alone.
    pub(super) shares: Option<Request>,
    /// The last turn in which it gave way, if it has: a pass for the rest of that round.
    pub(super) gave_way: Option<Turn<Instant>>,
    pub(super) stage: Stage,
    /// The holder or the request that it sleeps behind.
    pub(super) behind: Request,
}

impl Entry {
    /// Whether it sleeps behind a holder that lets others in its way come in: a reader, or one that holds only a part
    /// of what it asks for. They may be granted one after another while it sleeps.
    pub(super) fn lets_others_in(&self) -> bool {
        let (held, asked) = (self.behind, self.request.span);
        let keeps_all_out =
            held.mode == Mode::Exclusive && held.span.joined(asked) == Some(held.span);
        matches!(self.stage, Stage::BehindHolder(_)) && !keeps_all_out
    }
}
