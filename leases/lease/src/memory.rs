//! An engine within the process, for tests of what uses leases.

use crate::clock::{Moment, now};
use crate::{
    Answer, Engine, Extent, Fence, KeySpan, Mode, News, Renewal, Request, RequestId, Span, Trouble,
    Wanted,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// Keeps leases in the memory of the process. Clones keep the same leases.
#[derive(Debug)]
pub struct Memory<R = Span> {
    shared: Arc<Mutex<State<R>>>,
    /// Of this clone.
    inbox: Arc<Inbox>,
}

#[derive(Debug)]
struct State<R> {
    leases: Vec<Lease<R>>,
    wishes: Vec<Wish<R>>,
    fences: u64,
}

#[derive(Debug)]
struct Lease<R> {
    id: RequestId,
    span: R,
    mode: Mode,
    fence: Fence,
    expires: Moment,
    inbox: Arc<Inbox>,
}

/// Who waits, in the order in which they came.
#[derive(Debug)]
struct Wish<R> {
    request: Request<R>,
    since: Moment,
    /// From then on nobody gives way to it, unless it is repeated. It is told of what is free even so, as is told of it
    /// who holds that.
    expires: Moment,
    inbox: Arc<Inbox>,
}

/// A wish counts for so long: whoever does not repeat it may be gone.
const WISH: Duration = Duration::from_secs(5);

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
        Self::empty()
    }
}

impl Memory<KeySpan> {
    /// As [`new`](Memory::new), for a resource that is leased by byte strings.
    #[must_use]
    pub fn over_keys() -> Self {
        Self::empty()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Memory<R> {
    fn empty() -> Self {
        let state = State {
            leases: Vec::new(),
            wishes: Vec::new(),
            fences: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(state)),
            inbox: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.shared.lock().expect("no panic while held")
    }
}

impl<R> Clone for Memory<R> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            inbox: Arc::default(),
        }
    }
}

impl<R: Extent> State<R> {
    /// What is in the way.
    fn blockers(&self, request: &Request<R>, span: &R) -> impl Iterator<Item = &Lease<R>> {
        let Request { id, mode, .. } = *request;
        let conflicts = move |lease: &&Lease<R>| {
            lease.span.meets(span) && lease.mode.conflicts(mode) && lease.id != id
        };
        self.leases.iter().filter(conflicts)
    }

    fn wish(&self, id: RequestId) -> Option<&Wish<R>> {
        self.wishes.iter().find(|wish| wish.request.id == id)
    }

    /// Other wishes that conflict.
    fn wishes(&self, id: RequestId, span: &R, mode: Mode) -> impl Iterator<Item = &Wish<R>> {
        let conflicts = move |wish: &&Wish<R>| {
            let Request { span: other, .. } = &wish.request;
            wish.request.id != id && other.meets(span) && wish.request.mode.conflicts(mode)
        };
        self.wishes.iter().filter(conflicts)
    }

    /// Until when a request that came then gives way to those that came earlier. It passes one that has waited for the
    /// next power of two, in seconds.
    fn gives_way_until(&self, request: &Request<R>, came: Moment) -> Option<Moment> {
        let (wishes, now) = (self.wishes(request.id, &request.span, request.mode), now());
        let earlier = wishes.filter(|wish| wish.since < came && wish.expires > now);
        let marks = earlier.map(|wish| {
            let waited = (came - wish.since).as_secs();
            wish.since + Duration::from_secs((waited + 1).next_power_of_two())
        });
        marks.max()
    }

    /// Tells those who may have it. Who gives way finds out by himself when he need not any more.
    fn tell(&self, freed: &R, now: Moment) {
        for wish in self
            .wishes
            .iter()
            .filter(|wish| wish.request.span.meets(freed))
        {
            let gives_way_until = self.gives_way_until(&wish.request, wish.since);
            if gives_way_until.is_none_or(|until| until <= now) {
                wish.inbox.send(wish.request.id);
            }
        }
    }

    /// What it may be granted.
    fn free(&self, request: &Request<R>) -> Option<R> {
        let now = now();
        request.largest(
            |span| self.blockers(request, span).next().is_none(),
            |span| {
                let mut wishes = self.wishes(request.id, span, request.mode);
                wishes.any(|wish| wish.expires > now)
            },
        )
    }
}

impl<R: Extent> Engine for Memory<R> {
    type Range = R;

    async fn open(&self) -> Result<(), Trouble> {
        Ok(())
    }

    async fn acquire(&self, request: &Request<R>) -> Result<Answer<R>, Trouble> {
        let mut state = self.state();
        let now = now();
        state.leases.retain(|lease| lease.expires > now);
        let expires = now.saturating_add(request.ttl);
        if let Some(lease) = state.leases.iter_mut().find(|lease| lease.id == request.id) {
            lease.expires = expires;
            return Ok(Answer::Granted {
                span: lease.span.clone(),
                fence: lease.fence,
            });
        }
        let came = state.wish(request.id).map_or(now, |wish| wish.since);
        let gives_way_until = state
            .gives_way_until(request, came)
            .filter(|until| *until > now);
        let free = state.free(request).filter(|_| gives_way_until.is_none());
        if let Some(span) = free {
            state.wishes.retain(|wish| wish.request.id != request.id);
            state.fences += 1;
            let fence = Fence {
                epoch: 0,
                counter: state.fences,
            };
            let inbox = Arc::clone(&self.inbox);
            // Who has waited for others so far waits for this from now on.
            if state
                .wishes(request.id, &span, request.mode)
                .next()
                .is_some()
            {
                inbox.send(request.id);
            }
            state.leases.push(Lease {
                id: request.id,
                span: span.clone(),
                mode: request.mode,
                fence,
                expires,
                inbox,
            });
            return Ok(Answer::Granted { span, fence });
        }
        let id = request.id;
        let expires = now + WISH;
        match state.wishes.iter_mut().find(|wish| wish.request.id == id) {
            Some(wish) => wish.expires = expires,
            None => state.wishes.push(Wish {
                request: request.clone(),
                since: came,
                expires,
                inbox: Arc::clone(&self.inbox),
            }),
        }
        for lease in state.blockers(request, &request.span) {
            lease.inbox.send(lease.id);
        }
        let blockers = state.blockers(request, &request.span);
        let ends = blockers.map(|lease| lease.expires).chain(gives_way_until);
        let expires = ends.min().map(|end| end - now);
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
        let (span, mode) = (lease.span.clone(), lease.mode);
        let wanted = state.wishes(id, &span, mode).next().is_some();
        Ok(Renewal::Kept {
            wanted: if wanted { Wanted::Yes } else { Wanted::No },
        })
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        let mut state = self.state();
        let wish = state.wish(id).map(|wish| wish.request.span.clone());
        let lease = state.leases.iter().position(|lease| lease.id == id);
        state.wishes.retain(|wish| wish.request.id != id);
        let freed = lease.map(|at| state.leases.remove(at).span).or(wish);
        if let Some(freed) = freed {
            state.tell(&freed, now());
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
