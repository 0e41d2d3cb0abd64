//! Real mappings: the space has the areas that the kernel has, in `/proc/self/maps`, after each of many operations.
#![cfg(target_os = "linux")]

use fastrand::Rng;
use spanlock::range::list::ListRw;
use spanlock_structures::vm::{
    Access, AddressSpace, Flags, Mapping, PAGE, Placement, Protection, RealMappings, Relocation,
    Source,
};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::setting;
use std::fs;
use std::ops::Range;

#[global_allocator]
static HEAP: Exact = Exact;

const PAGES: u64 = 48;

/// A space over real memory, far below the addresses that the kernel gives out. Each test has a range of its own.
fn real(number: u64) -> AddressSpace<ListRw, RealMappings> {
    let start = 0x20_0000_0000 + number * 0x1_0000_0000;
    let backing = RealMappings::new(start..start + PAGES * PAGE).expect("nothing is mapped there");
    AddressSpace::builder()
        .layout(backing.layout())
        .build(ListRw::new(), backing)
}

/// The kernel's areas in a range: start, end, and the columns of permissions and offset.
fn kernels(range: &Range<u64>) -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let lines = maps.lines().filter(|line| {
        let (start, _) = line.split_once('-').expect("a range");
        range.contains(&u64::from_str_radix(start, 16).expect("an address"))
    });
    lines
        .map(|line| {
            line.split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

fn ours(space: &AddressSpace<ListRw, RealMappings>) -> Vec<String> {
    let columns = |area: String| {
        area.split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    };
    space
        .maps()
        .iter()
        .map(|area| columns(area.to_string()))
        .collect()
}

#[test]
fn pages_have_their_content_and_protection() {
    let space = real(0);
    let start = space
        .mmap(
            Placement::Anywhere,
            4 * PAGE,
            Mapping::anonymous(Protection::READ_WRITE),
        )
        .unwrap();
    space.fault(start, Access::Write).unwrap();
    let cell: *mut u64 = std::ptr::with_exposed_provenance_mut(start as usize);
    // SAFETY: the page is mapped to be read and written, and nobody else knows of it.
    unsafe { cell.write(7) };
    let moved = space
        .mremap(
            start,
            4 * PAGE,
            8 * PAGE,
            Relocation::To(space.layout().lowest),
        )
        .unwrap();
    let cell: *const u64 = std::ptr::with_exposed_provenance(moved as usize);
    // SAFETY: as above, at the new address.
    assert_eq!(unsafe { cell.read() }, 7);
    space.madvise_dontneed(moved, PAGE).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { cell.read() }, 0);
    assert_eq!(space.areas(), 1);
}

#[test]
fn the_kernel_refuses_a_range_that_is_taken() {
    let _space = real(1);
    let taken = std::ptr::from_ref(&PAGES).expose_provenance() as u64 / PAGE * PAGE;
    assert!(RealMappings::new(taken..taken + PAGE).is_err());
}

/// Whether the kernel joins a fresh area and the next one, of which a page was written. Linux 6.1 does not. The space
/// does, as later kernels do.
fn the_kernel_joins_fresh_areas() -> bool {
    let space = real(2);
    let (first, second) = (space.layout().lowest, space.layout().lowest + PAGE);
    let map = |page| {
        let fresh = Mapping::anonymous(Protection::READ_WRITE);
        let mapped = space.mmap(Placement::Fixed(page), PAGE, fresh);
        mapped.expect("there is room");
    };
    let protect = |page, protection| {
        let protected = space.mprotect(page, PAGE, protection);
        protected.expect("it is mapped");
    };
    map(second);
    space.fault(second, Access::Write).expect("it is writable");
    protect(second, Protection::NONE);
    map(first);
    protect(second, Protection::READ_WRITE);
    assert_eq!(space.areas(), 1);
    kernels(&(first..first + PAGES * PAGE)).len() == 1
}

/// Random operations, with the areas of the kernel after each.
#[test]
fn the_areas_are_those_of_the_kernel() {
    if !the_kernel_joins_fresh_areas() {
        println!(
            "skipped: this kernel does not join a fresh area and one that was written, as later ones do"
        );
        return;
    }
    for seed in 0..setting("SPANLOCK_VM_SEEDS", 20) {
        let mut rng = Rng::with_seed(seed);
        let space = real(2);
        let lowest = space.layout().lowest;
        let range = lowest..lowest + PAGES * PAGE;
        let file = tempfile();
        let file = space.backing().register(file);
        for step in 0..200 {
            let at = lowest + rng.u64(..PAGES) * PAGE;
            let length = rng.u64(1..10).min((range.end - at) / PAGE) * PAGE;
            let some = [
                Protection::READ_WRITE,
                Protection::READ_WRITE,
                Protection::NONE,
                Protection::READ,
            ];
            let protection = rng.choice(some).expect("some");
            let what = match rng.u32(..6) {
                0 => Mapping::file(protection, file, rng.u64(..8) * PAGE),
                1 => Mapping {
                    flags: Flags::SHARED,
                    ..Mapping::anonymous(protection)
                },
                _ => Mapping::anonymous(protection),
            };
            assert!(matches!(
                what.source,
                Source::Anonymous | Source::File { .. }
            ));
            let done = match rng.u32(..16) {
                0..3 => format!("map {:?}", space.mmap(Placement::Fixed(at), length, what)),
                3 => format!("map {:?}", space.mmap(Placement::Anywhere, length, what)),
                4 => format!("unmap {at:x} {length:x} {:?}", space.munmap(at, length)),
                5..10 => format!(
                    "protect {at:x} {length:x} {:?}",
                    space.mprotect(at, length, protection)
                ),
                10 => format!("drop {:?}", space.madvise_dontneed(at, length)),
                11 => {
                    let places = [
                        Relocation::Stay,
                        Relocation::May,
                        Relocation::To(lowest + rng.u64(..32) * PAGE),
                    ];
                    let to = rng.choice(places).expect("some");
                    let new = rng.u64(1..10) * PAGE;
                    format!(
                        "remap {at:x} {length:x} {new:x} {to:x?} {:x?}",
                        space.mremap(at, length, new, to)
                    )
                }
                _ => {
                    let access = rng
                        .choice([Access::Read, Access::Write, Access::Write])
                        .expect("some");
                    format!("fault {at:x} {access:?} {:?}", space.fault(at, access))
                }
            };
            assert_eq!(
                ours(&space),
                kernels(&range),
                "seed {seed}, step {step}: {done}"
            );
        }
    }
}

/// A file of some pages.
fn tempfile() -> std::os::fd::OwnedFd {
    let path = std::env::temp_dir().join(format!("spanlock-vm-{}", std::process::id()));
    let file = fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = file.expect("a temporary file");
    fs::remove_file(&path).expect("it is there");
    file.set_len(64 * PAGE).expect("a few pages");
    file.into()
}
