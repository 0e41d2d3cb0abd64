//! Operations as data, done on a space and on the model.

use super::model::{Block, Model};
use spanlock_vm::{
    Access, AddressSpace, Area, Flags, Layout, Mapping, PAGE, Placement, Protection, RawRangeLock,
    Relocation, Source,
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
pub fn on_space<L: RawRangeLock>(space: &AddressSpace<L>, step: &Step) -> String {
    match *step {
        Step::Map(at, length, what) => format!("{:x?}", space.mmap(at, length, what)),
        Step::Unmap(at, length) => format!("{:?}", space.munmap(at, length)),
        Step::Protect(at, length, to) => format!("{:?}", space.mprotect(at, length, to)),
        Step::Advise(at, length, set, clear) => {
            format!("{:?}", space.madvise(at, length, set, clear))
        }
        Step::DontNeed(at, length) => format!("{:?}", space.madvise_dontneed(at, length)),
        Step::Remap(at, old, new, to) => format!("{:x?}", space.mremap(at, old, new, to)),
        Step::Brk(to) => format!("{:x}", space.brk(to)),
        Step::Fault(at, access) => format!("{:?}", space.fault(at, access)),
        Step::Find(at) => format!("{:x?}", space.find(at).map(nameless)),
        Step::Maps => format!(
            "{:x?}",
            space.maps().into_iter().map(nameless).collect::<Vec<_>>()
        ),
    }
}

/// What it returns on the model.
pub fn on_model(model: &mut Model, step: &Step) -> String {
    match *step {
        Step::Map(at, length, what) => format!("{:x?}", model.mmap(at, length, what)),
        Step::Unmap(at, length) => format!("{:?}", model.munmap(at, length)),
        Step::Protect(at, length, to) => format!("{:?}", model.mprotect(at, length, to)),
        Step::Advise(at, length, set, clear) => {
            format!("{:?}", model.madvise(at, length, set, clear))
        }
        Step::DontNeed(at, length) => format!("{:?}", model.dontneed(at, length)),
        Step::Remap(at, old, new, to) => format!("{:x?}", model.mremap(at, old, new, to)),
        Step::Brk(to) => format!("{:x}", model.brk(to)),
        Step::Fault(at, access) => format!("{:?}", model.fault(at, access)),
        Step::Find(at) => format!("{:x?}", model.at(at).map(area).map(nameless)),
        Step::Maps => format!(
            "{:x?}",
            model
                .blocks
                .iter()
                .map(area)
                .map(nameless)
                .collect::<Vec<_>>()
        ),
    }
}

/// A block of the model as the space reports it.
pub fn area(block: &Block) -> Area {
    let Block {
        start,
        end,
        protection,
        most,
        flags,
        file,
        origin,
        family,
    } = *block;
    let source = match file {
        0 => Source::Anonymous,
        file => Source::File {
            file,
            offset: origin.wrapping_add(start),
        },
    };
    Area {
        start,
        end,
        protection,
        most,
        flags,
        source,
        family,
    }
}
