//! A schedule that is chosen, not searched for.
//!
//! ```text
//!   slow writer                                   busy writer
//!   reserves a slot of the first log page
//!        .                                        fills the log until its beginning is due to be rewritten
//!        .                                        rewrites it, unless that waits for the slow writer   [clean-waits]
//!   writes its entry, returns
//! ```
//!
//! Or the busy one fills the store with another file, until the log of the first is compacted, unless that waits for
//! the slow writer [compact-alone].

use crate::store::medium::Simulated;
use crate::store::{Durable, Error, File, Geometry, Medium, Options, PAGE, Store, make};
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::Duration;
use prim::thread;
use prim::workload::sleep;
use std::io;
use std::sync::Arc;

/// A medium on which one thread's next entry is slow.
struct Slow {
    medium: Simulated,
    state: AtomicU32,
}

/// Nothing is slow.
const OPEN: u32 = 0;
/// The next entry of a log will be.
const ARMED: u32 = 1;
/// It is under way.
const HELD: u32 = 2;

impl Slow {
    /// Waits until the state is another.
    fn wait_while(&self, state: u32) {
        while self.state.load(Ordering::Acquire) == state {
            sleep(Duration::from_micros(10));
        }
    }
}

impl Medium for Slow {
    fn size(&self) -> u64 {
        self.medium.size()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.medium.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        // Nothing else than an entry about one page has the size of a slot.
        if from.len() == 64 && self.state.load(Ordering::Acquire) == ARMED {
            self.state.store(HELD, Ordering::Release);
            self.wait_while(HELD);
        }
        self.medium.write(at, from)
    }

    fn flush(&self, at: u64, bytes: u64) {
        self.medium.flush(at, bytes);
    }

    fn fence(&self) {
        self.medium.fence();
    }

    fn sync(&self) -> io::Result<()> {
        self.medium.sync()
    }

    fn durable(&self) -> Durable {
        self.medium.durable()
    }
}

fn options() -> Options {
    Options {
        stocks: 1,
        now: || 1_000,
        ..Options::default()
    }
}

/// What is wrong after the process was killed when both writers had returned.
pub fn a_rewriting_meets_a_slow_writer() -> Result<(), String> {
    // So many that the log, which had one page, has more than three.
    let busy = |file: &Shared, _: &Shared| {
        (0..4 * PAGE / 64).try_for_each(|_| file.write_at(&[2; PAGE], PAGE as u64).map(drop))
    };
    found(schedule(1, busy), (1, 2))
}

/// The same, where the store is full.
pub fn a_compaction_meets_a_slow_writer() -> Result<(), String> {
    let busy = |_: &Shared, other: &Shared| {
        let mut pages = (0..).map(|page| other.write_at(&[3; PAGE], page * PAGE as u64));
        match pages.find_map(Result::err) {
            Some(Error::NoSpace) | None => Ok(()),
            Some(error) => Err(error),
        }
    };
    // The log has three pages, so it is not yet rewritten for its length.
    found(schedule(3 * PAGE / 64 - 10, busy), (1, 9))
}

/// A file of that store.
type Shared = File<Arc<Slow>>;

/// The first bytes of the pages after it. The slow writer writes the first; before, both were written so often.
fn schedule(
    writes_before: usize,
    busy: impl FnOnce(&Shared, &Shared) -> crate::store::Result<()> + Send + 'static,
) -> crate::store::Result<(u8, u8)> {
    let medium = Simulated::new(vec![0; 64 * PAGE], Durable::Never);
    let medium = Arc::new(Slow {
        medium,
        state: AtomicU32::new(OPEN),
    });
    make(
        &medium,
        &Geometry {
            inodes: Some(64),
            id: Some(7),
        },
    )?;
    let (store, _) = Store::open(Arc::clone(&medium), options())?;
    let file = Arc::new(store.create("/shared", 0o644)?);
    let other = store.create("/other", 0o644)?;
    (0..writes_before).try_for_each(|_| file.write_at(&[9; 2 * PAGE], 0).map(drop))?;
    medium.state.store(ARMED, Ordering::Release);
    let slow = Arc::clone(&file);
    let slow = thread::spawn(move || slow.write_at(&[1; PAGE], 0).map(drop));
    medium.wait_while(ARMED);
    let busy = thread::spawn(move || busy(&file, &other));
    // In simulated time: it does all that it can without the slow one.
    sleep(Duration::from_millis(100));
    medium.state.store(OPEN, Ordering::Release);
    slow.join().expect("it does not panic")?;
    busy.join().expect("it does not panic")?;
    let left = Arc::new(Simulated::new(medium.medium.content(), Durable::Never));
    let (store, _) = Store::open(left, options())?;
    let mut content = vec![0; 2 * PAGE];
    store.open_file("/shared")?.read_at(&mut content, 0)?;
    Ok((content[0], content[PAGE]))
}

/// Whether they are as they were written.
fn found(pages: crate::store::Result<(u8, u8)>, expected: (u8, u8)) -> Result<(), String> {
    match pages.map_err(|error| error.to_string())? {
        pages if pages == expected => Ok(()),
        pages => Err(format!("a write that had returned is lost: {pages:?}")),
    }
}
