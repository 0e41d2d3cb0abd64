//! A schedule that is chosen, not searched for.
//!
//! ```text
//!   slow writer                                   busy writer
//!   reserves a slot of the first log page
//!        .                                        fills the log until its beginning is due to be rewritten
//!        .                                        rewrites it, unless that waits for the slow writer   [clean-waits]
//!   writes its entry, returns
//! ```

use crate::store::medium::Simulated;
use crate::store::{Durable, Geometry, Medium, Options, PAGE, Store, make};
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
    schedule().unwrap_or_else(|error| Err(error.to_string()))
}

fn schedule() -> crate::store::Result<Result<(), String>> {
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
    file.write_at(&[9; 2 * PAGE], 0)?;
    medium.state.store(ARMED, Ordering::Release);
    let slow = Arc::clone(&file);
    let slow = thread::spawn(move || slow.write_at(&[1; PAGE], 0).map(drop));
    medium.wait_while(ARMED);
    // So many that the log, which had one page, has more than three.
    let busy = thread::spawn(move || {
        (0..4 * PAGE / 64).try_for_each(|_| file.write_at(&[2; PAGE], PAGE as u64).map(drop))
    });
    // In simulated time: it does all that it can without the slow one.
    sleep(Duration::from_millis(100));
    medium.state.store(OPEN, Ordering::Release);
    slow.join().expect("it does not panic")?;
    busy.join().expect("it does not panic")?;
    let left = Arc::new(Simulated::new(medium.medium.content(), Durable::Never));
    let (store, _) = Store::open(left, options())?;
    let mut content = vec![0; 2 * PAGE];
    store.open_file("/shared")?.read_at(&mut content, 0)?;
    Ok(match (content[0], content[PAGE]) {
        (1, 2) => Ok(()),
        found => Err(format!("a write that had returned is lost: {found:?}")),
    })
}
