//! `pnova-rw`: a reader-writer word for each segment, as published (P3 §IV, Algorithm 2; the lock of that name in P1 §7).
//!
//! A request enters the words of its segments in ascending order and waits at each that refuses it, *keeping those that
//! it has*. Nobody queues, so readers who take turns keep a writer out for ever, and a waiting request blocks others who
//! want nothing of what it waits for. The library's own segment locks differ in both; this is the point of comparison.
//!
//! Mended all the same, since it could not be measured otherwise: a failed reader is not admitted, no segment too many
//! is entered, waiting gives the processor away after a while, and a try or a timed request leaves what it has entered
//! when it gives up.
//!
//! # Granularity
//! As the library's segment locks: ranges that touch one segment conflict, though they be disjoint. There is a fixed number
//! of segments, and the last one reaches to `u64::MAX`.
//!
//! # Memory ordering
//! - **pnova-enter** / **pnova-leave**: Release by leaving a word, Acquire by entering it. All changes are
//!   read-modify-writes, which continue the release sequence.
//!
//! # Steps
//! - **pnova-roll-back**: who gives up leaves what it has entered.

use super::spin_lock::{gives_up, spin_until};
use prim::atomic::{AtomicU32, Ordering};
use spanlock::range::Span;
use spanlock::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};

/// Held exclusively. The other bits count readers.
const WRITER: u32 = 1 << 31;

/// A lock of segments. See the source of this module for its granularity.
///
/// It allocates nothing after it was made.
pub struct Pnova {
    /// Positions in a segment; the last segment has all that follow, too.
    segment: u64,
    words: Box<[AtomicU32]>,
}

/// Proof of an acquisition: its segments and its mode.
#[derive(Debug)]
pub struct PnovaToken {
    first: usize,
    last: usize,
    mode: Mode,
}

impl Pnova {
    /// A lock with nothing held, for a resource of so many positions in segments of so many; what is beyond belongs to
    /// the last segment.
    ///
    /// # Panics
    /// When there are no positions, when segments are empty, and when there are more of them than memory has room for.
    #[must_use]
    pub fn new(units: u64, segment: u64) -> Self {
        assert!(
            units > 0 && segment > 0,
            "{units} positions in segments of {segment}"
        );
        let words = (0..units.div_ceil(segment)).map(|_| AtomicU32::new(0));
        Self {
            segment,
            words: words.collect(),
        }
    }

    fn number(&self, position: u64) -> usize {
        let last = self.words.len() - 1;
        usize::try_from(position / self.segment).map_or(last, |number| number.min(last))
    }

    fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<PnovaToken> {
        let token = PnovaToken {
            first: self.number(span.start()),
            last: self.number(span.last()),
            mode,
        };
        for at in token.first..=token.last {
            let mut entered = false;
            spin_until(|| {
                entered = enter(&self.words[at], mode);
                entered || gives_up(wait)
            });
            if !entered {
                // [pnova-roll-back] Nobody else would leave them.
                if prim::intact!("pnova-roll-back") {
                    self.leave(token.first..at, mode);
                }
                return None;
            }
        }
        Some(token)
    }

    fn leave(&self, segments: std::ops::Range<usize>, mode: Mode) {
        let held = match mode {
            Mode::Shared => 1,
            Mode::Exclusive => WRITER,
        };
        for word in &self.words[segments] {
            // [pnova-leave] Release.
            word.fetch_sub(held, prim::order!("pnova-leave", Ordering::Release));
        }
    }
}

/// Enters a word, unless somebody is in the way.
fn enter(word: &AtomicU32, mode: Mode) -> bool {
    // [pnova-enter] Acquire.
    let acquire = prim::order!("pnova-enter", Ordering::Acquire);
    if mode == Mode::Exclusive {
        let entered = word.compare_exchange(0, WRITER, acquire, Ordering::Relaxed);
        return entered.is_ok();
    }
    // Relaxed: a look only.
    let mut now = word.load(Ordering::Relaxed);
    // A full count refuses: one more reader would be a writer.
    while now < WRITER - 1 {
        match word.compare_exchange(now, now + 1, acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(changed) => now = changed,
        }
    }
    false
}

// SAFETY: a range is granted when the words of all its segments were entered, a writer's from zero and a reader's
// without a writer, and nobody else leaves them. What former holders did is visible by the edges above.
unsafe impl RawRangeMutex for Pnova {
    type Token = PnovaToken;

    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<PnovaToken> {
        self.acquire(span, Mode::Exclusive, wait)
    }

    unsafe fn unlock(&self, token: PnovaToken) {
        self.leave(token.first..token.last + 1, token.mode);
    }

    fn granule(&self, span: Span) -> Span {
        let last = self.number(span.last());
        let end = if last == self.words.len() - 1 {
            u64::MAX
        } else {
            (last as u64 + 1) * self.segment - 1
        };
        Span::of(self.number(span.start()) as u64 * self.segment..=end)
            .expect("a segment has positions")
    }
}

// SAFETY: as above.
unsafe impl RawRangeLock for Pnova {
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<PnovaToken> {
        self.acquire(span, Mode::Shared, wait)
    }

    unsafe fn downgrade(&self, token: PnovaToken) -> PnovaToken {
        for word in &self.words[token.first..=token.last] {
            // [pnova-leave] Release: for readers. The writer's bit goes and a reader comes, in one step.
            word.fetch_sub(WRITER - 1, prim::order!("pnova-leave", Ordering::Release));
        }
        PnovaToken {
            mode: Mode::Shared,
            ..token
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, Pnova, WRITER, enter};
    use prim::atomic::{AtomicU32, Ordering};
    use spanlock::range::RangeLock;

    #[test]
    fn a_full_count_refuses() {
        let word = AtomicU32::new(WRITER - 2);
        assert!(enter(&word, Mode::Shared));
        assert!(!enter(&word, Mode::Shared));
        assert_eq!(word.load(Ordering::Relaxed), WRITER - 1);
    }

    #[test]
    fn segments_decide_and_the_last_one_has_the_rest() {
        let lock = RangeLock::from_raw(Pnova::new(32, 8));
        let held = lock.write(0..9);
        assert!(lock.try_read(15..16).is_none());
        assert!(lock.try_write(16..24).is_some());
        let rest = lock.read(31..);
        assert!(lock.try_write(1000..1001).is_none());
        drop((held, rest));
        drop(lock.write_many([0..1, 2..3, 30..40]));
        assert!(lock.try_write(..).is_some());
    }
}
