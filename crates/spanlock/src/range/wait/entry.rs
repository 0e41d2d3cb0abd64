//! The requests in a queue: where each stands.

use super::lines::LineId;
use super::reservation::Patience;
use super::watched::Origin;
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::order::QueueOrder;
use crate::wait::{Parker, WakerId};
use prim::clock::Instant;

/// Identifies a holder: the address of its node, or of the segment's word.
pub(in crate::range) type HolderId = usize;

/// Identifies a request in its queue. Later ones have greater numbers, and none is used again.
pub(super) type RequestId = u64;

/// Who sleeps.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sleeper {
    Thread(&'static Parker),
    /// A task. While it sleeps, the queue has its waker.
    Task {
        /// The last waker that the queue had of it.
        waker: WakerId,
        /// When it is woken, whatever is in its way then.
        deadline: Option<Instant>,
    },
}

impl Sleeper {
    /// Whether both are requests of one task, as far as wakers tell. Then neither can wait until the other is polled.
    pub(super) fn is_woken_with(self, other: Self) -> bool {
        // [equal-wakers]
        matches!((self, other), (Self::Task { waker, .. }, Self::Task { waker: theirs, .. }) if waker == theirs)
            && prim::intact!("equal-wakers")
    }

    pub(super) fn is_task(self) -> bool {
        matches!(self, Self::Task { .. })
    }

    /// When a task is woken, whatever is in its way then.
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Thread(_) => None,
            Self::Task { deadline, .. } => deadline,
        }
    }
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Woken, and not yet granted, asleep again or removed.
    Awake,
    /// A task that was woken, and not polled in its turn. It is in nobody's way, and keeps its place.
    Idle,
    /// Asleep until that holder leaves.
    BehindHolder(HolderId),
    /// Asleep behind that request, which is awake, until that request sleeps again or is removed.
    BehindRequest(RequestId),
    /// Asleep until that request, which has a reservation, is removed, and until then at most.
    GivingWay(RequestId, Instant),
}

impl Stage {
    pub(super) fn is_asleep(self) -> bool {
        !matches!(self, Self::Awake | Self::Idle)
    }
}

/// A request in the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: RequestId,
    pub(super) request: Request,
    pub(super) origin: Origin,
    pub(super) sleeper: Sleeper,
    /// When the turn of a task ends that is awake, and has others wait for it. `None`: nobody does, or it is no task.
    pub(super) turn_ends: Option<Instant>,
    /// When the request got its reservation, if it has one.
    pub(super) reserved: Option<Instant>,
    /// Whether it has asked for a reservation while reservations paused, and has none.
    pub(super) asks: bool,
    /// The lock's patience.
    pub(super) patience: Patience,
    /// When it asks for a reservation if others overtake it; `None`: never.
    pub(super) due: Option<Instant>,
    /// What its owner shares, and keeps while it waits to have some of it alone.
    pub(super) shares: Option<Request>,
    /// Whether it is a piece of what its owner holds.
    pub(super) is_piece: bool,
    /// Whether it has given way for a turn, and has not slept since. Then it tries for its range first.
    pub(super) has_given_way: bool,
    /// Whether it is to have a reservation when it is the head of its line.
    pub(super) wants: bool,
    /// In which line it sleeps. That says what it sleeps behind, whatever its stage was when it went to sleep.
    pub(super) line: Option<LineId>,
    pub(super) stage: Stage,
    /// The holder or the request that it sleeps behind.
    pub(super) behind: Request,
}

impl Entry {
    /// Whether it sleeps behind a holder that lets others in its way come in: a reader, or one that holds only a part
    /// of what it asks for. They may be granted one after another while it sleeps.
    pub(super) fn lets_others_in(&self, order: &QueueOrder) -> bool {
        let (held, asked) = (self.behind, self.request.span);
        let keeps_all_out = held.mode == Mode::Exclusive && order.covers(held.span, asked);
        matches!(self.stage, Stage::BehindHolder(_)) && !keeps_all_out
    }
}
