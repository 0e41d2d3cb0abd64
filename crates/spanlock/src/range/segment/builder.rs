//! How a segment lock is made.

use super::{Array, Fairness, RawSegments, SrlArray, SrlTree, Tree};
use crate::deadlock::Deadlocks;

impl SrlArray {
    /// Begins a lock of one segment of one position.
    pub fn builder() -> ArrayBuilder {
        ArrayBuilder {
            shift: 0,
            extent: Extent::Segments(1),
            fairness: Fairness::DEFAULT,
            deadlocks: Deadlocks::BY_ENVIRONMENT,
        }
    }
}

impl SrlTree {
    /// Begins a lock with segments of one position, in nodes of 64, two levels deep.
    pub fn builder() -> TreeBuilder {
        TreeBuilder {
            shift: 0,
            bits: 6,
            depth: 2,
            fairness: Fairness::DEFAULT,
            deadlocks: Deadlocks::BY_ENVIRONMENT,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Extent {
    Segments(usize),
    Length(u64),
}

/// An [`SrlArray`] to be built.
#[derive(Debug)]
#[must_use]
pub struct ArrayBuilder {
    shift: u32,
    extent: Extent,
    fairness: Fairness,
    deadlocks: Deadlocks,
}

impl ArrayBuilder {
    /// How many positions a segment has. The default is one.
    ///
    /// # Panics
    /// When that is not a power of two.
    pub fn segment(mut self, positions: u64) -> Self {
        self.shift = log2(positions, "positions a segment");
        self
    }

    /// How many segments there are. Positions beyond belong to the last.
    pub fn segments(mut self, count: usize) -> Self {
        self.extent = Extent::Segments(count);
        self
    }

    /// As many segments as a resource of that length needs.
    pub fn length(mut self, positions: u64) -> Self {
        self.extent = Extent::Length(positions);
        self
    }

    /// How to treat requests that others keep overtaking. The default is [`Fairness::DEFAULT`].
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// Whether to look for deadlocks. The default is [`Deadlocks::BY_ENVIRONMENT`].
    pub fn deadlocks(mut self, deadlocks: Deadlocks) -> Self {
        self.deadlocks = deadlocks;
        self
    }

    /// The lock.
    ///
    /// # Panics
    /// When it would have no segment, more than `2^64` positions, or more segments than memory has room for.
    #[must_use]
    pub fn build(self) -> SrlArray {
        let segments = match self.extent {
            Extent::Segments(count) => count,
            Extent::Length(positions) => {
                usize::try_from(positions.div_ceil(1 << self.shift).max(1)).expect("few enough")
            }
        };
        let beyond = (segments.saturating_sub(1) as u64) > u64::MAX >> self.shift;
        assert!(
            !beyond,
            "{segments} segments of 2^{} positions: expected no more than 2^64 positions",
            self.shift
        );
        RawSegments::new(
            Array::new(segments),
            self.shift,
            self.fairness,
            self.deadlocks,
        )
    }
}

/// An [`SrlTree`] to be built.
#[derive(Debug)]
#[must_use]
pub struct TreeBuilder {
    shift: u32,
    bits: u32,
    depth: u32,
    fairness: Fairness,
    deadlocks: Deadlocks,
}

impl TreeBuilder {
    /// How many positions a segment has. The default is one.
    ///
    /// # Panics
    /// When that is not a power of two.
    pub fn segment(mut self, positions: u64) -> Self {
        self.shift = log2(positions, "positions a segment");
        self
    }

    /// How many children a node has, or words a leaf. The default is 64.
    ///
    /// # Panics
    /// When that is not a power of two, or one.
    pub fn fan_out(mut self, children: u32) -> Self {
        self.bits = log2(children.into(), "children a node");
        assert!(self.bits > 0, "1 child a node: expected 2 or more");
        self
    }

    /// How many levels of nodes there are, leaves included: `fan_out` to the power of `levels` segments. Positions
    /// beyond belong to the last.
    pub fn depth(mut self, levels: u32) -> Self {
        self.depth = levels;
        self
    }

    /// How to treat requests that others keep overtaking. The default is [`Fairness::DEFAULT`].
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// Whether to look for deadlocks. The default is [`Deadlocks::BY_ENVIRONMENT`].
    pub fn deadlocks(mut self, deadlocks: Deadlocks) -> Self {
        self.deadlocks = deadlocks;
        self
    }

    /// The lock.
    ///
    /// # Panics
    /// When it would have no level, or more than `2^64` positions.
    #[must_use]
    pub fn build(self) -> SrlTree {
        let Self {
            shift,
            bits,
            depth,
            fairness,
            deadlocks,
        } = self;
        assert!(depth > 0, "0 levels: expected 1 or more");
        let digits = u64::from(bits) * u64::from(depth) + u64::from(shift);
        assert!(
            digits <= u64::from(u64::BITS),
            "2^{digits} positions: expected no more than 2^64"
        );
        RawSegments::new(Tree::new(bits, depth), shift, fairness, deadlocks)
    }
}

fn log2(number: u64, what: &str) -> u32 {
    assert!(
        number.is_power_of_two(),
        "{number} {what}: expected a power of two"
    );
    number.ilog2()
}
