//! Linux's rules for areas, on a sorted map and one event at a time.
//!
//! A test checks with it that recorded traces are complete and in order, and it says what a generated trace leads to.
//! A trace has the outcome of each call, so the model chooses no place and refuses nothing but what cannot have
//! happened.

use crate::vm_trace::trace::{Area, Backing, Call, Map, READ, Remap, Trace, WRITE, attribute};
use std::collections::BTreeMap;
use std::fmt;

/// The numbers of Linux on x86-64 that a trace uses.
pub mod linux {
    /// `MAP_PRIVATE`.
    pub const MAP_PRIVATE: u32 = 0x02;
    /// The kinds of sharing, of which one value (3) is `MAP_SHARED_VALIDATE`.
    pub const MAP_TYPE: u32 = 0x0f;
    /// `MAP_FIXED`: what is mapped there is replaced.
    pub const MAP_FIXED: u32 = 0x10;
    /// `MAP_ANONYMOUS`.
    pub const MAP_ANONYMOUS: u32 = 0x20;
    /// `MAP_GROWSDOWN`.
    pub const MAP_GROWSDOWN: u32 = 0x100;
    /// `MAP_LOCKED`.
    pub const MAP_LOCKED: u32 = 0x2000;
    /// `MAP_NORESERVE`.
    pub const MAP_NORESERVE: u32 = 0x4000;
    /// `MAP_STACK`.
    pub const MAP_STACK: u32 = 0x20000;
    /// `MADV_DONTNEED`: the pages' content is not needed.
    pub const MADV_DONTNEED: u32 = 4;
}

/// What cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible {
    /// The event.
    pub call: Call,
    /// Why not.
    pub why: &'static str,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?} cannot have happened: {}", self.call, self.why)
    }
}

impl std::error::Error for Impossible {}

/// Areas in which no neighbours could be one.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// By their first page.
    areas: BTreeMap<u64, Area>,
    /// The page where the heap begins, and the page after it.
    heap: (u64, u64),
}

impl Model {
    /// The areas that a trace begins with.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let mut model = Self {
            areas: BTreeMap::new(),
            heap: (trace.heap, trace.heap),
        };
        for area in &trace.before {
            model.areas.insert(area.start, *area);
        }
        model
    }

    /// The areas, by address, as they are reported.
    #[must_use]
    pub fn areas(&self) -> Vec<Area> {
        let reported = |area: &Area| {
            let attributes = area.attributes & !attribute::WRITTEN;
            Area {
                attributes,
                ..*area
            }
        };
        self.areas.values().map(reported).collect()
    }

    /// The area with this page.
    fn area(&self, page: u64) -> Option<&Area> {
        let (_, area) = self.areas.range(..=page).next_back()?;
        (page < area.end).then_some(area)
    }

    /// Whether no page of a range is mapped.
    fn is_free(&self, start: u64, end: u64) -> bool {
        let last = self.areas.range(..end).next_back();
        last.is_none_or(|(_, area)| area.end <= start)
    }

    /// Applies an event.
    ///
    /// # Errors
    /// Why this cannot have happened now. Then nothing has changed.
    pub fn apply(&mut self, call: &Call) -> Result<(), Impossible> {
        let refused = |why| Impossible { call: *call, why };
        match *call {
            Call::Map(what) => self.map(what).map_err(refused)?,
            Call::Unmap { start, pages } => self.remove(start, start + pages),
            Call::Protect {
                start,
                pages,
                protection,
            } => {
                if !self.is_full(start, start + pages) {
                    return Err(refused("there is a page that is not mapped"));
                }
                self.change(start, start + pages, |area| Area {
                    protection,
                    attributes: protected(&area, protection),
                    ..area
                });
            }
            Call::Break { end } => self.set_break(end).map_err(refused)?,
            Call::Advise {
                start,
                pages,
                advice,
            } => {
                let (set, clear) = self::advice(advice);
                self.change(start, start + pages, |area| Area {
                    attributes: area.attributes & !clear | set,
                    ..area
                });
            }
            Call::Remap(what) => self.remap(what).map_err(refused)?,
            Call::Fault { page, access } => {
                let area = self
                    .area(page)
                    .ok_or_else(|| refused("the page is not mapped"))?;
                if area.protection & access == 0 {
                    return Err(refused("the area does not allow it"));
                }
                let written = area.start;
                if access == WRITE
                    && let Some(area) = self.areas.get_mut(&written)
                {
                    area.attributes |= attribute::WRITTEN;
                }
            }
        }
        Ok(())
    }

    /// Whether every page of a range is mapped.
    fn is_full(&self, start: u64, end: u64) -> bool {
        let mut page = start;
        while page < end {
            match self.area(page) {
                Some(area) => page = area.end,
                None => return false,
            }
        }
        true
    }

    /// Makes a page the first of an area, if it is within one.
    fn cut(&mut self, page: u64) {
        let Some(&area) = self.area(page).filter(|area| area.start < page) else {
            return;
        };
        let backing = area.backing.after(page - area.start);
        self.areas.insert(area.start, Area { end: page, ..area });
        self.areas.insert(
            page,
            Area {
                start: page,
                backing,
                ..area
            },
        );
    }

    /// Takes the areas within a range out; they are cut at its ends.
    fn take(&mut self, start: u64, end: u64) -> Vec<Area> {
        self.cut(start);
        self.cut(end);
        let within: Vec<_> = self
            .areas
            .range(start..end)
            .map(|(_, area)| *area)
            .collect();
        for area in &within {
            self.areas.remove(&area.start);
        }
        within
    }

    fn remove(&mut self, start: u64, end: u64) {
        self.take(start, end);
    }

    /// Inserts an area where nothing is mapped, and makes it one with neighbours that fit.
    fn insert(&mut self, area: Area) {
        let mut area = area;
        let before = self
            .areas
            .range(..area.start)
            .next_back()
            .map(|(_, before)| *before);
        if let Some(before) = before.filter(|before| before.continues_in(&area)) {
            self.areas.remove(&before.start);
            let attributes = before.attributes | area.attributes;
            area = Area {
                start: before.start,
                backing: before.backing,
                attributes,
                ..area
            };
        }
        if let Some(&after) = self
            .areas
            .get(&area.end)
            .filter(|after| area.continues_in(after))
        {
            self.areas.remove(&after.start);
            area.end = after.end;
            area.attributes |= after.attributes;
        }
        self.areas.insert(area.start, area);
    }

    fn change(&mut self, start: u64, end: u64, into: impl Fn(Area) -> Area) {
        for area in self.take(start, end) {
            self.insert(into(area));
        }
    }

    fn set_break(&mut self, end: u64) -> Result<(), &'static str> {
        let (first, last) = self.heap;
        if end < first {
            return Err("the heap would end before it begins");
        }
        if end > last {
            if !self.is_free(last, end) {
                return Err("the heap would grow into another area");
            }
            let (protection, attributes) = (READ | WRITE, attribute::ACCOUNT);
            let backing = Backing::Anonymous;
            self.insert(Area {
                start: last,
                end,
                protection,
                attributes,
                backing,
            });
        } else {
            self.remove(end, last);
        }
        self.heap.1 = end;
        Ok(())
    }

    fn map(&mut self, what: Map) -> Result<(), &'static str> {
        let (start, end) = (what.start, what.start + what.pages);
        if what.flags & linux::MAP_FIXED == 0 && !self.is_free(start, end) {
            return Err("the place is taken");
        }
        self.remove(start, end);
        self.insert(Area {
            start,
            end,
            protection: what.protection,
            attributes: reserving(mapped(what.flags), what.protection),
            backing: what.backing,
        });
        Ok(())
    }

    fn remap(&mut self, what: Remap) -> Result<(), &'static str> {
        let Remap {
            from,
            pages,
            start,
            grown,
        } = what;
        let Some(&area) = self.area(from).filter(|area| from + pages <= area.end) else {
            return Err("it is not within one area");
        };
        if start == from {
            if !self.is_free(from + pages, from + grown) {
                return Err("it would grow into another area");
            }
        } else if !self.is_free(start, start + grown) {
            return Err("the place is taken");
        }
        self.remove(from, from + pages);
        let backing = area.backing.after(from - area.start);
        self.insert(Area {
            start,
            end: start + grown,
            backing,
            ..area
        });
        Ok(())
    }
}

/// The attributes that a new area has from the flags of `mmap`.
#[must_use]
pub fn mapped(flags: u32) -> u32 {
    let flag = |flag, attribute| if flags & flag == 0 { 0 } else { attribute };
    let shared = if flags & linux::MAP_TYPE == linux::MAP_PRIVATE {
        0
    } else {
        attribute::SHARED
    };
    shared
        | flag(linux::MAP_NORESERVE, attribute::NO_RESERVE)
        | flag(linux::MAP_STACK, attribute::NO_HUGE)
        | flag(linux::MAP_GROWSDOWN, attribute::GROWS_DOWN)
        | flag(linux::MAP_LOCKED, attribute::LOCKED)
}

/// The attributes when pages may be written: private memory counts from then on.
const fn reserving(attributes: u32, protection: u32) -> u32 {
    let reserves = attributes & (attribute::SHARED | attribute::NO_RESERVE) == 0;
    if reserves && protection & WRITE != 0 {
        attributes | attribute::ACCOUNT
    } else {
        attributes
    }
}

/// The attributes of an area whose protection changes. Anonymous memory that nothing was written to counts no longer
/// when nothing may be written to it (since Linux 6.5).
fn protected(area: &Area, protection: u32) -> u32 {
    let Area {
        attributes,
        backing,
        ..
    } = *area;
    let empty = backing == Backing::Anonymous && attributes & attribute::WRITTEN == 0;
    if empty && protection & WRITE == 0 {
        attributes & !attribute::ACCOUNT
    } else {
        reserving(attributes, protection)
    }
}

/// The attributes that `madvise` sets, and those that it clears.
#[must_use]
pub const fn advice(advice: u32) -> (u32, u32) {
    use attribute::{
        HUGE, MERGEABLE, NO_HUGE, NOT_DUMPED, NOT_INHERITED, RANDOM, SEQUENTIAL, WIPED,
    };
    match advice {
        0 => (0, RANDOM | SEQUENTIAL),
        1 => (RANDOM, SEQUENTIAL),
        2 => (SEQUENTIAL, RANDOM),
        10 => (NOT_INHERITED, 0),
        11 => (0, NOT_INHERITED),
        12 => (MERGEABLE, 0),
        13 => (0, MERGEABLE),
        14 => (HUGE, NO_HUGE),
        15 => (NO_HUGE, HUGE),
        16 => (NOT_DUMPED, 0),
        17 => (0, NOT_DUMPED),
        18 => (WIPED, 0),
        19 => (0, WIPED),
        _ => (0, 0),
    }
}
