//! A table of keys that is cut into parts, each with a list of its own, as a program may that knows its regions.

use super::{Key, KeyLock, Load, Scanned};
use spanlock::range::Owner;
use spanlock::range::keys::{KeySpace, Natural, Table, between};
use spanlock::range::raw::Mode;

/// A table in parts.
pub(super) struct Split {
    space: KeySpace<[u8]>,
    /// Where the parts begin, but for the first.
    cuts: Vec<Key>,
    parts: Vec<Table<[u8]>>,
}

impl Split {
    const PARTS: usize = 16;

    /// With the keys of a load in parts of the same size.
    pub(super) fn new(load: Load) -> Self {
        let space = KeySpace::new();
        let cut = |part| Key::of(load.length, (load.keys * part / Self::PARTS) as u64);
        Self {
            cuts: (1..Self::PARTS).map(cut).collect(),
            parts: (0..Self::PARTS).map(|_| space.table(Natural)).collect(),
            space,
        }
    }

    /// Which part a key is in.
    fn part(&self, key: &[u8]) -> usize {
        self.cuts.partition_point(|cut| cut.0.as_slice() <= key)
    }
}

impl KeyLock for Split {
    fn point(&self, key: &[u8], mode: Mode, inside: &mut dyn FnMut()) {
        self.parts[self.part(key)].point(key, mode, inside);
    }

    /// The whole range in each part that it touches: so two ranges that overlap meet, and no others.
    fn scan(&self, from: &[u8], to: &[u8], mode: Mode, inside: &mut dyn FnMut()) -> Scanned {
        match &self.parts[self.part(from)..=self.part(to)] {
            [part] => part.scan(from, to, mode, inside),
            several => {
                let wanted = several.iter().map(|part| (part, between(from, to), mode));
                let held = self.space.lock_many(&Owner::new(), wanted);
                let _held = held.expect("nobody cancels it");
                inside();
                Scanned::Yes
            }
        }
    }
}
