//! Threads that make, keep and drop aliases of BLOBs that others write anew all the time.
#![cfg(target_os = "linux")]

use fastrand::Rng;
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_structures::blob::raw::Ranges;
use spanlock_structures::blob::{AliasArea, AliasCache, Error, Extent, Pool};
use spanlock_testkit::exact::Exact;
use spanlock_workbench::baseline::{Bitmap, Song};
use std::sync::RwLock;

#[global_allocator]
static HEAP: Exact = Exact;

const THREADS: usize = 4;
const BLOBS: usize = 6;
const AREA: usize = 64;

/// A BLOB of some extents of one or two pages, each page of which begins and ends with the same number and its own.
fn written(pool: &Pool, number: u64, rng: &mut Rng) -> Vec<Extent> {
    let page = Pool::page();
    let mut pages = 0;
    let extent = |_| {
        let mut draft = pool.allocate(rng.usize(1..=2) * page).unwrap();
        for bytes in draft.chunks_exact_mut(page) {
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            bytes[page - 8..].copy_from_slice(&(number + pages).to_le_bytes());
            pages += 1;
        }
        draft.seal()
    };
    (0..3).map(extent).collect()
}

fn check(alias: &[u8]) {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let number = word(&alias[..8]);
    for (page, bytes) in (0..).zip(alias.chunks_exact(Pool::page())) {
        assert_eq!(word(&bytes[..8]), number);
        assert_eq!(word(&bytes[Pool::page() - 8..]), number + page);
    }
}

fn stress<R: Ranges + Sync>(lock: R) {
    let steps = spanlock_testkit::setting("SPANLOCK_STRESS_OPS", 3000);
    let pool = Pool::new(BLOBS * 8 * Pool::page()).unwrap();
    let area = AliasArea::with_lock(&pool, AREA * Pool::page(), lock).unwrap();
    let mut rng = Rng::with_seed(1);
    let blobs: Vec<_> = (0..BLOBS)
        .map(|_| RwLock::new(written(&pool, rng.u64(..1 << 60), &mut rng)))
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, area, blobs) = (&pool, &area, &blobs);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(thread as u64);
                let cache = AliasCache::new(area, thread % 3);
                let mut refused = 0;
                for _ in 0..steps {
                    let blob = &blobs[rng.usize(..BLOBS)];
                    if rng.u8(..) < 16 {
                        let mut blob = blob.write().unwrap();
                        blob.clear();
                        *blob = written(pool, rng.u64(..1 << 60), &mut rng);
                        continue;
                    }
                    let blob = blob.read().unwrap();
                    let alias = if rng.bool() {
                        cache.map(&blob)
                    } else {
                        area.map(&blob)
                    };
                    match alias {
                        Ok(alias) => check(&alias),
                        Err(Error::AreaFull) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(refused < steps, "there is room for most");
            });
        }
    });
    for blob in &blobs {
        check(&area.map(&blob.read().unwrap()).unwrap());
    }
}

#[test]
fn ours() {
    stress(RangeLock::new());
}

#[test]
fn bitmap() {
    stress(RangeMutex::from_raw(Bitmap::new(
        (AREA * Pool::page()) as u64,
        Pool::page() as u64,
    )));
}

#[test]
fn song() {
    stress(RangeMutex::from_raw(Song::new(4)));
}
