//! `spanlock store cost`: what a store takes of memory, and how long it takes to open one after a crash.

use crate::allocator;
use crate::failure::{At, Result};
use spanlock_structures::store::{Geometry, Mapped, Options, Store, make};
use std::fmt;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Files that are made and opened, to count the bytes of one.
const FILES: u32 = 1000;

/// Threads that write, to count the bytes of one.
const THREADS: u32 = 4;

/// Bytes that are written at a time.
const CHUNK: usize = 1 << 20;

/// What was found.
pub(super) struct Cost {
    /// Bytes of data in one file.
    data: u64,
    /// Bytes of memory for them, once the store is open.
    for_data: i64,
    /// How long the opening took.
    opening: Duration,
    /// Bytes of memory for all files, for each of them once more open, and for all threads.
    files: i64,
    open_files: i64,
    threads: i64,
}

/// Measures a store with so many bytes of data in a new file, which is removed in the end.
///
/// Only this process's allocations count; nothing else has been running in it.
pub(super) fn measure(path: &Path, data: u64) -> Result<Cost> {
    // Room for logs and for the inode table.
    let room = data + data / 8 + (16 << 20);
    let measured = Mapped::create(path, room).and_then(|medium| {
        let cost = measure_in(medium, path, data);
        // If it cannot be removed, what was measured says more.
        let _ = std::fs::remove_file(path);
        cost
    });
    measured.at(path)
}

fn measure_in(medium: Mapped, path: &Path, data: u64) -> spanlock_structures::store::Result<Cost> {
    let geometry = Geometry {
        inodes: Some(u64::from(FILES) + 64),
        id: None,
    };
    make(&medium, &geometry)?;
    let (store, _) = Store::open(medium, Options::default())?;
    let file = store.create("/data", 0o600)?;
    let chunk = vec![1; CHUNK];
    for begin in (0..data).step_by(CHUNK) {
        let rest = usize::try_from(data - begin).unwrap_or(CHUNK);
        file.write_at(&chunk[..rest.min(CHUNK)], begin)?;
    }
    // It is not closed: to the next opening, the process has ended here.
    drop((file, store));
    allocator::begin();
    let medium = Mapped::open(path)?;
    let begun = Instant::now();
    let (store, _) = Store::open(medium, Options::default())?;
    let opening = begun.elapsed();
    let for_data = allocator::allocated();
    let name = |number| format!("/{number}");
    for number in 0..FILES {
        store.create(name(number), 0o600)?;
    }
    let with_files = allocator::allocated();
    let open = (0..FILES).map(|number| store.open_file(name(number)));
    let open = open.collect::<spanlock_structures::store::Result<Vec<_>>>()?;
    let with_open = allocator::allocated();
    drop(open);
    let before = allocator::allocated();
    let threads = threads(&store)? - before;
    Ok(Cost {
        data,
        for_data,
        opening,
        files: with_files - for_data,
        open_files: with_open - with_files,
        threads,
    })
}

/// Bytes allocated while so many threads live that have written.
fn threads(store: &Store) -> spanlock_structures::store::Result<i64> {
    let file = store.open_file("/data")?;
    let [written, over] = [(); 2].map(|()| Barrier::new(THREADS as usize + 1));
    let work = |number: u32| {
        let result = file.write_at(&[2; 4096], u64::from(number) * 4096);
        written.wait();
        over.wait();
        result.map(drop)
    };
    let work = &work;
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|number| scope.spawn(move || work(number)));
        let threads: Vec<_> = threads.collect();
        written.wait();
        let bytes = allocator::allocated();
        over.wait();
        let all = threads
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"));
        all.collect::<spanlock_structures::store::Result<()>>()
            .map(|()| bytes)
    })
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabytes = self.data as f64 / f64::from(1 << 30);
        let share = self.data as f64 / self.for_data as f64;
        let each = |bytes: i64, of: u32| bytes as f64 / f64::from(of);
        let of_data = format!("a gigabyte of data in an open store: 1/{share:.0} of it");
        writeln!(f, "bytes of memory, as asked of the allocator")?;
        for (bytes, what) in [
            (self.for_data as f64 / gigabytes, &*of_data),
            (
                each(self.files, FILES),
                "an empty file, whether it is open or not",
            ),
            (
                each(self.open_files, FILES),
                "each time that a file is open",
            ),
            (each(self.threads, THREADS), "a thread that writes"),
        ] {
            writeln!(f, "  {bytes:>12.0}  for {what}")?;
        }
        writeln!(
            f,
            "seconds to open the store after the process had ended without closing it\n  {:>12.3}  for a gigabyte of data",
            self.opening.as_secs_f64() / gigabytes
        )
    }
}
