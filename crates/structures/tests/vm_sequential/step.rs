//! Operations as data, done on a space and on the model.

use super::block::Block;
use super::model::Model;
use super::vm::{
    Access, AddressSpace, Area, Flags, Layout, Mapping, PAGE, Placement, Protection, RawRangeLock,
    Relocation,
};

/// Pages of the small space.
pub const PAGES: u64 = 40;

/// Its first address.
pub const BASE: u64 = 0x10_0000;

pub fn layout() -> Layout {
    let at = |page| BASE + page * PAGE;
    Layout {
        lowest: at(0),
        end: at(PAGES),
        mmap_top: at(32),
        mmap_bottom: at(4),
        heap: at(12),
        guard: 2 * PAGE,
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Map(Placement, u64, Mapping),
    Unmap(u64, u64),
    Protect(u64, u64, Protection),
    Advise(u64, u64, Flags, Flags),
    DontNeed(u64, u64),
    Remap(u64, u64, u64, Relocation),
    Brk(u64),
    Fault(u64, Access),
    Find(u64),
    Maps,
}

/// The number of a family is nobody's business: it depends on who came first elsewhere.
fn nameless(area: Area) -> Area {
    Area { family: 0, ..area }
}

/// What a step returns, in words.
macro_rules! returned {
    ($on:expr, $step:expr, dont_need: $dont_need:ident, find: $find:expr, maps: $maps:expr) => {
        match *$step {
            Step::Map(at, length, what) => format!("{:x?}", $on.mmap(at, length, what)),
            Step::Unmap(at, length) => format!("{:?}", $on.munmap(at, length)),
            Step::Protect(at, length, to) => format!("{:?}", $on.mprotect(at, length, to)),
            Step::Advise(at, length, set, clear) => {
                format!("{:?}", $on.madvise(at, length, set, clear))
            }
            Step::DontNeed(at, length) => format!("{:?}", $on.$dont_need(at, length)),
            Step::Remap(at, old, new, to) => format!("{:x?}", $on.mremap(at, old, new, to)),
            Step::Brk(to) => format!("{:x}", $on.brk(to)),
            Step::Fault(at, access) => format!("{:?}", $on.fault(at, access)),
            Step::Find(at) => format!("{:x?}", $find(at).map(nameless)),
            Step::Maps => format!("{:x?}", $maps.map(nameless).collect::<Vec<_>>()),
        }
    };
}

/// What it returns on the space.
pub fn on_space<L: RawRangeLock>(space: &AddressSpace<L>, step: &Step) -> String {
    returned!(space, step, dont_need: madvise_dontneed, find: |at| space.find(at),
        maps: space.maps().into_iter())
}

/// What it returns on the model.
pub fn on_model(model: &mut Model, step: &Step) -> String {
    returned!(model, step, dont_need: dontneed, find: |at| model.at(at).map(Block::area),
        maps: model.blocks.iter().map(Block::area))
}
