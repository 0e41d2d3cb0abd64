//! The pattern of the Metis programs for any number of threads.
//!
//! Metis' workers allocate and hardly ever free. glibc gives each an arena of its own: 128 MiB without access, trimmed
//! to the 64 MiB that are aligned, whose beginning becomes accessible as it is needed. So a worker's traffic is
//!
//! ```text
//!   stack   mmap, mprotect (by the first thread); a fault
//!   arena   mmap, munmap twice, mprotect 33 pages; a fault
//!   table   mmap 59 pages
//!   work    mprotect one page more, a fault in it       ─┐ again and again;
//!           now and then a fault in the table           ─┘ in between it computes
//!   end     munmap the table, madvise(DONTNEED) the stack
//! ```
//!
//! The numbers are from the recorded traces at four threads ([`samples`](super::samples)): what the start of a process
//! adds there is left out.

use crate::vm_trace::model::{Model, linux};
use crate::vm_trace::trace::{Backing, Call, Event, Map, READ, Trace, WRITE};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// A program of Metis that allocates much (P1 §7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Program {
    /// Counts the words of a file.
    Wc,
    /// Lists the places of each word of a file.
    Wr,
    /// The same of words in memory.
    Wrmem,
}

/// The most threads of a pattern: so many arenas fit into the addresses.
pub const MAX_THREADS: usize = 4096;

/// The most growths of one worker, and so of a run of one thread: so many fit into its arena.
pub const MAX_GROWTHS: usize = (ARENA - HEAD) as usize;

/// Pages of an arena, of which the first are accessible at once.
const ARENA: u64 = 0x4000;
const HEAD: u64 = 0x21;
/// Pages of a worker's table.
const TABLE: u64 = 0x3b;
/// Pages of a stack, with the one that guards it.
const STACK: u64 = 0x801;
/// Where arenas begin, and where stacks and tables do.
const ARENAS: u64 = 0x7_0000_0000;
const STACKS: u64 = 0x7_8000_0000;
const TABLES: u64 = 0x7_c000_0000;

impl Program {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Wc, Self::Wr, Self::Wrmem];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wc => "wc",
            Self::Wr => "wr",
            Self::Wrmem => "wrmem",
        }
    }

    /// Of so many growths, one comes with a fault in the table.
    const fn growths_per_table_fault(self) -> usize {
        match self {
            Self::Wc => 3,
            Self::Wr | Self::Wrmem => 4,
        }
    }

    /// Microseconds of computation for each growth: the user time of a run that is not recorded, by the growths of a
    /// recorded one.
    const fn think(self) -> u64 {
        match self {
            Self::Wc => 40,
            Self::Wr | Self::Wrmem => 37,
        }
    }

    /// The traffic of so many workers that together grow their arenas by so many pages. Each has its even share,
    /// rounded up.
    ///
    /// # Panics
    /// When there is no thread, or more than [`MAX_THREADS`], or a share is more than [`MAX_GROWTHS`].
    #[must_use]
    pub fn trace(self, threads: usize, growths: usize) -> Trace {
        assert!((1..=MAX_THREADS).contains(&threads), "{threads} threads");
        let share = growths.div_ceil(threads);
        assert!(share <= MAX_GROWTHS, "{share} growths of a thread");
        let mut workers: Vec<VecDeque<Event>> = (0..threads)
            .map(|thread| self.worker(thread, share))
            .collect();
        let about = format!("the pattern of {self}: {threads} threads, {share} growths each");
        let mut events: Vec<_> = (0..threads as u64).flat_map(stack).collect();
        // Threads take turns.
        while workers.iter().any(|worker| !worker.is_empty()) {
            events.extend(workers.iter_mut().filter_map(VecDeque::pop_front));
        }
        let mut trace = Trace {
            about,
            events,
            ..Trace::default()
        };
        let mut model = Model::new(&trace);
        for event in &trace.events {
            model.apply(&event.call).expect("the pattern is possible");
        }
        trace.after = model.areas();
        trace
    }

    fn worker(self, thread: usize, growths: usize) -> VecDeque<Event> {
        let number = thread as u64;
        let (stack, table) = (STACKS + number * STACK, TABLES + number * (TABLE + 1));
        // The kernel's place for 128 MiB begins before the 64 MiB that are wanted.
        let placed = ARENAS + number * 2 * ARENA;
        let arena = placed + ARENA / 4;
        let write = |page| Call::Fault {
            page,
            access: WRITE,
        };
        let unmap = |start, end| Call::Unmap {
            start,
            pages: end - start,
        };
        let mut calls = vec![
            write(stack + STACK - 1),
            map(placed, 2 * ARENA, 0, linux::MAP_NORESERVE),
            unmap(placed, arena),
            unmap(arena + ARENA, placed + 2 * ARENA),
            Call::Protect {
                start: arena,
                pages: HEAD,
                protection: READ | WRITE,
            },
            write(arena),
            map(table, TABLE, READ | WRITE, 0),
        ];
        let begun = calls.len();
        for growth in 0..growths {
            let start = arena + HEAD + growth as u64;
            calls.push(Call::Protect {
                start,
                pages: 1,
                protection: READ | WRITE,
            });
            calls.push(write(start));
            if growth % self.growths_per_table_fault() == 0 {
                let page = growth / self.growths_per_table_fault();
                calls.push(write(table + page as u64 % TABLE));
            }
        }
        let worked = calls.len();
        calls.push(unmap(table, table + TABLE));
        let advice = linux::MADV_DONTNEED;
        calls.push(Call::Advise {
            start: stack + 1,
            pages: STACK - 1,
            advice,
        });
        let events = calls.into_iter().enumerate().map(|(number, call)| {
            let computes =
                (begun..worked).contains(&number) && matches!(call, Call::Protect { .. });
            let think = if computes { self.think() } else { 0 };
            Event {
                thread,
                think,
                call,
            }
        });
        events.collect()
    }
}

/// The stack of a worker, which the first thread makes.
fn stack(number: u64) -> [Event; 2] {
    let start = STACKS + number * STACK;
    let protect = Call::Protect {
        start: start + 1,
        pages: STACK - 1,
        protection: READ | WRITE,
    };
    let calls = [map(start, STACK, 0, linux::MAP_STACK), protect];
    calls.map(|call| Event {
        thread: 0,
        think: 0,
        call,
    })
}

fn map(start: u64, pages: u64, protection: u32, flags: u32) -> Call {
    let flags = flags | linux::MAP_PRIVATE | linux::MAP_ANONYMOUS;
    Call::Map(Map {
        start,
        pages,
        protection,
        flags,
        backing: Backing::Anonymous,
    })
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|program| program.name() == name);
        found.ok_or_else(|| format!("there is no program `{name}`, but wc, wr and wrmem"))
    }
}
