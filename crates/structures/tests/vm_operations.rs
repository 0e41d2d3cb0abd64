//! The operations one by one: what they do to the areas, and what they refuse.

use spanlock::range::list::ListRw;
use spanlock::range::raw::Mode;
use spanlock_structures::vm::{
    Access, AddressSpace, Flags, Limits, LockStat, Mapping, Operation, PAGE, PageTable, Placement,
    Protection, Refinement, Relocation, Speculation, VmError,
};
use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

const RW: Protection = Protection::READ_WRITE;
const BASE: u64 = 0x1000_0000;

fn rw() -> Mapping {
    Mapping::anonymous(RW)
}

/// Page ranges and protections of a space, from `BASE` on.
fn pages(space: &AddressSpace) -> Vec<(u64, u64, String)> {
    let page = |address: u64| (address - BASE) / PAGE;
    let maps = space.maps().into_iter();
    maps.map(|area| {
        (
            page(area.start),
            page(area.end),
            area.protection.to_string(),
        )
    })
    .collect()
}

fn expect(space: &AddressSpace, expected: &[(u64, u64, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|&(a, b, p)| (a, b, p.to_owned()))
        .collect();
    assert_eq!(pages(space), expected);
}

fn with_pages(count: u64) -> AddressSpace {
    let space = AddressSpace::new();
    assert_eq!(
        space.mmap(Placement::Fixed(BASE), count * PAGE, rw()),
        Ok(BASE)
    );
    space
}

fn map_to_read(space: &AddressSpace, address: u64) {
    let what = Mapping::anonymous(Protection::READ);
    space.mmap(Placement::Fixed(address), PAGE, what).unwrap();
}

fn protect(space: &AddressSpace, from: u64, to: u64, protection: Protection) {
    space
        .mprotect(BASE + from * PAGE, (to - from) * PAGE, protection)
        .unwrap();
}

#[test]
fn protecting_the_middle_splits_and_merges_again() {
    let space = with_pages(10);
    protect(&space, 3, 5, Protection::READ);
    expect(&space, &[(0, 3, "rw-"), (3, 5, "r--"), (5, 10, "rw-")]);
    protect(&space, 3, 5, RW);
    expect(&space, &[(0, 10, "rw-")]);
    assert_eq!(space.areas(), 1);
}

#[test]
fn a_boundary_moves_both_ways() {
    let space = with_pages(10);
    protect(&space, 5, 10, Protection::NONE);
    protect(&space, 5, 6, RW); // Linux's case 5.
    expect(&space, &[(0, 6, "rw-"), (6, 10, "---")]);
    protect(&space, 4, 6, Protection::NONE); // Case 4.
    expect(&space, &[(0, 4, "rw-"), (4, 10, "---")]);
}

#[test]
fn faults_obey_protections() {
    let space = with_pages(4);
    protect(&space, 1, 2, Protection::READ);
    protect(&space, 2, 3, Protection::NONE);
    assert_eq!(space.fault(BASE, Access::Write), Ok(()));
    assert_eq!(space.fault(BASE + PAGE, Access::Read), Ok(()));
    assert_eq!(
        space.fault(BASE + PAGE, Access::Write),
        Err(VmError::Denied)
    );
    assert_eq!(
        space.fault(BASE + 2 * PAGE, Access::Read),
        Err(VmError::Denied)
    );
    assert_eq!(
        space.fault(BASE + 4 * PAGE, Access::Read),
        Err(VmError::Unmapped)
    );
    assert_eq!(space.fault(u64::MAX, Access::Read), Err(VmError::Unmapped));
    assert_eq!(space.backing().pages(0..u64::MAX), 2);
    space.madvise_dontneed(BASE, 2 * PAGE).unwrap();
    assert_eq!(space.backing().pages(0..u64::MAX), 0);
}

#[test]
fn unmapping_frees_and_counts() {
    let space = with_pages(10);
    space.munmap(BASE + 2 * PAGE, 3 * PAGE).unwrap();
    expect(&space, &[(0, 2, "rw-"), (5, 10, "rw-")]);
    assert_eq!((space.pages().total, space.pages().data), (7, 7));
    assert_eq!(
        space.mprotect(BASE, 10 * PAGE, Protection::READ),
        Err(VmError::Hole)
    );
    expect(&space, &[(0, 2, "r--"), (5, 10, "rw-")]);
    space.munmap(BASE, 100 * PAGE).unwrap();
    assert_eq!((space.areas(), space.pages().total), (0, 0));
}

#[test]
fn areas_go_top_down_and_into_the_highest_gap() {
    let space = AddressSpace::new();
    let top = space.layout().mmap_top;
    let map = |length| space.mmap(Placement::Anywhere, length, rw());
    assert_eq!(map(4 * PAGE), Ok(top - 4 * PAGE));
    assert_eq!(map(2 * PAGE), Ok(top - 6 * PAGE));
    assert_eq!(space.areas(), 1);
    space.munmap(top - 3 * PAGE, 2 * PAGE).unwrap();
    assert_eq!(map(3 * PAGE), Ok(top - 9 * PAGE));
    assert_eq!(map(1), Ok(top - 2 * PAGE));
    assert_eq!(space.mmap(Placement::Hint(BASE + 1), PAGE, rw()), Ok(BASE));
    assert_eq!(
        space.mmap(Placement::Hint(BASE), PAGE, rw()),
        Ok(top - 3 * PAGE)
    );
    assert_eq!(
        space.mmap(Placement::FixedNoReplace(BASE), PAGE, rw()),
        Err(VmError::Occupied)
    );
}

#[test]
fn others_keep_away_from_below_an_area_that_grows_down() {
    let space = AddressSpace::new();
    let top = space.layout().mmap_top;
    let stack = Mapping {
        flags: Flags::GROWS_DOWN | Flags::STACK,
        ..rw()
    };
    assert_eq!(space.mmap(Placement::Anywhere, PAGE, stack), Ok(top - PAGE));
    assert_eq!(
        space.mmap(Placement::Anywhere, PAGE, rw()),
        Ok(top - PAGE - space.layout().guard - PAGE)
    );
    assert_eq!((space.pages().stack, space.pages().data), (1, 1));
}

#[test]
fn the_heap_grows_and_shrinks() {
    let space = AddressSpace::new();
    let heap = space.brk(0);
    assert_eq!(heap, space.layout().heap);
    assert_eq!(space.brk(heap + 10), heap + 10);
    assert_eq!(space.brk(heap + 3 * PAGE), heap + 3 * PAGE);
    assert_eq!(space.areas(), 1);
    assert_eq!(space.brk(heap - 1), heap + 3 * PAGE);
    map_to_read(&space, heap + 5 * PAGE);
    assert_eq!(
        space.brk(heap + 5 * PAGE),
        heap + 3 * PAGE,
        "a page stays free"
    );
    assert_eq!(space.brk(heap + 4 * PAGE), heap + 4 * PAGE);
    assert_eq!(space.brk(heap), heap);
    assert_eq!(space.areas(), 1);
}

#[test]
fn remapping_shrinks_grows_and_moves() {
    let space = with_pages(4);
    let remap = |old, new, to| space.mremap(BASE, old * PAGE, new * PAGE, to);
    assert_eq!(remap(4, 2, Relocation::Stay), Ok(BASE));
    assert_eq!(remap(2, 3, Relocation::Stay), Ok(BASE));
    map_to_read(&space, BASE + 3 * PAGE);
    assert_eq!(remap(3, 4, Relocation::Stay), Err(VmError::NoRoom));
    space.fault(BASE + PAGE, Access::Write).unwrap();
    let moved = remap(3, 4, Relocation::May).unwrap();
    assert_eq!(moved, space.layout().mmap_top - 4 * PAGE);
    assert!(space.backing().is_written(moved + PAGE));
    assert_eq!(space.backing().pages(0..u64::MAX), 1);
    assert_eq!(space.find(BASE), None);
    assert_eq!(
        space.mremap(BASE, PAGE, PAGE, Relocation::May),
        Err(VmError::Unmapped)
    );
    assert_eq!(
        space.mremap(moved, 5 * PAGE, 6 * PAGE, Relocation::May),
        Err(VmError::Unmapped)
    );
    let overlapping = Relocation::To(moved + PAGE);
    assert_eq!(
        space.mremap(moved, 4 * PAGE, 4 * PAGE, overlapping),
        Err(VmError::Contradiction)
    );
    assert_eq!(
        space.mremap(moved, 4 * PAGE, 2 * PAGE, Relocation::To(BASE)),
        Ok(BASE)
    );
    assert!(space.backing().is_written(BASE + PAGE));
    assert_eq!(space.pages().total, 3);
}

#[test]
fn families_keep_areas_apart() {
    let space = with_pages(4);
    space.fault(BASE, Access::Write).unwrap();
    space
        .mmap(Placement::Fixed(BASE + 8 * PAGE), PAGE, rw())
        .unwrap();
    space.fault(BASE + 8 * PAGE, Access::Write).unwrap();
    space
        .mremap(BASE + 8 * PAGE, PAGE, PAGE, Relocation::To(BASE + 4 * PAGE))
        .unwrap();
    assert_eq!(
        space.areas(),
        2,
        "pages of different families, and other places"
    );
    space
        .mmap(Placement::Fixed(BASE + 5 * PAGE), PAGE, rw())
        .unwrap();
    assert_eq!(space.areas(), 3, "the area moved here keeps its origin");
}

#[test]
fn limits_are_kept() {
    let limits = Limits {
        areas: 3,
        pages: 20,
        data: 10,
    };
    let space = AddressSpace::builder()
        .limits(limits)
        .build(ListRw::new(), PageTable::new());
    space.mmap(Placement::Fixed(BASE), 10 * PAGE, rw()).unwrap();
    let anywhere = |pages, what| space.mmap(Placement::Anywhere, pages * PAGE, what);
    assert_eq!(anywhere(1, rw()), Err(VmError::OverLimit));
    assert_eq!(
        anywhere(11, Mapping::anonymous(Protection::READ)),
        Err(VmError::OverLimit)
    );
    space.munmap(BASE + 2 * PAGE, PAGE).unwrap();
    space.munmap(BASE + 4 * PAGE, PAGE).unwrap();
    assert_eq!(space.areas(), 3);
    assert_eq!(
        space.munmap(BASE + 6 * PAGE, PAGE),
        Err(VmError::TooManyAreas)
    );
    assert_eq!(
        space.mprotect(BASE + 6 * PAGE, PAGE, Protection::READ),
        Err(VmError::TooManyAreas)
    );
    assert_eq!(space.areas(), 3);
    let none = anywhere(4, Mapping::anonymous(Protection::READ)).unwrap();
    assert_eq!(
        space.areas(),
        4,
        "mmap may make one more than the limit, as in Linux"
    );
    assert_eq!(anywhere(1, rw()), Err(VmError::TooManyAreas));
    assert_eq!(space.mprotect(none, 4 * PAGE, RW), Err(VmError::OverLimit));
}

/// The glibc allocator's way to grow an arena: a page of the reserve after the other.
fn grow(refinement: Refinement) -> LockStat {
    let space = AddressSpace::builder()
        .refinement(refinement)
        .recorded()
        .build(ListRw::new(), PageTable::new());
    space
        .mmap(
            Placement::Fixed(BASE),
            64 * PAGE,
            Mapping::anonymous(Protection::NONE),
        )
        .unwrap();
    for page in 0..64 {
        space.mprotect(BASE + page * PAGE, PAGE, RW).unwrap();
        space.fault(BASE + page * PAGE, Access::Write).unwrap();
    }
    assert_eq!(space.areas(), 1);
    space.lock_stat().expect("it is recorded")
}

#[test]
fn growing_an_arena_succeeds_speculatively() {
    for refinement in [Refinement::P1, Refinement::REFINED] {
        let stat = grow(refinement);
        let of = |outcome| stat.speculations(Operation::Mprotect, outcome);
        // The first page splits the reserve, and the last one removes it.
        assert_eq!(of(Speculation::InPlace), 62);
        let structural = of(Speculation::Structural) + of(Speculation::WholeForStructure);
        assert_eq!(structural, 2);
        let alone = stat.waits(Operation::Fault, Mode::Exclusive).acquired;
        assert_eq!(alone, 1, "only the first write founds a family");
        assert_eq!(stat.waits(Operation::Fault, Mode::Shared).acquired, 64);
        assert_eq!(stat.waits(Operation::Mprotect, Mode::Exclusive).waited, 0);
    }
    let stat = grow(Refinement::FULL);
    assert!(
        Speculation::ALL
            .iter()
            .all(|&outcome| stat.speculations(Operation::Mprotect, outcome) == 0)
    );
    assert_eq!(
        stat.waits(Operation::Mprotect, Mode::Exclusive).acquired,
        64
    );
    assert!(AddressSpace::new().lock_stat().is_none());
}

/// A space with areas of two pages each, from `BASE` on: of these protections, or free.
fn in_pairs(pairs: [Option<Protection>; 3]) -> AddressSpace {
    let space = AddressSpace::new();
    for (pair, protection) in (0..).zip(pairs) {
        if let Some(protection) = protection {
            let at = Placement::Fixed(BASE + 2 * pair * PAGE);
            space
                .mmap(at, 2 * PAGE, Mapping::anonymous(protection))
                .unwrap();
        }
    }
    space
}

/// The eight cases of `mm/vma.c`.
#[test]
fn the_cases_of_merging() {
    let (rw, r, none) = (Some(RW), Some(Protection::READ), Some(Protection::NONE));
    let fill = |pairs| {
        let space = in_pairs(pairs);
        space
            .mmap(
                Placement::Fixed(BASE + 2 * PAGE),
                2 * PAGE,
                Mapping::anonymous(RW),
            )
            .unwrap();
        space
    };
    let change = |pairs, from, to| {
        let space = in_pairs(pairs);
        protect(&space, from, to, RW);
        space
    };
    expect(&fill([rw, None, rw]), &[(0, 6, "rw-")]); // 1
    expect(&fill([rw, None, r]), &[(0, 4, "rw-"), (4, 6, "r--")]); // 2
    expect(&fill([r, None, rw]), &[(0, 2, "r--"), (2, 6, "rw-")]); // 3
    expect(
        &change([none, r, rw], 3, 4),
        &[(0, 2, "---"), (2, 3, "r--"), (3, 6, "rw-")],
    ); // 4
    expect(
        &change([rw, r, none], 2, 3),
        &[(0, 3, "rw-"), (3, 4, "r--"), (4, 6, "---")],
    ); // 5
    expect(&change([rw, r, rw], 2, 4), &[(0, 6, "rw-")]); // 6
    expect(
        &change([rw, r, none], 2, 4),
        &[(0, 4, "rw-"), (4, 6, "---")],
    ); // 7
    expect(
        &change([none, r, rw], 2, 4),
        &[(0, 2, "---"), (2, 6, "rw-")],
    ); // 8
}
