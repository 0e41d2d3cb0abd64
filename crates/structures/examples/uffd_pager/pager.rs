//! The pager: handlers, an evictor, and programs that read.

#[path = "uffd.rs"]
mod uffd;

use spanlock::range::RangeMutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use uffd::{Memory, PAGE, Page};

const PAGES: usize = 1024;
/// Pages that are loaded together.
const CLUSTER: usize = 8;
/// Pages that are dropped together: not a multiple of a cluster, so that the two overlap in part.
const EVICTED: usize = 20;
/// Reads of each program.
const READS: usize = 2000;

struct Pager {
    memory: Memory,
    /// Whoever loads or drops pages holds their range.
    in_flight: RangeMutex,
    /// Whether each page is there. Only the holder of a page changes this.
    present: Vec<AtomicBool>,
    loaded: AtomicU64,
    evicted: AtomicU64,
    is_over: AtomicBool,
}

/// What a page has: it is computed here, and would come from a disk or a network.
fn load(page: usize, content: &mut Page) {
    content.0.fill(expected(page));
}

const fn expected(page: usize) -> u8 {
    (page * 31 % 251) as u8 + 1
}

impl Pager {
    /// Serves reports until the end.
    fn serve(&self) -> io::Result<()> {
        let mut content = Page([0; PAGE]);
        while !self.is_over.load(Ordering::Acquire) {
            match self.memory.report()? {
                Some(page) => self.bring(page / CLUSTER * CLUSTER, &mut content)?,
                None => wait_for_input(self.memory.reports()),
            }
        }
        Ok(())
    }

    /// Loads what is missing of a cluster, and wakes those who wait for its pages.
    fn bring(&self, first: usize, content: &mut Page) -> io::Result<()> {
        let _held = self.in_flight.lock(first as u64..(first + CLUSTER) as u64);
        for page in first..first + CLUSTER {
            // Relaxed: the lock orders it.
            if !self.present[page].load(Ordering::Relaxed) {
                load(page, content);
                // The kernel refuses to install a page that is there already.
                self.memory.install(page, content)?;
                self.present[page].store(true, Ordering::Relaxed);
                self.loaded.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.memory.wake(first, CLUSTER)
    }

    /// Drops pages.
    fn evict(&self, first: usize) -> io::Result<()> {
        let range = first..(first + EVICTED).min(PAGES);
        let _held = self.in_flight.lock(range.start as u64..range.end as u64);
        self.memory.evict(range.start, range.len())?;
        for page in range {
            let was_present = self.present[page].swap(false, Ordering::Relaxed);
            self.evicted
                .fetch_add(u64::from(was_present), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads random pages, and checks them.
    fn read(&self, seed: u64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..READS {
            let (page, at) = (rng.usize(..PAGES), rng.usize(..PAGE));
            assert_eq!(self.memory.byte(page, at), expected(page), "page {page}");
            thread::yield_now();
        }
    }
}

/// Waits until there may be a report, or for a moment, to see the end.
fn wait_for_input(descriptor: i32) {
    const MOMENT_MS: i32 = 10;
    let mut wanted = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor is passed, and it lives until the call is over.
    unsafe { libc::poll(&raw mut wanted, 1, MOMENT_MS) };
}

/// Runs programs on memory that handlers serve and an evictor empties.
pub fn run() -> io::Result<String> {
    const HANDLERS: usize = 3;
    const PROGRAMS: usize = 4;
    let pager = Pager {
        memory: Memory::new(PAGES)?,
        in_flight: RangeMutex::new(),
        present: (0..PAGES).map(|_| AtomicBool::new(false)).collect(),
        loaded: AtomicU64::new(0),
        evicted: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let pager = &pager;
    thread::scope(|scope| {
        for _ in 0..HANDLERS {
            scope.spawn(|| {
                pager
                    .serve()
                    .expect("each page is loaded while it is missing")
            });
        }
        scope.spawn(|| {
            let mut rng = fastrand::Rng::with_seed(0);
            while !pager.is_over.load(Ordering::Acquire) {
                pager
                    .evict(rng.usize(..PAGES))
                    .expect("pages can be dropped");
                thread::yield_now();
            }
        });
        let programs: Vec<_> = (1..=PROGRAMS as u64)
            .map(|seed| scope.spawn(move || pager.read(seed)))
            .collect();
        let read: Vec<_> = programs
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        pager.is_over.store(true, Ordering::Release);
        assert!(
            read.iter().all(Result::is_ok),
            "a program has read what was not loaded"
        );
    });
    let here = pager
        .present
        .iter()
        .filter(|page| page.load(Ordering::Relaxed))
        .count() as u64;
    let (loaded, evicted) = (
        pager.loaded.load(Ordering::Relaxed),
        pager.evicted.load(Ordering::Relaxed),
    );
    assert_eq!(
        loaded,
        evicted + here,
        "each page is loaded once until it is dropped"
    );
    Ok(format!(
        "{} reads: {loaded} pages loaded, {evicted} dropped",
        PROGRAMS * READS
    ))
}
