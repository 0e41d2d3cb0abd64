//! A cache of blocks, whose tasks share one thread: who misses a block loads it, and who wants it meanwhile waits for
//! that.
//!
//! ```text
//!   get 7:  share 7 ----> it is there ------------------------------------------> use it
//!                   `---> it is not: have 7 alone ---> look again ---> load ----> share 7
//! ```
//!
//! The cache is an array, and a block number is a position of a lock. So a load keeps out only those who want that
//! block, and a task that holds a block keeps it from being replaced. The load is slow and awaits, and the thread runs
//! other tasks meanwhile.
//!
//! `cargo run --release --example block_cache`

use spanlock::range::RangeLock;
use spanlock::range::raw::Mode::{Exclusive, Shared};
use spanlock::range::{Holding, Owner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

const BLOCKS: u64 = 32;
const TASKS: u64 = 200;

struct Cache {
    blocks: Arc<RangeLock>,
    /// What is in each block: 0 if it is not there. Only the lock makes a load happen once.
    contents: Vec<AtomicU64>,
    loads: AtomicU64,
    hits: AtomicU64,
}

/// A block that stays as it is while it is shared.
type Pinned = Holding<Arc<RangeLock>>;

impl Cache {
    async fn load(&self, block: u64) -> u64 {
        sleep(Duration::from_millis(2)).await;
        self.loads.fetch_add(1, Relaxed);
        block + 1000
    }

    /// The block's content, and what keeps it there.
    async fn get(&self, block: u64) -> (u64, Pinned) {
        let cell = &self.contents[usize::try_from(block).expect("there are few")];
        let owner = Owner::new();
        let mut held = self
            .blocks
            .by_arc(&owner)
            .read_async(block..=block)
            .await
            .expect("nobody cancels it");
        if cell.load(Relaxed) == 0 {
            drop(held);
            let alone = self.blocks.by_arc(&owner).write_async(block..=block);
            held = alone.await.expect("nobody cancels it");
            // Another task may have been faster.
            if cell.load(Relaxed) == 0 {
                cell.store(self.load(block).await, Relaxed);
            }
            let shares = held.convert_async(block..=block, Shared).await;
            shares.expect("to share is never refused");
        } else {
            self.hits.fetch_add(1, Relaxed);
        }
        assert_ne!(held.mode(), Some(Exclusive));
        (cell.load(Relaxed), held)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cache = Arc::new(Cache {
        blocks: Arc::new(RangeLock::new()),
        contents: (0..BLOCKS).map(|_| AtomicU64::new(0)).collect(),
        loads: AtomicU64::new(0),
        hits: AtomicU64::new(0),
    });
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let cache = Arc::clone(&cache);
        tasks.spawn(async move {
            for turn in 0..10 {
                let block = (number * 31 + turn * 17) % BLOCKS;
                let (content, pinned) = cache.get(block).await;
                assert_eq!(content, block + 1000);
                drop(pinned);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no task panics");
    }
    let (loads, hits) = (cache.loads.load(Relaxed), cache.hits.load(Relaxed));
    assert_eq!(loads, BLOCKS, "each block is loaded once");
    assert!(cache.blocks.try_write(..).is_some());
    println!("{} gets: {hits} hits, {loads} loads", TASKS * 10);
}
