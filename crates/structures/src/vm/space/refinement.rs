//! How much of the space each operation locks.

/// How much of the space each operation locks. The algorithm is the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refinement {
    /// What a fault locks.
    pub fault: FaultRange,
    /// What a change locks first.
    pub change: ChangeRange,
    /// What a change of the structure locks.
    pub structure: StructureRange,
}

/// What a fault locks, in shared mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultRange {
    /// Everything.
    Whole,
    /// Its page.
    Page,
}

/// What a change locks first, exclusively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeRange {
    /// Everything.
    Whole,
    /// `mprotect`: the area that it is about and a page on each side, after a look under a shared lock of its arguments
    /// (P1, Listing 4). Other operations: everything.
    Speculate,
    /// The pages of its arguments and one on each side; more if the change turns out to need more.
    Arguments,
}

/// What a change locks that inserts or removes areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructureRange {
    /// Everything.
    Whole,
    /// What it needs.
    Partial,
}

impl Refinement {
    /// Every operation locks everything, as with one reader-writer lock.
    pub const FULL: Self = Self {
        fault: FaultRange::Whole,
        change: ChangeRange::Whole,
        structure: StructureRange::Whole,
    };

    /// Faults lock their page, and `mprotect` speculates: P1 §5.
    pub const P1: Self = Self {
        fault: FaultRange::Page,
        change: ChangeRange::Speculate,
        structure: StructureRange::Whole,
    };

    /// Faults lock their page, and that is all (P1's `list-pf`).
    pub const P1_FAULTS: Self = Self {
        fault: FaultRange::Page,
        ..Self::FULL
    };

    /// `mprotect` speculates, and that is all (P1's `list-mprotect`).
    pub const P1_PROTECT: Self = Self {
        change: ChangeRange::Speculate,
        ..Self::FULL
    };

    /// Every operation locks what it needs, also when it changes the structure.
    pub const REFINED: Self = Self {
        fault: FaultRange::Page,
        change: ChangeRange::Arguments,
        structure: StructureRange::Partial,
    };
}

impl Default for Refinement {
    fn default() -> Self {
        Self::REFINED
    }
}
