//! How segments are acquired: enter their words in ascending order, all or none.
//!
//! ```text
//!   wanted: segments 3 4 5            another request holds 5
//!
//!     enter 3 --> enter 4 --> 5 refuses --> leave 4, 3 --> wait for 5, holding nothing --> enter 3 --> ...
//! ```
//!
//! The edges cited are the parent module's.

use super::held::Segments;
use super::store::Store;
use super::word::Word;
use super::{RawSegments, Token};
use crate::range::inspect::{Request, SelfDeadlock};
use crate::range::raw::{Ask, Mode, Wait};
use crate::range::span::Span;
use crate::range::thread::{self, ThreadRecord};
use crate::range::wait::{Acquisition, Attempt, Holder, HolderId, Refused, Standing, Waiter};
use smallvec::SmallVec;
use std::panic::Location;

/// The segment that refused a request. The request holds nothing.
pub(super) struct Blocked(u64);

/// The words that a request has left and in which a request sleeps.
type Left<'a> = SmallVec<[&'a Word; 8]>;

impl<S: Store> RawSegments<S> {
    /// The segments that a span touches.
    #[inline]
    pub(super) fn segments(&self, span: Span, mode: Mode) -> Segments {
        Segments {
            first: self.segment(span.start()),
            last: self.segment(span.last()),
            mode,
        }
    }

    #[inline]
    fn segment(&self, position: u64) -> u64 {
        (position >> self.shift).min(self.store.last())
    }

    /// All positions of the segments.
    pub(super) fn span(&self, segments: Segments) -> Span {
        let start = segments.first << self.shift;
        let last = if segments.last == self.store.last() {
            u64::MAX
        } else {
            ((segments.last + 1) << self.shift) - 1
        };
        Span::of(start..=last).expect("a segment has positions")
    }

    fn word(&self, segment: u64) -> &Word {
        &self.store.words_from(segment)[0]
    }

    #[inline]
    #[track_caller]
    pub(super) fn acquire(&self, mode: Mode, ask: Ask<'_, Token>) -> Option<Token> {
        let segments = self.segments(ask.span, mode);
        // A hint: whether newcomers may have to give way.
        let blocked = if !self.wait_queue.has_reservations() {
            match self.attempt(segments, ask.wait) {
                Ok(()) => return Some(self.granted(segments)),
                Err(blocked) => Some(blocked),
            }
        } else {
            None
        };
        self.acquire_slowly(segments, blocked, ask.wait)
    }

    #[inline]
    #[track_caller]
    fn granted(&self, segments: Segments) -> Token {
        let at = Location::caller();
        thread::with_record(|record| record.parts.segments.note(self.id, segments, at));
        Token(segments)
    }

    #[cold] // A segment refused, or newcomers have to give way.
    #[track_caller]
    fn acquire_slowly(
        &self,
        segments: Segments,
        blocked: Option<Blocked>,
        wait: Wait,
    ) -> Option<Token> {
        let at = Location::caller();
        let outcome = thread::with_record(|record| {
            let request = Request::new(self.span(segments), segments.mode, record.thread());
            let mut acquisition = SegmentAcquisition {
                lock: self,
                record,
                request,
                segments,
                wait,
            };
            let blocker = blocked.map(|blocked| acquisition.blocker(&blocked));
            let patience = self.wait_queue.patience();
            // Readers may take turns in a word, so that a writer behind it is never woken.
            Waiter::new(&self.wait_queue, record, request, wait, patience, at)
                .behind_any(segments.wish(self.id, at))
                .acquire(&mut acquisition, blocker)
        });
        // Outside the closure, so that a panic names the caller's line, and so does the note of what is held.
        Refused::answer(outcome)?;
        Some(self.granted(segments))
    }

    /// Enters all the segments, in ascending order, or none.
    #[inline]
    fn attempt(&self, segments: Segments, wait: Wait) -> Result<(), Blocked> {
        let Segments { first, last, mode } = segments;
        // [segment-try-looks]
        if wait == Wait::Never && first < last && prim::intact!("segment-try-looks") {
            self.look(segments)?;
        }
        let mut at = first;
        loop {
            for word in run(&self.store, at, last) {
                if !word.enter(mode) {
                    return Err(self.roll_back(segments, at));
                }
                if at == last {
                    return Ok(());
                }
                at += 1;
            }
        }
    }

    /// Makes sure that no segment refuses, and enters none.
    pub(super) fn look(&self, Segments { first, last, mode }: Segments) -> Result<(), Blocked> {
        let mut at = first;
        loop {
            let words = run(&self.store, at, last);
            if let Some(refuses) = words.iter().position(|word| !word.state().admits(mode)) {
                return Err(Blocked(at + refuses as u64));
            }
            // The last segment may be the last that there can be.
            match at.checked_add(words.len() as u64) {
                Some(next) if next <= last => at = next,
                _ => return Ok(()),
            }
        }
    }

    #[cold] // A segment refused.
    fn roll_back(&self, segments: Segments, blocked: u64) -> Blocked {
        // [roll-back] A request that kept what it has entered while it waits would block requests that want nothing of
        // what it waits for.
        if blocked > segments.first && prim::intact!("roll-back") {
            self.leave(Segments {
                last: blocked - 1,
                ..segments
            });
        }
        Blocked(blocked)
    }

    #[inline]
    pub(super) fn release(&self, token: &Token) {
        thread::with_record(|record| record.parts.segments.forget(self.id, token.0));
        self.leave(token.0);
    }

    /// Leaves all the segments, and only then wakes: a request that is woken earlier finds the next segment held.
    #[inline]
    fn leave(&self, segments: Segments) {
        let mode = segments.mode;
        let mut left = Left::new();
        self.each(segments, |word| {
            if word.leave(mode).calls_for_wake(mode) {
                left.push(word);
            }
        });
        // [wake-sleeper] The read-modify-write that left a word has also loaded its mark.
        if !left.is_empty() && prim::intact!("wake-sleeper") {
            self.wait_queue.with_queue(|queue, wakeups| {
                left.iter().for_each(|word| word.unmark_sleeper());
                queue.holders_left(left.iter().map(|word| word.id()), wakeups);
            });
        }
    }

    pub(super) fn make_shared(&self, token: Token) -> Token {
        let mut left = Left::new();
        self.each(token.0, |word| {
            if word.share().calls_for_readers() {
                left.push(word);
            }
        });
        // [share-wake] Writers sleep on, so the words stay marked.
        if !left.is_empty() && prim::intact!("share-wake") {
            self.wait_queue.with_queue(|queue, wakeups| {
                queue.holders_downgraded(left.iter().map(|word| word.id()), wakeups);
            });
        }
        let shared = Segments {
            mode: Mode::Shared,
            ..token.0
        };
        thread::with_record(|record| {
            if let Some(at) = record.parts.segments.forget(self.id, token.0) {
                record.parts.segments.note(self.id, shared, at);
            }
        });
        Token(shared)
    }

    #[inline]
    fn each<'a>(&'a self, segments: Segments, mut f: impl FnMut(&'a Word)) {
        let mut at = segments.first;
        loop {
            for word in run(&self.store, at, segments.last) {
                f(word);
                if at == segments.last {
                    return;
                }
                at += 1;
            }
        }
    }
}

/// The words from `at` to `last`, or as many of them as lie side by side.
#[inline]
fn run<S: Store>(store: &S, at: u64, last: u64) -> &[Word] {
    let words = store.words_from(at);
    // More than can lie side by side is as good as all.
    let wanted = usize::try_from(last - at).unwrap_or(usize::MAX);
    &words[..words.len().min(wanted.saturating_add(1))]
}

/// One request to a segment lock, in the waiting loop. To the queue, the *holder* that a request sleeps behind is a
/// segment's word.
struct SegmentAcquisition<'a, S: Store> {
    lock: &'a RawSegments<S>,
    record: &'static ThreadRecord,
    request: Request,
    segments: Segments,
    wait: Wait,
}

/// A segment that refused the request.
struct Blocker<'a> {
    segment: u64,
    word: &'a Word,
}

impl<'a, S: Store> SegmentAcquisition<'a, S> {
    fn blocker(&self, blocked: &Blocked) -> Blocker<'a> {
        Blocker {
            segment: blocked.0,
            word: self.lock.word(blocked.0),
        }
    }
}

impl<'a, S: Store> Acquisition for SegmentAcquisition<'a, S> {
    type Token = ();
    type Blocker = Blocker<'a>;

    fn attempt(&mut self) -> Attempt<(), Blocker<'a>> {
        match self.lock.attempt(self.segments, self.wait) {
            Ok(()) => Attempt::Granted(()),
            Err(blocked) => Attempt::Blocked(self.blocker(&blocked)),
        }
    }

    fn look(&self, blocker: &Blocker<'a>) -> Standing {
        match blocker.word.state().admits(self.segments.mode) {
            true => Standing::Gone,
            false => Standing::Stays,
        }
    }

    fn deadlock_with(&self, blocker: &Blocker<'a>) -> Option<SelfDeadlock> {
        let Self { lock, record, .. } = self;
        if !record
            .parts
            .segments
            .holds(lock.id, self.segments, blocker.segment)
        {
            return None;
        }
        let (held, at) = record
            .parts
            .segments
            .in_the_way_of(lock.id, self.segments)?;
        Some(SelfDeadlock {
            asked: self.request,
            held: Request::new(lock.span(held), held.mode, self.request.owner),
            at,
            ranges: None,
        })
    }

    fn mark(&self, blocker: &Blocker<'a>) -> Option<Holder> {
        let Blocker { segment, word } = *blocker;
        // [mark-sleeper] One read-modify-write marks the word and loads it.
        let state = word.mark_sleeper();
        if state.admits(self.segments.mode) && prim::intact!("mark-sleeper") {
            return None;
        }
        let held = Segments::one(segment, state.held().unwrap_or(Mode::Exclusive));
        Some(Holder {
            id: word.id(),
            request: Request::new(self.lock.span(held), held.mode, 0),
            at: None,
        })
    }

    fn held(&self) -> Vec<Request> {
        self.record.parts.segments.of_lock(self.lock.id, |held| {
            Request::new(self.lock.span(held), held.mode, self.record.thread())
        })
    }

    fn adopt(&self, (): &mut (), sleeper: &Request) -> HolderId {
        // The first segment that both ask for. They conflict, so there is one.
        let segment = self.lock.segment(sleeper.span.start());
        let word = self.lock.word(segment.max(self.segments.first));
        // [mark-inherited] As if the sleeper had marked the word. This thread's own release comes later.
        if prim::intact!("mark-inherited") {
            word.mark_sleeper();
        }
        word.id()
    }
}
