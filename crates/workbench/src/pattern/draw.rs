//! What a thread does next.

use super::{LONG, Load, Pattern, SHORT, Shape};
use crate::arr::{Ranges, Variant};
use crossbeam_utils::CachePadded;
use fastrand::Rng;
use prim::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use prim::cost;
use spanlock::range::raw::Mode;
use std::ops::Range;

/// Each thread counts its operations in steps of so many, lest the count become what is measured.
const STRIDE: u64 = 8;

/// Cycles of a draw on a simulated machine. An assumption: a few instructions.
const DRAW: u64 = 20;

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawn {
    /// The number of the lock.
    pub(super) lock: usize,
    pub(super) mode: Mode,
    /// The lines that are locked.
    pub(super) locked: Range<usize>,
    /// The lines of these that are read or written.
    pub(super) used: Range<usize>,
}

/// What the draws of all threads follow from, besides chance.
pub(super) struct Shared {
    shape: Shape,
    /// The end of the log, in lines. Only the first thread changes it.
    end: CachePadded<AtomicUsize>,
    /// How many [`STRIDE`]s of operations all threads together have begun.
    strides: CachePadded<AtomicU64>,
    /// For each lock how popular it and those before it are.
    popular: Vec<f64>,
}

impl Shared {
    pub(super) fn new(shape: Shape) -> Self {
        let popular = (1..=shape.locks).scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        });
        Self {
            shape,
            end: CachePadded::new(AtomicUsize::new(Self::kept(shape))),
            strides: CachePadded::default(),
            popular: popular.collect(),
        }
    }

    /// The log's end when it has been cut: half of it is kept.
    const fn kept(shape: Shape) -> usize {
        shape.lines / 2
    }

    /// A lock by Zipf's law: the second is half as popular as the first, the third a third.
    fn popular(&self, rng: &mut Rng) -> usize {
        let all = self.popular[self.popular.len() - 1];
        let drawn = rng.f64() * all;
        let at = self.popular.partition_point(|&sum| sum <= drawn);
        at.min(self.popular.len() - 1)
    }
}

/// One thread.
pub(super) struct Actor {
    load: Load,
    thread: usize,
    threads: usize,
    rng: Rng,
    /// Operations drawn so far.
    number: u64,
    /// The number of the phase in which this thread is.
    phase: u64,
}

impl Actor {
    pub(super) fn new(load: Load, thread: usize, threads: usize, rng: Rng) -> Self {
        Self {
            load,
            thread,
            threads,
            rng,
            number: 0,
            phase: 0,
        }
    }

    /// The next operation.
    #[inline]
    pub(super) fn next(&mut self, shared: &Shared) -> Drawn {
        cost::work(DRAW);
        let Shape {
            locks,
            lines,
            grain,
        } = shared.shape;
        let (number, thread) = (self.number, self.thread);
        self.number += 1;
        let (mut lock, mut mode) = (0, self.by_chance());
        let everything = 0..lines;
        let locked = match self.load.pattern {
            Pattern::Files => {
                lock = shared.popular(&mut self.rng);
                let length = 1 << self.rng.u32(..=lines.ilog2());
                let start = self.rng.usize(..=lines - length);
                start..start + length
            }
            Pattern::Pages => self.block(grain, lines),
            Pattern::Append if thread == 0 => {
                mode = Mode::Exclusive;
                shared.end.load(Relaxed)..lines
            }
            Pattern::Append => self.block(grain, shared.end.load(Relaxed)),
            Pattern::Phases => self.in_phases_of(LONG, number, shared),
            Pattern::Restless => self.in_phases_of(SHORT, number, shared),
            Pattern::Alternate => self.part_of_next(number),
            Pattern::Owners => self.part_of_next(number / SHORT),
            Pattern::Sweep if number % SHORT == SHORT - 1 => {
                mode = Mode::Exclusive;
                everything
            }
            Pattern::Sweep | Pattern::Churn => self.part_of_next(0),
            Pattern::Everything if thread == 0 => {
                mode = Mode::Exclusive;
                everything
            }
            Pattern::Everything => self.anywhere(),
            Pattern::Once => {
                let passed = usize::try_from(number % locks as u64).unwrap_or(0);
                lock = (thread * locks / self.threads + passed) % locks;
                everything
            }
        };
        let used = match self.load.pattern {
            Pattern::Append => locked.start..locked.start + grain,
            _ => locked.clone(),
        };
        Drawn {
            lock,
            mode,
            locked,
            used,
        }
    }

    /// After an operation: whoever appends moves the end of the log, and cuts the log when it is full.
    #[inline]
    pub(super) fn done(&self, drawn: &Drawn, shared: &Shared) {
        if self.load.pattern == Pattern::Append && self.thread == 0 {
            let Shape { lines, .. } = shared.shape;
            let end = drawn.used.end;
            let end = if end < lines {
                end
            } else {
                Shared::kept(shared.shape)
            };
            // Relaxed, as all here: a range that follows from an old end is as good as another.
            shared.end.store(end, Relaxed);
        }
    }

    fn by_chance(&mut self) -> Mode {
        if self.rng.u8(..100) < self.load.reads {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }

    /// A random block of so many lines, before that line.
    fn block(&mut self, lines: usize, before: usize) -> Range<usize> {
        let start = self.rng.usize(..before / lines) * lines;
        start..start + lines
    }

    fn anywhere(&mut self) -> Range<usize> {
        Ranges::Random.next(&mut self.rng).0
    }

    /// The part of the thread that is so many after this one.
    fn part_of_next(&mut self, after: u64) -> Range<usize> {
        let after = usize::try_from(after % self.threads as u64).unwrap_or(0);
        let owner = (self.thread + after) % self.threads;
        let ranges = Ranges::of(Variant::Disjoint, owner, self.threads);
        ranges.next(&mut self.rng).0
    }

    /// In even phases its own part, in odd ones any range. A phase is so many operations of all threads: it has the
    /// same work for each lock, whoever does it.
    fn in_phases_of(&mut self, operations: u64, number: u64, shared: &Shared) -> Range<usize> {
        if number.is_multiple_of(STRIDE) {
            self.phase = shared.strides.fetch_add(1, Relaxed) * STRIDE / operations;
        }
        if self.phase.is_multiple_of(2) {
            self.part_of_next(0)
        } else {
            self.anywhere()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Actor, Drawn, LONG, Load, Mode, Pattern, SHORT, STRIDE, Shared};

    fn load(pattern: Pattern) -> Load {
        Load {
            pattern,
            reads: 50,
            bystanders: 0,
            latency: false,
        }
    }

    /// So many operations of one of three threads.
    fn drawn(pattern: Pattern, thread: usize, count: usize) -> Vec<Drawn> {
        let shared = Shared::new(pattern.shape());
        let mut actor = Actor::new(load(pattern), thread, 3, fastrand::Rng::with_seed(5));
        let next = |_| {
            let drawn = actor.next(&shared);
            actor.done(&drawn, &shared);
            drawn
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn operations_are_within_the_resource_and_at_its_grain() {
        for pattern in Pattern::ALL {
            let shape = pattern.shape();
            for thread in 0..3 {
                for Drawn {
                    lock, locked, used, ..
                } in drawn(pattern, thread, 20_000)
                {
                    assert!(lock < shape.locks && locked.end <= shape.lines, "{pattern}");
                    assert!(!used.is_empty(), "{pattern}");
                    assert!(
                        locked.start <= used.start && used.end <= locked.end,
                        "{pattern}"
                    );
                    let grains = [locked.start, locked.end].map(|line| line % shape.grain);
                    assert_eq!(grains, [0, 0], "{pattern}");
                }
            }
        }
    }

    #[test]
    fn both_modes_and_many_ranges_occur_by_chance() {
        for pattern in Pattern::ALL {
            let all = drawn(pattern, 1, 20_000);
            let reads = all.iter().filter(|drawn| drawn.mode == Mode::Shared);
            let reads = reads.count();
            assert!((8_000..12_000).contains(&reads), "{pattern}: {reads} reads");
        }
    }

    #[test]
    fn popular_files_are_used_more_and_all_sizes_occur() {
        let all = drawn(Pattern::Files, 0, 20_000);
        let of = |lock| all.iter().filter(|drawn| drawn.lock == lock).count();
        assert!(
            of(0) > of(3) && of(3) > of(63),
            "{} {} {}",
            of(0),
            of(3),
            of(63)
        );
        assert!(of(255) > 0);
        for size in 0..=10 {
            assert!(all.iter().any(|drawn| drawn.locked.len() == 1 << size));
        }
    }

    #[test]
    fn a_log_grows_and_is_cut_when_it_is_full() {
        let shape = Pattern::Append.shape();
        let half = shape.lines / 2;
        let all = drawn(Pattern::Append, 0, half / shape.grain + 2);
        assert!(
            all.iter()
                .all(|one| one.mode == Mode::Exclusive && one.locked.end == shape.lines)
        );
        let starts: Vec<_> = all.iter().map(|drawn| drawn.locked.start).collect();
        assert_eq!(starts[..2], [half, half + shape.grain]);
        assert_eq!(
            starts[starts.len() - 3..],
            [shape.lines - shape.grain, half, half + shape.grain]
        );
    }

    #[test]
    fn parts_are_private_or_pass_on_or_end_in_a_sweep() {
        let starts = |pattern, thread, count| {
            let all = drawn(pattern, thread, count).into_iter();
            all.map(|drawn| (drawn.locked.start, drawn.locked.len()))
                .collect::<Vec<_>>()
        };
        let parts = [(0, 85), (85, 85), (170, 86)];
        assert_eq!(starts(Pattern::Churn, 1, 5), [parts[1]; 5]);
        let passed = [parts[1], parts[2], parts[0], parts[1]];
        assert_eq!(starts(Pattern::Alternate, 1, 4), passed);
        let short = usize::try_from(SHORT).unwrap();
        let owned = starts(Pattern::Owners, 1, 3 * short);
        assert!(
            owned
                .chunks(short)
                .zip(passed)
                .all(|(same, part)| same.iter().all(|one| *one == part))
        );
        let swept = drawn(Pattern::Sweep, 1, 2 * short);
        for (number, drawn) in swept.iter().enumerate() {
            let is_sweep = number % short == short - 1;
            assert_eq!(drawn.locked == (0..256), is_sweep);
            assert!(!is_sweep || drawn.mode == Mode::Exclusive);
        }
    }

    #[test]
    fn phases_are_private_then_shared_then_private() {
        for (pattern, length) in [(Pattern::Phases, LONG), (Pattern::Restless, SHORT)] {
            let length = usize::try_from(length).unwrap();
            let all = drawn(pattern, 0, 3 * length);
            let private: Vec<_> = all
                .chunks(length)
                .map(|phase| phase.iter().filter(|one| one.locked == (0..85)).count())
                .collect();
            assert_eq!([private[0], private[2]], [length; 2], "{pattern}");
            assert!(private[1] < length / 8, "{pattern}: {private:?}");
        }
    }

    /// One thread's operations end the phase of another.
    #[test]
    fn a_phase_is_the_same_for_all() {
        let pattern = Pattern::Phases;
        let shared = Shared::new(pattern.shape());
        let new = |thread| Actor::new(load(pattern), thread, 3, fastrand::Rng::with_seed(5));
        let (mut busy, mut late) = (new(0), new(1));
        let mut late_is_private = |shared: &Shared| {
            let stride = (0..STRIDE).map(|_| late.next(shared).locked);
            stride.filter(|locked| *locked == (85..170)).count() == 8
        };
        assert!(late_is_private(&shared));
        for _ in STRIDE..LONG {
            busy.next(&shared);
        }
        assert!(!late_is_private(&shared));
        for _ in STRIDE..LONG {
            busy.next(&shared);
        }
        assert!(late_is_private(&shared));
    }

    #[test]
    fn each_lock_is_used_once_before_any_is_again() {
        let locks = Pattern::Once.shape().locks;
        let all = drawn(Pattern::Once, 2, locks + 1);
        let mut numbers: Vec<_> = all.iter().map(|drawn| drawn.lock).collect();
        assert_eq!(numbers.pop(), Some(numbers[0]));
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..locks));
    }
}
