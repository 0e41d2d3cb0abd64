//! An engine within the process, for tests of what uses leases.

use crate::clock::{Moment, now};
use crate::{
    Answer, Engine, Fence, Mode, News, Renewal, Request, RequestId, Span, Trouble, Wanted,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// Keeps leases in the memory of the process. Clones keep the same leases.
#[derive(Debug, Default)]
pub struct Memory {
    shared: Arc<Shared>,
    /// Of this clone.
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    leases: Vec<Lease>,
    wishes: Vec<(Request, Arc<Inbox>)>,
    fences: u64,
}

#[derive(Debug)]
struct Lease {
    id: RequestId,
    span: Span,
    mode: Mode,
    fence: Fence,
    expires: Moment,
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    news: Mutex<VecDeque<RequestId>>,
    any: Notify,
}

impl Inbox {
    fn send(&self, about: RequestId) {
        self.news
            .lock()
            .expect("no panic while held")
            .push_back(about);
        self.any.notify_one();
    }
}

impl Memory {
    /// Nothing is held.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().expect("no panic while held")
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            inbox: Arc::default(),
        }
    }
}

impl State {
    /// What is in the way.
    fn blockers(&self, request: &Request, span: Span) -> impl Iterator<Item = &Lease> {
        let Request { id, mode, .. } = *request;
        let conflicts = move |lease: &&Lease| {
            lease.span.overlaps(span) && lease.mode.conflicts(mode) && lease.id != id
        };
        self.leases.iter().filter(conflicts)
    }

    /// The largest block that is free, or the range alone, if that is.
    fn free(&self, request: &Request) -> Option<Span> {
        let is_free = |&span: &Span| self.blockers(request, span).next().is_none();
        let grown = request
            .grow
            .into_iter()
            .flat_map(|k| (0..=k).rev().map(|k| block(request.span, k)));
        let wished = |span: &Span| {
            let mut wishes = self
                .wishes
                .iter()
                .map(|(wish, _)| wish)
                .filter(|wish| wish.id != request.id);
            wishes.any(|wish| wish.span.overlaps(*span) && wish.mode.conflicts(request.mode))
        };
        let grown = grown.flatten().filter(|span| !wished(span));
        grown.chain([request.span]).find(is_free)
    }
}

/// The block of `2^k` positions that a range lies in.
fn block(span: Span, k: u32) -> Option<Span> {
    let rest = u64::MAX.checked_shr(64 - k.min(64)).unwrap_or(0);
    let block = Span::inclusive(span.start() & !rest, span.start() | rest);
    block.filter(|block| span.last() <= block.last())
}

impl Engine for Memory {
    async fn open(&self) -> Result<(), Trouble> {
        Ok(())
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        let mut state = self.state();
        let now = now();
        state.leases.retain(|lease| lease.expires > now);
        let expires = now.saturating_add(request.ttl);
        if let Some(lease) = state.leases.iter_mut().find(|lease| lease.id == request.id) {
            lease.expires = expires;
            return Ok(Answer::Granted {
                span: lease.span,
                fence: lease.fence,
            });
        }
        if let Some(span) = state.free(request) {
            state.wishes.retain(|(wish, _)| wish.id != request.id);
            state.fences += 1;
            let fence = Fence {
                epoch: 0,
                counter: state.fences,
            };
            let inbox = Arc::clone(&self.inbox);
            state.leases.push(Lease {
                id: request.id,
                span,
                mode: request.mode,
                fence,
                expires,
                inbox,
            });
            return Ok(Answer::Granted { span, fence });
        }
        if !state.wishes.iter().any(|(wish, _)| wish.id == request.id) {
            state.wishes.push((*request, Arc::clone(&self.inbox)));
        }
        for lease in state.blockers(request, request.span) {
            lease.inbox.send(lease.id);
        }
        let expires = state
            .blockers(request, request.span)
            .map(|lease| lease.expires - now)
            .min();
        Ok(Answer::Busy { expires })
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        let mut state = self.state();
        let now = now();
        let Some(lease) = state
            .leases
            .iter_mut()
            .find(|lease| lease.id == id && lease.expires > now)
        else {
            return Ok(Renewal::Gone);
        };
        lease.expires = now.saturating_add(ttl);
        let (span, mode) = (lease.span, lease.mode);
        let mut wishes = state.wishes.iter();
        let wanted = wishes.any(|(wish, _)| wish.span.overlaps(span) && wish.mode.conflicts(mode));
        Ok(Renewal::Kept {
            wanted: if wanted { Wanted::Yes } else { Wanted::No },
        })
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        let mut state = self.state();
        state.wishes.retain(|(wish, _)| wish.id != id);
        if let Some(at) = state.leases.iter().position(|lease| lease.id == id) {
            let lease = state.leases.remove(at);
            for (wish, inbox) in state
                .wishes
                .iter()
                .filter(|(wish, _)| wish.span.overlaps(lease.span))
            {
                inbox.send(wish.id);
            }
        }
        Ok(())
    }

    async fn news(&self) -> News {
        loop {
            let next = self
                .inbox
                .news
                .lock()
                .expect("no panic while held")
                .pop_front();
            match next {
                Some(id) => return News::About(id),
                None => self.inbox.any.notified().await,
            }
        }
    }
}
