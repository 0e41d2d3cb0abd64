//! Bad input gives the errno that Linux gives, and leaves the areas that Linux leaves.
//!
//! [`table`] has the calls, each with its errno. The address space makes them all. On Linux on x86-64 the kernel makes
//! them as well, each in a process of its own, and has to agree with the table: so the table says what Linux does.

mod table;

use spanlock_structures::vm::{
    Access, AddressSpace, Flags, Layout, Limits, Mapping, PAGE, Placement, Protection, Relocation,
    Source,
};
use spanlock_testkit::exact::Exact;
use table::{CASES, Call, Case, LIMITED, Limit, Place, To, What, at};

#[global_allocator]
static HEAP: Exact = Exact;

/// The number of an error, or 0.
type Errno = i32;

/// An area as both describe it: first and last page from [`table::BASE`] on, protection, and page of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Area {
    pages: (u64, u64),
    protection: String,
    offset: u64,
}

/// What a call leads to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    errno: Errno,
    areas: Vec<Area>,
}

/// The pages that are compared.
const WINDOW: std::ops::Range<u64> = at(0)..at(table::WINDOW);

/// Reads the lines of `/proc/PID/maps`, of which [`Area`](spanlock_structures::vm::Area) has the first columns.
fn areas<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Area> {
    let hex = |digits: &str| u64::from_str_radix(digits, 16).expect("a hexadecimal number");
    let area = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (start, end) = (hex(start), hex(end));
        let protection = fields.next()?.to_owned();
        let offset = hex(fields.next()?) / PAGE;
        let page = |address| (address - WINDOW.start) / PAGE;
        let within = WINDOW.contains(&start) && end <= WINDOW.end;
        within.then(|| Area {
            pages: (page(start), page(end)),
            protection,
            offset,
        })
    };
    lines.filter_map(area).collect()
}

/// The addresses that this machine has.
fn layout() -> Layout {
    let five_levels =
        std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" la57"));
    if five_levels {
        Layout::BITS_57
    } else {
        Layout::BITS_47
    }
}

fn mapping(bits: u8, what: What) -> Mapping {
    let protection = Protection::from_bits(bits).expect("three bits");
    match what {
        What::Anonymous => Mapping::anonymous(protection),
        What::Private(offset) => Mapping::file(protection, 1, offset),
        What::SharedToRead(offset) => Mapping {
            most: Protection::READ | Protection::EXECUTE,
            flags: Flags::SHARED,
            source: Source::File { file: 1, offset },
            ..Mapping::anonymous(protection)
        },
    }
}

fn made_here(limits: Limits, call: &Call) -> Outcome {
    let space = AddressSpace::builder().layout(layout()).limits(limits);
    let space = space.build(
        spanlock::range::list::ListRw::new(),
        spanlock_structures::vm::PageTable::new(),
    );
    let make = |call: &Call| match *call {
        Call::Mmap(place, length, bits, what) => {
            let place = match place {
                Place::Anywhere => Placement::Anywhere,
                Place::Hint(start) => Placement::Hint(start.get()),
                Place::Fixed(start) => Placement::Fixed(start.get()),
                Place::NoReplace(start) => Placement::FixedNoReplace(start.get()),
            };
            space.mmap(place, length, mapping(bits, what)).map(drop)
        }
        Call::Munmap(start, length) => space.munmap(start.get(), length),
        Call::Mprotect(start, length, bits) => space.mprotect(
            start.get(),
            length,
            Protection::from_bits(bits).expect("three bits"),
        ),
        Call::Dontneed(start, length) => space.madvise_dontneed(start.get(), length),
        Call::Mremap(start, old, new, to) => {
            let to = match to {
                To::Here => Relocation::Stay,
                To::Anywhere => Relocation::May,
                To::Fixed(target) => Relocation::To(target.get()),
            };
            space.mremap(start.get(), old, new, to).map(drop)
        }
        Call::Load(address) => space.fault(address.get(), Access::Read),
        Call::Store(address) => space.fault(address.get(), Access::Write),
    };
    for call in table::SETUP {
        make(call).expect("the setup is possible");
    }
    let errno = make(call).err().map_or(0, |error| error.errno());
    let lines: Vec<_> = space.maps().iter().map(ToString::to_string).collect();
    Outcome {
        errno,
        areas: areas(lines.iter().map(String::as_str)),
    }
}

#[test]
fn the_space_refuses_as_the_table_says() {
    for Case { name, call, errno } in CASES {
        assert_eq!(
            made_here(Limits::default(), call).errno,
            *errno,
            "{name}: {call:x?}"
        );
    }
    for (Case { name, call, errno }, limit) in LIMITED {
        assert_eq!(
            made_here(limits(*limit), call).errno,
            *errno,
            "{name}: {call:x?}"
        );
    }
}

/// Limits that leave room for the setup and a page of 16 more.
fn limits(limit: Limit) -> Limits {
    let none = Limits::default();
    match limit {
        Limit::Pages => Limits {
            pages: table::MAPPED + 16,
            ..none
        },
        Limit::Data => Limits {
            data: table::DATA + 16,
            ..none
        },
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kernel;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_kernel_refuses_as_the_table_says_and_leaves_the_same_areas() {
    // Kernels before that look at what is wrong in another order, and join fewer areas.
    if kernel::version() < table::KERNEL {
        let (is, of) = (kernel::version(), table::KERNEL);
        println!("skipped: the table is of Linux {of:?}, and this is {is:?}");
        return;
    }
    // Where the machine's administrator lets programs map any address, the kernel refuses none as too low.
    let lowest = std::fs::read_to_string("/proc/sys/vm/mmap_min_addr").unwrap_or_default();
    let cases = CASES
        .iter()
        .filter(|case| lowest.trim() != "0" || case.errno != table::EPERM);
    for Case { name, call, errno } in cases {
        let kernel = kernel::made(None, call);
        assert_eq!(kernel.errno, *errno, "{name}: {call:x?} in the kernel");
        assert_eq!(
            made_here(Limits::default(), call),
            kernel,
            "{name}: {call:x?}"
        );
    }
    for (Case { name, call, errno }, limit) in LIMITED {
        let kernel = kernel::made(Some(*limit), call);
        assert_eq!(kernel.errno, *errno, "{name}: {call:x?} in the kernel");
        assert_eq!(made_here(limits(*limit), call), kernel, "{name}: {call:x?}");
    }
}
