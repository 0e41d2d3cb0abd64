//! `pnova-rw`: one reader-writer word for each segment of the resource, as published (P3 §IV, Algorithm 2; the lock of
//! that name in P1 §7).
//!
//! A request enters the words of its segments in ascending order. If a word refuses it, the request waits there and
//! *keeps the words that it has entered*. There is no queue. So a succession of readers keeps a writer out for ever,
//! and a waiting request blocks other requests for segments that are otherwise free. The library's own segment locks
//! differ in both points, and this lock shows the difference.
//!
//! Four faults are corrected, without which the lock could not be measured. A refused reader is not admitted. No
//! segment beyond the range is entered. A waiting thread yields its processor after a while. A try or timed request
//! that gives up leaves the words that it has entered.
//!
//! # Granularity
//! As in the library's segment locks, two ranges that touch the same segment conflict, even if they are disjoint. The
//! number of segments is fixed, and the last one extends to `u64::MAX`.
//!
//! # Memory ordering
//! - **pnova-enter** / **pnova-leave**: Release by leaving a word, Acquire by entering it. All changes of a word are
//!   read-modify-writes, which continue the release sequence.
//!
//! # Steps
//! - **pnova-roll-back**: a request that gives up leaves the words that it has entered.

use super::grid::Grid;
use super::spin_lock::{gives_up, spin_until};
use prim::atomic::{AtomicU32, Ordering};
use spanlock::range::Span;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex};

/// The bit of a writer. The other bits count the readers.
const WRITER: u32 = 1 << 31;

/// A lock with one word for each segment. The source of this module describes its granularity.
///
/// After its construction it allocates nothing.
pub struct Pnova {
    segments: Grid,
    words: Box<[AtomicU32]>,
}

/// The token of an acquisition: its segments and its mode.
#[derive(Debug)]
pub struct PnovaToken {
    first: usize,
    last: usize,
    mode: Mode,
}

impl Pnova {
    /// A free lock for a resource of so many positions in segments of so many. Positions beyond the resource belong to
    /// the last segment.
    ///
    /// # Panics
    /// When the resource or the segment is empty, and when there is not enough memory for the words.
    #[must_use]
    pub fn new(units: u64, segment: u64) -> Self {
        let segments = Grid::new(units, segment);
        let words = 0..=segments.last();
        Self {
            segments,
            words: words.map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn acquire(
        &self,
        mode: Mode,
        Ask { span, wait, .. }: Ask<'_, PnovaToken>,
    ) -> Option<PnovaToken> {
        let (first, last) = self.segments.parts(span);
        let word = |number| usize::try_from(number).expect("there is a word for it");
        let token = PnovaToken {
            first: word(first),
            last: word(last),
            mode,
        };
        for at in token.first..=token.last {
            let mut entered = false;
            spin_until(|| {
                entered = enter(&self.words[at], mode);
                entered || gives_up(wait)
            });
            if !entered {
                // [pnova-roll-back] No other thread leaves these words.
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

/// Enters a word, unless a conflicting holder is inside.
fn enter(word: &AtomicU32, mode: Mode) -> bool {
    // [pnova-enter] Acquire.
    let acquire = prim::order!("pnova-enter", Ordering::Acquire);
    if mode == Mode::Exclusive {
        let entered = word.compare_exchange(0, WRITER, acquire, Ordering::Relaxed);
        return entered.is_ok();
    }
    // Relaxed: only a first guess for the compare-exchange.
    let mut now = word.load(Ordering::Relaxed);
    // A full count refuses: the next addition would set the writer's bit.
    while now < WRITER - 1 {
        match word.compare_exchange(now, now + 1, acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(changed) => now = changed,
        }
    }
    false
}

// SAFETY: a range is granted after the words of all its segments have been entered. A writer enters a word that is
// zero, a reader a word without a writer, and only their own releases leave. The critical sections of earlier holders
// are visible by [pnova-enter] and [pnova-leave].
unsafe impl RawRangeMutex for Pnova {
    type Token = PnovaToken;

    fn lock_exclusive(&self, ask: Ask<'_, PnovaToken>) -> Option<PnovaToken> {
        self.acquire(Mode::Exclusive, ask)
    }

    unsafe fn unlock(&self, token: PnovaToken) {
        self.leave(token.first..token.last + 1, token.mode);
    }

    fn granule(&self, span: Span) -> Span {
        self.segments.granule(span)
    }
}

// SAFETY: as for the exclusive half; and a reader's count keeps writers out of the word.
unsafe impl RawRangeLock for Pnova {
    fn lock_shared(&self, ask: Ask<'_, PnovaToken>) -> Option<PnovaToken> {
        self.acquire(Mode::Shared, ask)
    }

    unsafe fn downgrade(&self, token: PnovaToken) -> PnovaToken {
        for word in &self.words[token.first..=token.last] {
            // [pnova-leave] Release: pairs with later readers. One step removes the writer's bit and adds a reader.
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
