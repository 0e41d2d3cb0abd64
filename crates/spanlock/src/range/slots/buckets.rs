//! Buckets: which slots a narrow request has to look at.
//!
//! ```text
//!   positions:   | bucket 0 | bucket 1 | bucket 2 | bucket 3 | ...
//!                      \         |          \         /
//!                       hash     |           \       /         more than one bucket may have the same line
//!                         v      v            v     v
//!   lines:             [ 8 words ]          [ 8 words ]
//!
//!   word:   free --(compare-exchange)--> number of the slot, mode, part of the bucket --(store)--> free
//!                  announced already                                           about to end
//! ```
//!
//! A word is a hint where to look. What is held is in the slot that it names.

use crate::range::inspect::Request;
use crate::range::mode::Mode;
use prim::atomic::{AtomicU64, Ordering};
use prim::track::Track;

/// The words of a cache line.
pub(super) const WORDS: usize = prim::sized(8, 2);

/// Binary digits of each of the two offsets in a word: where in its bucket a request begins, and where it ends.
const OFFSET_DIGITS: u32 = 16;
const LAST_OFFSET: u64 = (1 << OFFSET_DIGITS) - 1;

/// Where a request is listed: for each of up to two buckets the number of the word, from one, in half of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketPlaces(pub(super) u64);

impl BucketPlaces {
    pub(super) const NONE: Self = Self(0);

    /// With one more place, after those here.
    fn and(self, place: usize) -> Self {
        Self(self.0 << u32::BITS | (place as u64 + 1))
    }
}

/// The numbers of the words.
impl Iterator for BucketPlaces {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let place = (self.0 as u32).checked_sub(1)?;
        self.0 >>= u32::BITS;
        Some(place as usize)
    }
}

/// A narrow request in its one or two buckets.
#[derive(Clone, Copy)] // By value it stays in registers on the short paths.
pub(super) struct Parts {
    first: Part,
    second: Option<Part>,
}

/// A request in one of its buckets: the bucket's line, and what is to be listed there.
#[derive(Clone, Copy)]
struct Part {
    line: usize,
    word: Word,
}

/// The buckets of one lock.
pub(super) struct Buckets {
    /// A bucket has `2^width_digits` positions.
    width_digits: u32,
    /// There are `2^line_digits` lines.
    line_digits: u32,
    lines: Box<[Line]>,
    _track: Track,
}

#[repr(align(64))]
struct Line([AtomicU64; WORDS]);

impl Buckets {
    /// Buckets for ranges of up to `2^digits` positions, most of which lie in one bucket, in at least `lines` lines.
    pub(super) fn new(digits: u32, lines: usize) -> Box<Self> {
        let line_digits = lines.next_power_of_two().trailing_zeros().max(1);
        let line = |_| Line(prim::array![AtomicU64::new(Word::FREE); WORDS]);
        Box::new(Self {
            width_digits: (digits + 1).min(u64::BITS - 1),
            line_digits,
            lines: (0..1 << line_digits).map(line).collect(),
            _track: Track::new(),
        })
    }

    /// Whether a range is narrow: it has no more than two buckets.
    #[inline]
    pub(super) fn is_narrow(&self, start: u64, last: u64) -> bool {
        // A mixture of two announcements may be reversed.
        self.bucket_of(last).saturating_sub(self.bucket_of(start)) <= 1
    }

    #[inline]
    fn bucket_of(&self, position: u64) -> u64 {
        position >> self.width_digits
    }

    /// Where in its bucket a position is, in 16 digits. Two parts that overlap still do, since both are rounded.
    #[inline]
    fn offset(&self, position: u64) -> u64 {
        let outside = u64::BITS - self.width_digits;
        position << outside >> outside.max(u64::BITS - OFFSET_DIGITS)
    }

    /// What is to be listed of a narrow request, and where.
    #[inline]
    pub(super) fn parts(&self, request: &Request, slot: u32) -> Parts {
        let (start, last) = (request.span.start(), request.span.last());
        let (from, to) = (self.offset(start), self.offset(last));
        let word = Word::of(request.mode, slot);
        let part = |bucket: u64, first, last| Part {
            // Fibonacci hashing: buckets at equal distances do not meet in one line.
            line: (bucket.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.line_digits))
                as usize,
            word: word.at(bucket, first, last),
        };
        let (first, second) = (self.bucket_of(start), self.bucket_of(last));
        if first == second {
            return Parts {
                first: part(first, from, to),
                second: None,
            };
        }
        Parts {
            first: part(first, from, LAST_OFFSET),
            // [bucket-listed] In each bucket of the range, so that each request that overlaps has one in common.
            second: prim::intact!("bucket-listed").then(|| part(second, 0, to)),
        }
    }

    /// Lists a slot in the buckets of its narrow request. `None`: a line is full, or the slot's number too large.
    #[inline]
    pub(super) fn list(&self, parts: &Parts) -> Option<BucketPlaces> {
        let Parts { first, second } = parts;
        if first.word.slot() == Word::NO_SLOT {
            return None;
        }
        let places = BucketPlaces::NONE.and(self.take(first)?);
        let Some(second) = second else {
            return Some(places);
        };
        let place = self.take(second);
        if place.is_none() {
            self.strike(places);
        }
        Some(places.and(place?))
    }

    /// Puts a word into its line. Returns its place.
    #[inline]
    fn take(&self, part: &Part) -> Option<usize> {
        let line = &self.lines[part.line];
        // Threads begin at different words. No look before: it would fetch the line twice.
        let from = part.word.slot() as usize % WORDS;
        let at = if line.try_take(from, part.word) {
            from
        } else {
            line.take_after(from, part.word)?
        };
        Some(part.line * WORDS + at)
    }

    /// Strikes an announcement that is about to end off the buckets.
    #[inline]
    pub(super) fn strike(&self, places: BucketPlaces) {
        for place in places {
            // [bucket-release] Release: pairs with the Acquire in `find`.
            self.lines[place / WORDS].0[place % WORDS].store(
                Word::FREE,
                prim::order!("bucket-release", Ordering::Release),
            );
        }
    }

    /// What `f` returns for the first slot listed in a bucket of the request for which it returns anything. The slot
    /// may be in the way of the request. Adds to `others` the words in its lines that it passes, and that are not its
    /// own.
    #[inline]
    pub(super) fn find<R>(
        &self,
        parts: &Parts,
        others: &mut u32,
        mut f: impl FnMut(u32) -> Option<R>,
    ) -> Option<R> {
        let Parts { first, second } = parts;
        let found = self.lines[first.line].find(first.word, others, &mut f);
        let Some(second) = second else {
            return found;
        };
        found.or_else(|| self.lines[second.line].find(second.word, others, &mut f))
    }
}

impl Line {
    /// Puts a word at that place, if it is free.
    #[inline]
    fn try_take(&self, at: usize, word: Word) -> bool {
        // [bucket-acquire] Acquire: this word may be struck before the fence, if the next line is full. Then that
        // strike hands on what came before the last one. The fence of the handshake orders the rest.
        let acquire = prim::order!("bucket-acquire", Ordering::Acquire);
        self.0[at]
            .compare_exchange(Word::FREE, word.0, acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Puts a word at the next place that is free. Returns the place.
    #[cold] // Another request is listed in the line.
    fn take_after(&self, from: usize, word: Word) -> Option<usize> {
        (1..WORDS)
            .map(|step| (from + step) % WORDS)
            .find(|&at| self.try_take(at, word))
    }

    /// What `f` returns for the first slot listed here, in the way of that word, for which it returns anything. Counts
    /// the other words that it passes.
    #[inline]
    fn find<R>(
        &self,
        mine: Word,
        others: &mut u32,
        f: &mut impl FnMut(u32) -> Option<R>,
    ) -> Option<R> {
        for word in &self.0 {
            // [bucket-acquire] Acquire: what the holder did before [bucket-release], if it is not listed any more.
            let word = Word(word.load(prim::order!("bucket-acquire", Ordering::Acquire)));
            if word.0 == Word::FREE || word.0 == mine.0 {
                continue;
            }
            *others += 1;
            if word.may_conflict(mine)
                && let Some(found) = f(word.slot())
            {
                return Some(found);
            }
        }
        None
    }
}

/// What a bucket says of a request: enough to pass it by, in most cases, without a look at its slot.
///
/// ```text
///   LISTED | SHARED | bucket, 14 digits | slot, 16 | first, 16 | last, 16
/// ```
#[derive(Debug, Clone, Copy)]
struct Word(u64);

impl Word {
    const FREE: u64 = 0;
    const LISTED: u64 = 1 << 63;
    const SHARED: u64 = 1 << 62;
    /// In place of the number of a slot, if that is too large: then the slot is not listed. All its digits are ones.
    const NO_SLOT: u32 = u16::MAX as u32;
    /// What two words of one bucket have in common: that they are listed, and the bucket.
    const SAME: u64 = Self::LISTED | ((1 << 62) - (1 << 48));

    /// What all words of a request have in common.
    #[inline]
    fn of(mode: Mode, slot: u32) -> Self {
        let shared = match mode {
            Mode::Shared => Self::SHARED,
            Mode::Exclusive => 0,
        };
        Self(Self::LISTED | shared | u64::from(slot.min(Self::NO_SLOT)) << 32)
    }

    /// With the part of the request in a bucket.
    #[inline]
    fn at(self, bucket: u64, first: u64, last: u64) -> Self {
        Self(self.0 | bucket << 48 & Self::SAME & !Self::LISTED | first << OFFSET_DIGITS | last)
    }

    #[inline]
    fn slot(self) -> u32 {
        (self.0 >> 32) as u32 & Self::NO_SLOT
    }

    /// Whether the request behind the word may be in the way of another slot's.
    #[inline]
    fn may_conflict(self, mine: Self) -> bool {
        if (self.0 ^ mine.0) & Self::SAME != 0 {
            return false;
        }
        let part = |word: Self| (word.0 >> OFFSET_DIGITS & LAST_OFFSET, word.0 & LAST_OFFSET);
        let ((start, last), (my_start, my_last)) = (part(self), part(mine));
        self.0 & mine.0 & Self::SHARED == 0 && start <= my_last && my_start <= last
    }
}

#[cfg(test)]
mod tests {
    use super::{BucketPlaces, Buckets, Word};
    use crate::range::inspect::Request;
    use crate::range::mode::Mode;
    use crate::range::span::Span;

    fn request(start: u64, len: u64, mode: Mode) -> Request {
        let last = start.saturating_add(len - 1);
        Request::new(Span::of(start..=last).expect("it has positions"), mode, 1)
    }

    fn list(buckets: &Buckets, request: &Request, slot: u32) -> Option<BucketPlaces> {
        buckets.list(&buckets.parts(request, slot))
    }

    fn find(buckets: &Buckets, request: &Request, slot: u32) -> Option<u32> {
        buckets.find(&buckets.parts(request, slot), &mut 0, Some)
    }

    /// Of two narrow requests that conflict, each is listed where the other one looks, and is not passed by.
    #[test]
    fn requests_that_conflict_meet_in_a_bucket() {
        let mut met = 0;
        for (digits, scale) in [(0, 0), (1, 0), (3, 0), (20, 18), (62, 60)] {
            let buckets = Buckets::new(digits, 64);
            let places = [0, 1 << 40, u64::MAX - (15 << scale)]
                .map(|base: u64| (0..16u64).map(move |at| base.saturating_add(at << scale)));
            let places: Vec<u64> = places.into_iter().flatten().collect();
            let modes = [Mode::Shared, Mode::Exclusive];
            let lens = (1..9u64).map(|len| len << scale);
            let requests = places.iter().flat_map(|&start| {
                let of = move |len| modes.map(move |mode| request(start, len, mode));
                lens.clone().flat_map(of)
            });
            let narrow: Vec<_> = requests
                .filter(|one| buckets.is_narrow(one.span.start(), one.span.last()))
                .collect();
            for other in &narrow {
                let listed = list(&buckets, other, 7).expect("there is room");
                for one in narrow.iter().filter(|one| one.conflicts(other)) {
                    assert_eq!(find(&buckets, one, 3), Some(7), "{one:?} and {other:?}");
                    met += 1;
                }
                buckets.strike(listed);
                assert_eq!(find(&buckets, other, 3), None);
            }
        }
        assert_ne!(met, 0);
    }

    #[test]
    fn neighbours_in_a_bucket_are_passed_by() {
        let buckets = Buckets::new(10, 64);
        let listed = request(0, 100, Mode::Exclusive);
        list(&buckets, &listed, 7).expect("there is room");
        let beside = request(100, 100, Mode::Exclusive);
        assert_eq!(find(&buckets, &beside, 3), None);
        assert_eq!(
            find(&buckets, &listed, 7),
            None,
            "a request is not in its own way"
        );
    }

    #[test]
    fn a_line_is_full_at_last() {
        let buckets = Buckets::new(4, 64);
        let narrow = request(0, 1, Mode::Shared);
        let listed = (0..100).take_while(|&slot| list(&buckets, &narrow, slot).is_some());
        assert_eq!(listed.count(), super::WORDS);
        let elsewhere = request(1 << 40, 1, Mode::Shared);
        assert!(list(&buckets, &elsewhere, Word::NO_SLOT).is_none());
    }
}
