//! The protocol: enter the words in ascending order, or none of them; leave them. The edges are the parent module's.

use super::store::Store;
use super::word::Word;
use super::{RawSegments, Token};
use crate::local::{self, Local};
use crate::range::inspect::{Claim, Deadlock};
use crate::range::raw::{Mode, Wait};
use crate::range::span::Span;
use crate::range::waiting::{Ageing, Contender, Refused};
use crate::wait::Wakeups;
use smallvec::SmallVec;
use std::panic::Location;

/// Segments, by number, and how they are asked for or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) mode: Mode,
}

impl Segments {
    /// Whether a request of these has to wait for whoever holds `held`.
    pub(crate) fn meets(self, held: Self) -> bool {
        held.mode.conflicts(self.mode) && held.first <= self.last && self.first <= held.last
    }

    /// The same at one segment of them.
    pub(crate) fn meets_at(self, held: Self, segment: u64) -> bool {
        held.mode.conflicts(self.mode) && (held.first..=held.last).contains(&segment)
    }
}

/// The segment that could not be entered; nothing is held.
pub(super) struct Blocked(pub(super) u64);

/// Words in which somebody slept when they were left.
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
    pub(super) fn segment(&self, position: u64) -> u64 {
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

    #[inline]
    #[track_caller]
    pub(super) fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<Token> {
        let segments = self.segments(span, mode);
        // A hint: whether newcomers may have to give way.
        let blocked = if !self.room.has_claims() {
            match self.attempt(segments) {
                Ok(()) => return Some(self.granted(segments)),
                Err(blocked) => Some(blocked),
            }
        } else {
            None
        };
        self.acquire_slowly(segments, blocked, wait)
    }

    #[inline]
    #[track_caller]
    fn granted(&self, segments: Segments) -> Token {
        let at = Location::caller();
        local::with(|local| local.note_segments(self.id, segments, at));
        Token(segments)
    }

    #[cold] // Somebody is in the way, or newcomers have to give way.
    #[track_caller]
    fn acquire_slowly(
        &self,
        segments: Segments,
        blocked: Option<Blocked>,
        wait: Wait,
    ) -> Option<Token> {
        let outcome = local::with(|local| {
            let claim = Claim::new(self.span(segments), segments.mode, local.thread());
            let mut contender =
                Contender::new(local, claim, wait, self.room.patience(), Ageing::Asleep);
            let contended = self.contend(&mut contender, segments, blocked);
            match contended {
                Ok(()) => self.arrive(&contender, segments),
                Err(_) => self.room.give_up(&contender),
            }
            contended.map_err(|refused| match refused {
                Refused::NoTime => None,
                Refused::WaitsForItself => self.deadlock(local, claim, segments),
            })
        });
        match outcome {
            Ok(()) => Some(self.granted(segments)),
            Err(None) => None,
            // Here, and not where it was found, so that the panic is the caller's.
            Err(Some(deadlock)) => panic!("{deadlock}"),
        }
    }

    /// What this thread itself has in the way of a request, in whole segments.
    fn deadlock(&self, local: &Local, asked: Claim, wanted: Segments) -> Option<Deadlock> {
        let (held, at) = local.held_segments(self.id, wanted)?;
        Some(Deadlock {
            asked,
            held: Claim::new(self.span(held), held.mode, asked.thread),
            at,
        })
    }

    /// Enters all the segments, in ascending order, or none.
    #[inline]
    pub(super) fn attempt(&self, segments: Segments) -> Result<(), Blocked> {
        let Segments { first, last, mode } = segments;
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

    #[cold] // Somebody is in the way.
    fn roll_back(&self, segments: Segments, blocked: u64) -> Blocked {
        // [roll-back] Whoever waited with full hands would block others who want nothing of what it waits for.
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
        local::with(|local| local.forget_segments(self.id, token.0));
        self.leave(token.0);
    }

    /// Leaves all the segments, and only then wakes: who is woken early finds the next segment held.
    #[inline]
    fn leave(&self, segments: Segments) {
        let mode = segments.mode;
        let mut left = Left::new();
        self.each(segments, |word| {
            if word.leave(mode).calls_for_wake(mode) {
                left.push(word);
            }
        });
        // [wake-sleeper] Each word was changed and looked at at once.
        if !left.is_empty() && prim::intact!("wake-sleeper") {
            self.room.with_queue(|queue, wakeups: &mut Wakeups| {
                for word in left {
                    word.unmark_sleeper();
                    queue.holder_left(word.id(), wakeups);
                }
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
            self.room.with_queue(|queue, wakeups: &mut Wakeups| {
                for word in left {
                    queue.holder_downgraded(word.id(), wakeups);
                }
            });
        }
        let shared = Segments {
            mode: Mode::Shared,
            ..token.0
        };
        local::with(|local| {
            if let Some(at) = local.forget_segments(self.id, token.0) {
                local.note_segments(self.id, shared, at);
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
