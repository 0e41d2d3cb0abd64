//! What this process waits for and holds, and which of it an event concerns.

use crate::keys::{Claim, Keys, Place};
use crate::wire::{Event, EventType};
use spanlock_lease::{Mode, News, Request, RequestId, Span, Wanted};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The requests of this process, and whom to tell of events.
pub(crate) struct Interests {
    all: Mutex<HashMap<RequestId, Interest>>,
    news: mpsc::UnboundedSender<News>,
}

/// A request that has not ended.
#[derive(Debug)]
struct Interest {
    span: Span,
    /// The largest block that it may be granted while it waits.
    largest: Span,
    mode: Mode,
    ttl: Duration,
    stage: Stage,
    wish: Option<OwnWish>,
}

#[derive(Debug)]
enum Stage {
    Waits {
        /// The latest transaction by which somebody began to wish for a part of the largest block that it may be
        /// granted. It may be granted that before it knows that it is, and then it is wished for.
        wished_for: i64,
    },
    Holds {
        /// The transaction that granted it, or a later one.
        since: i64,
    },
}

/// What this process has done for its wish.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnWish {
    /// When it was made.
    pub(crate) began: Instant,
    /// How many marks it has passed.
    pub(crate) marks: u32,
    /// When its lease was kept alive.
    pub(crate) kept: Instant,
}

impl OwnWish {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            marks: 0,
            kept: now,
        }
    }

    /// Until it passes the next mark: when it has waited for 1, 2, 4, 8, … seconds (*marks-pass*).
    pub(crate) fn until_mark(&self) -> Duration {
        let mark = Duration::from_secs(1) * 2_u32.saturating_pow(self.marks);
        mark.saturating_sub(self.began.elapsed())
    }
}

/// What has happened.
enum Change {
    /// It is not held any more, since this transaction.
    Freed(i64),
    /// Nobody gives way to this wish any more who came before now.
    Passed,
    /// Somebody has begun to wish for it, in this transaction.
    Wished(i64),
}

impl Interests {
    /// None. News of what concerns them go to the receiver.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<News>) {
        let (news, receiver) = mpsc::unbounded_channel();
        (
            Self {
                all: Mutex::default(),
                news,
            },
            receiver,
        )
    }

    fn all(&self) -> MutexGuard<'_, HashMap<RequestId, Interest>> {
        self.all.lock().expect("no panic while held")
    }

    fn about(&self, id: RequestId) {
        // Nobody listens any more when the engine is dropped.
        let _ = self.news.send(News::About(id));
    }

    /// Events were lost.
    pub(crate) fn missed(&self) {
        let _ = self.news.send(News::Missed);
    }

    /// Until nobody listens.
    pub(crate) async fn unheard(&self) {
        self.news.closed().await;
    }

    /// It asks. From now on it is told what concerns it.
    pub(crate) fn begin(&self, request: &Request) {
        let new = || Interest {
            span: request.span,
            largest: request
                .largest(|_is_free| true, |_is_wished_for| false)
                .unwrap_or(request.span),
            mode: request.mode,
            ttl: request.ttl,
            stage: Stage::Waits { wished_for: 0 },
            wish: None,
        };
        self.all().entry(request.id).or_insert_with(new);
    }

    /// It ends. Whether it may have a wish; and its ttl, if it was known.
    pub(crate) fn end(&self, id: RequestId) -> (MayWish, Option<Duration>) {
        let ended = self.all().remove(&id);
        let may_wish = match &ended {
            Some(Interest {
                stage: Stage::Holds { .. },
                wish: None,
                ..
            }) => MayWish::No,
            _ => MayWish::Yes,
        };
        (may_wish, ended.map(|interest| interest.ttl))
    }

    /// It holds this, as of a transaction. If others wish for it, or somebody has begun to since, it is told.
    pub(crate) fn holds(&self, id: RequestId, span: Span, since: i64, wanted: Wanted) {
        if let Some(interest) = self.all().get_mut(&id) {
            let began = matches!(interest.stage, Stage::Waits { wished_for } if wished_for > since);
            if began || wanted == Wanted::Yes {
                self.about(id);
            }
            interest.span = span;
            interest.stage = Stage::Holds { since };
        }
    }

    /// What was done for its wish.
    pub(crate) fn wish(&self, id: RequestId) -> Option<OwnWish> {
        self.all().get(&id).and_then(|interest| interest.wish)
    }

    pub(crate) fn set_wish(&self, id: RequestId, wish: OwnWish) {
        if let Some(interest) = self.all().get_mut(&id) {
            interest.wish = Some(wish);
        }
    }

    /// What has happened at one moment.
    pub(crate) fn tell(&self, keys: &Keys, events: &[Event]) {
        let places: Vec<_> = events
            .iter()
            .filter_map(|event| place(keys, event))
            .collect();
        for (event, place) in events.iter().zip(&places) {
            let was_granted = |id| places.contains(&(EventType::Put, Place::Held(id)));
            let revision = event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
            match *place {
                (EventType::Delete, Place::Held(id)) => {
                    self.change(id, claim(event), &Change::Freed(revision));
                }
                // A wish that ends by being granted frees nothing.
                (EventType::Delete, Place::Wish(id)) if !was_granted(id) => {
                    self.change(id, claim(event), &Change::Passed);
                }
                (EventType::Put, Place::Wish(id)) => {
                    let is_new = event
                        .kv
                        .as_ref()
                        .is_some_and(|kv| kv.create_revision == revision);
                    let change = match is_new {
                        true => Change::Wished(revision),
                        false => Change::Passed,
                    };
                    self.change(id, claim(event), &change);
                }
                (EventType::Delete, Place::Grace) => self.missed(),
                _ => {}
            }
        }
    }

    /// Tells those whom a change by somebody concerns. Without a claim, it may be anybody.
    fn change(&self, by: RequestId, claim: Option<Claim>, change: &Change) {
        self.all().retain(|&id, interest| {
            let span = match (&interest.stage, change) {
                (Stage::Waits { .. }, Change::Wished(_)) => interest.largest,
                _ => interest.span,
            };
            let conflicts = |claim: &Claim| claim.conflicts(span, interest.mode);
            match (&mut interest.stage, change) {
                // Its own lease has ended, and maybe not because it said so. It may have another one since.
                (Stage::Holds { since }, Change::Freed(revision)) if id == by => {
                    let is_over = *since < *revision;
                    if is_over {
                        self.about(id);
                    }
                    return !is_over;
                }
                _ if id == by || !claim.as_ref().is_none_or(conflicts) => {}
                (Stage::Waits { wished_for }, Change::Wished(revision)) => *wished_for = *revision,
                (Stage::Waits { .. }, Change::Freed(_) | Change::Passed)
                | (Stage::Holds { .. }, Change::Wished(_)) => self.about(id),
                (Stage::Holds { .. }, Change::Freed(_) | Change::Passed) => {}
            }
            true
        });
    }
}

/// Whether a request that ends may have a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayWish {
    Yes,
    No,
}

fn place(keys: &Keys, event: &Event) -> Option<(EventType, Place)> {
    let key = &event.kv.as_ref()?.key;
    Some((event.kind(), keys.place(key)?))
}

/// What the key says, or said before it was deleted.
fn claim(event: &Event) -> Option<Claim> {
    let kv = match event.kind() {
        EventType::Put => event.kv.as_ref(),
        EventType::Delete => event.prev_kv.as_ref(),
    };
    Claim::parse(&kv?.value)
}

#[cfg(test)]
mod tests {
    use super::Interests;
    use crate::keys::{Claim, Keys, Place};
    use crate::wire::{Event, EventType, KeyValue};
    use spanlock_lease::{Mode, News, Request, Span, Wanted};
    use std::time::Duration;

    #[test]
    fn a_wish_for_the_rest_of_a_block_is_told_when_the_grant_is_answered() {
        let keys = Keys::new("spanlock/lease", "resource");
        let (interests, mut news) = Interests::new();
        let (own, other) = ("1".parse().unwrap(), "2".parse().unwrap());
        let span = |first, last| Span::inclusive(first, last).unwrap();
        interests.begin(&Request {
            id: own,
            span: span(0, 0),
            mode: Mode::Exclusive,
            ttl: Duration::from_secs(1),
            grow: Some(3),
        });
        // It is granted 0..8 in transaction 9. The answer comes after what is wished for in transaction 10.
        let wish = Claim {
            span: span(5, 5),
            mode: Mode::Exclusive,
            epoch: 1,
            since: 0,
            client: String::new(),
        };
        interests.tell(
            &keys,
            &[Event {
                kind: EventType::Put as i32,
                kv: Some(KeyValue {
                    key: keys.key(Place::Wish(other)),
                    create_revision: 10,
                    mod_revision: 10,
                    value: wish.to_string().into_bytes(),
                    lease: 2,
                }),
                prev_kv: None,
            }],
        );
        assert!(news.try_recv().is_err());
        interests.holds(own, span(0, 7), 9, Wanted::No);
        assert!(matches!(news.try_recv(), Ok(News::About(id)) if id == own));
    }
}
