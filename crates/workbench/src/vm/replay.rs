//! A trace on an address space.

use spanlock::range::raw::RawRangeLock;
use spanlock_records::vm_trace::model::{self, linux};
use spanlock_records::vm_trace::trace::{self, PAGE, WRITE, attribute};
use spanlock_records::vm_trace::{Call, Trace};
use structures::vm::{
    Access, AddressSpace, Area, Backing, Builder, Flags, Layout, Limits, Mapping, Placement,
    Protection, Relocation, Source, VmError,
};

/// An address space on which a trace is replayed. Its threads are the caller's.
pub struct Replay<'a, L: RawRangeLock, B> {
    space: AddressSpace<L, B>,
    trace: &'a Trace,
}

/// An area that is not as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// What the kernel reported there, unless it reported nothing more.
    pub recorded: Option<trace::Area>,
    /// What the space has there, unless it has nothing more.
    pub found: Option<trace::Area>,
}

/// What is to be said of neighbours that are alike but for the private pages that they share with others
/// ([`Area::family`]). Which they share depends on what comes first, a fault or the mapping of a neighbour. So events
/// in the order of the recording lead to its families, and threads side by side may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// They must be as they were recorded.
    Compared,
    /// They are one area.
    Ignored,
}

/// Attributes that areas of the space have, too. Those that the kernel has besides keep no areas apart here.
const SHARED_WITH_SPACE: [(u32, Flags); 9] = [
    (attribute::ACCOUNT, Flags::RESERVED),
    (attribute::SHARED, Flags::SHARED),
    (attribute::NO_RESERVE, Flags::NO_RESERVE),
    (attribute::GROWS_DOWN, Flags::GROWS_DOWN),
    (attribute::LOCKED, Flags::LOCKED),
    (attribute::HUGE, Flags::HUGE),
    (attribute::NO_HUGE, Flags::NO_HUGE),
    (attribute::NOT_DUMPED, Flags::NO_DUMP),
    (attribute::NOT_INHERITED, Flags::NO_FORK),
];

fn flags(attributes: u32) -> Flags {
    let set = SHARED_WITH_SPACE.into_iter();
    let set = set.filter(|(attribute, _)| attributes & attribute != 0);
    set.fold(Flags::PRIVATE, |flags, (_, flag)| flags | flag)
}

fn protection(bits: u32) -> Protection {
    let bits = [
        (trace::READ, Protection::READ),
        (WRITE, Protection::WRITE),
        (trace::EXECUTE, Protection::EXECUTE),
    ]
    .into_iter()
    .filter(|(bit, _)| bits & bit != 0);
    bits.fold(Protection::NONE, |all, (_, bit)| all | bit)
}

fn mapping(allowed: u32, flags: Flags, backing: trace::Backing) -> Mapping {
    let source = match backing {
        trace::Backing::Anonymous => Source::Anonymous,
        // The space has no file 0.
        trace::Backing::File { file, page } => Source::File {
            file: u64::from(file) + 1,
            offset: page * PAGE,
        },
    };
    Mapping {
        flags,
        source,
        ..Mapping::anonymous(protection(allowed))
    }
}

fn reported(area: &Area) -> trace::Area {
    let backing = match area.source {
        Source::Anonymous => trace::Backing::Anonymous,
        Source::File { file, offset } => {
            let file = u32::try_from(file - 1).unwrap_or(u32::MAX);
            trace::Backing::File {
                file,
                page: offset / PAGE,
            }
        }
    };
    let set = SHARED_WITH_SPACE
        .into_iter()
        .filter(|(_, flag)| area.flags.contains(*flag));
    trace::Area {
        start: area.start / PAGE,
        end: area.end / PAGE,
        protection: u32::from(area.protection.bits()),
        attributes: set.fold(0, |set, (attribute, _)| set | attribute),
        backing,
    }
}

impl<'a, L: RawRangeLock, B: Backing> Replay<'a, L, B> {
    /// A space with the areas that a trace begins with.
    ///
    /// # Panics
    /// When the space refuses an area.
    pub fn begin(trace: &'a Trace, builder: Builder, lock: L, backing: B) -> Self {
        let layout = Layout {
            heap: trace.heap * PAGE,
            ..Layout::BITS_47
        };
        let limits = Limits {
            areas: u64::MAX,
            ..Limits::default()
        };
        let space = builder.layout(layout).limits(limits).build(lock, backing);
        for area in &trace.before {
            let what = mapping(area.protection, flags(area.attributes), area.backing);
            let place = Placement::FixedNoReplace(area.start * PAGE);
            let length = (area.end - area.start) * PAGE;
            let mapped = if area.attributes & attribute::ACCOUNT == 0 {
                space.mmap(place, length, what).map(drop)
            } else {
                // Memory is reserved for what is, or was, writable.
                let writable = Mapping {
                    protection: what.protection | Protection::WRITE,
                    ..what
                };
                let mapped = space.mmap(place, length, writable);
                mapped.and_then(|start| space.mprotect(start, length, what.protection))
            };
            mapped.unwrap_or_else(|error| panic!("{area:x?}: {error}"));
        }
        if trace.heap != 0 {
            space.brk(trace.heap * PAGE);
        }
        Self { space, trace }
    }

    /// The space.
    pub const fn space(&self) -> &AddressSpace<L, B> {
        &self.space
    }

    /// Makes a call, or a fault.
    ///
    /// # Errors
    /// Why the space refuses what the recorded program was granted.
    pub fn apply(&self, call: &Call) -> Result<(), VmError> {
        let space = &self.space;
        match *call {
            Call::Map(map) => {
                let place = if map.flags & linux::MAP_FIXED == 0 {
                    Placement::FixedNoReplace(map.start * PAGE)
                } else {
                    Placement::Fixed(map.start * PAGE)
                };
                let flags = flags(model::mapped(map.flags));
                let what = mapping(map.protection, flags, map.backing);
                space.mmap(place, map.pages * PAGE, what).map(drop)
            }
            Call::Unmap { start, pages } => space.munmap(start * PAGE, pages * PAGE),
            Call::Protect {
                start,
                pages,
                protection: allowed,
            } => space.mprotect(start * PAGE, pages * PAGE, protection(allowed)),
            Call::Break { end } => match space.brk(end * PAGE) {
                now if now == end * PAGE => Ok(()),
                _ => Err(VmError::NoRoom),
            },
            Call::Advise {
                start,
                pages,
                advice,
            } => advise(space, start * PAGE, pages * PAGE, advice),
            Call::Remap(what) => {
                let to = if what.from == what.start {
                    Relocation::Stay
                } else {
                    Relocation::To(what.start * PAGE)
                };
                let (old, new) = (what.pages * PAGE, what.grown * PAGE);
                space.mremap(what.from * PAGE, old, new, to).map(drop)
            }
            Call::Fault { page, access } => {
                let access = match access {
                    WRITE => Access::Write,
                    trace::EXECUTE => Access::Execute,
                    _ => Access::Read,
                };
                space.fault(page * PAGE, access).map(drop)
            }
        }
    }

    /// The first area that is not as the kernel reported it at the end of the recording. Call it after the last event.
    pub fn difference(&self, families: Families) -> Option<Difference> {
        let mut found: Vec<trace::Area> = Vec::new();
        let mut last: Option<Area> = None;
        for area in self.space.maps() {
            let kept_apart = last.is_some_and(|last| are_of_other_families(&last, &area));
            last = Some(area);
            push(
                &mut found,
                reported(&area),
                families,
                kept_apart && families == Families::Ignored,
            );
        }
        let mut recorded = Vec::new();
        for area in &self.trace.after {
            push(&mut recorded, *area, families, true);
        }
        let longest = found.len().max(recorded.len());
        let at = |number: usize| Difference {
            recorded: recorded.get(number).copied(),
            found: found.get(number).copied(),
        };
        (0..longest)
            .map(at)
            .find(|both| both.recorded != both.found)
    }
}

/// Whether neighbours differ in the private pages that they share with others, or in what follows from that: memory
/// that nothing was written to is no longer reserved once it cannot be written.
fn are_of_other_families(left: &Area, right: &Area) -> bool {
    let reserved = |area: &Area| area.flags.contains(Flags::RESERVED);
    let both = left.family != 0 && right.family != 0;
    both && left.family != right.family || reserved(left) != reserved(right)
}

/// Adds an area with the attributes that are compared. It becomes one with the area before if only another attribute
/// kept them apart.
fn push(all: &mut Vec<trace::Area>, area: trace::Area, families: Families, kept_apart: bool) {
    let known = SHARED_WITH_SPACE.iter();
    let known = known.fold(0, |known, (attribute, _)| known | attribute);
    let compared = match families {
        Families::Compared => known,
        Families::Ignored => known & !attribute::ACCOUNT,
    };
    let area = trace::Area {
        attributes: area.attributes & compared,
        ..area
    };
    let last = all
        .last_mut()
        .filter(|last| kept_apart && last.continues_in(&area));
    match last {
        Some(last) => last.end = area.end,
        None => all.push(area),
    }
}

/// Advice about content that is not needed, and advice that changes flags. Other advice changes nothing here.
fn advise<L: RawRangeLock, B: Backing>(
    space: &AddressSpace<L, B>,
    start: u64,
    length: u64,
    advice: u32,
) -> Result<(), VmError> {
    if advice == linux::MADV_DONTNEED {
        return space.madvise_dontneed(start, length);
    }
    let (set, clear) = model::advice(advice);
    let (set, clear) = (flags(set), flags(clear));
    if set == Flags::PRIVATE && clear == Flags::PRIVATE {
        return Ok(());
    }
    space.madvise(start, length, set, clear)
}
