//! When may the memory of an area that was removed be freed?
//!
//! Threads search the index without a lock, so another thread may stand on a removed area. Each thread has an *epoch*,
//! a number that is odd while the thread searches. An area is freed when every thread that searched at the time of its
//! removal has stopped since. The library's locks do the same for their nodes (`spanlock`, `reclaim`); a search is so
//! frequent, and a removal so rare, that here the barrier between them is asymmetric.
//!
//! # Edges
//!
//! - **search-pin**, **search-seal** (store, fence, load on both sides): a search makes its epoch odd, has the light
//!   side of a barrier, and loads links. A collection, after the removals, has the heavy side and loads the epochs. If
//!   the search's side is first, the collection sees the odd epoch and waits for it to move. If the collection's is
//!   first, the search sees the links without the areas.
//! - **search-unpin**: Release by the search on making its epoch even, Acquire by the collection: the search's loads
//!   come before the memory is freed.
//! - **search-grace**: nothing is freed before all recorded epochs have moved.

use prim::atomic::{AtomicU64, Ordering};
use prim::barrier;
use prim::thread::{self, Table, Tenure};
use std::cell::Cell;
use std::ptr;

/// What is kept for one thread.
#[derive(Debug, Default)]
#[repr(align(128))] // Two cache lines, as processors fetch them: a search must not disturb another thread's.
struct Searcher {
    epoch: AtomicU64,
    /// The thread's number, for counters that are spread over threads. Only its thread uses it.
    number: Number,
}

#[derive(Debug, Default)]
struct Number(Cell<usize>);

// SAFETY: only the thread to which the entry belongs accesses the number; `prim::thread` orders one owner of an index
// before the next.
unsafe impl Sync for Number {}

prim::global! {
    static SEARCHERS: Table<Searcher> = Table::new();
}

prim::local! {
    static HERE: Cell<*const Searcher> = Cell::new(ptr::null());
}

#[inline]
fn with_searcher<R>(f: impl FnOnce(&Searcher) -> R) -> R {
    // SAFETY: null, or a pointer into the global table, whose entries never move and are never freed.
    match unsafe { HERE.with(Cell::get).as_ref() } {
        Some(searcher) => f(searcher),
        None => with_new(f),
    }
}

#[cold] // A thread's first search, and any in a destructor that runs after its last.
fn with_new<R>(f: impl FnOnce(&Searcher) -> R) -> R {
    barrier::prepare();
    thread::with_index(on_exit, |index, tenure| {
        let searcher = SEARCHERS.get(index);
        searcher.number.0.set(index);
        if tenure == Tenure::Thread {
            HERE.with(|here| here.set(searcher));
        }
        f(searcher)
    })
}

fn on_exit(_index: usize) {
    HERE.with(|here| here.set(ptr::null()));
}

/// A small number of the running thread, which no other thread has at the time.
pub(crate) fn thread_number() -> usize {
    with_searcher(|searcher| searcher.number.0.get())
}

/// Runs a search: areas that it meets are not freed before it ends. Searches nest.
#[inline]
pub(crate) fn searching<R>(search: impl FnOnce() -> R) -> R {
    /// Ends the search also if it panics.
    struct Ends<'a>(&'a AtomicU64, u64);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            // [search-unpin] Release: pairs with the Acquire in `now`.
            self.0
                .store(self.1, prim::order!("search-unpin", Ordering::Release));
        }
    }
    with_searcher(|searcher| {
        let epoch = &searcher.epoch;
        // Relaxed: only this thread changes it.
        let before = epoch.load(Ordering::Relaxed);
        if before % 2 == 1 {
            return search();
        }
        epoch.store(before + 1, Ordering::Relaxed);
        // [search-pin] pairs with [search-seal].
        if prim::intact!("search-pin") {
            barrier::light();
        }
        let _ends = Ends(epoch, before + 2);
        search()
    })
}

/// The searches that were under way at some moment.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    searches: Vec<(usize, u64)>,
}

impl Grace {
    /// Records the searches under way, which may have met what this thread has removed.
    pub(crate) fn begin(&mut self) {
        // [search-seal] pairs with [search-pin].
        if prim::intact!("search-seal") {
            barrier::heavy();
        }
        let epochs = SEARCHERS.iter().map(now).enumerate();
        self.searches.clear();
        self.searches
            .extend(epochs.filter(|(_, epoch)| epoch % 2 == 1));
    }

    /// Whether they all have ended.
    pub(crate) fn is_over(&mut self) -> bool {
        // [search-grace]
        if !prim::intact!("search-grace") {
            return true;
        }
        self.searches
            .retain(|&(index, then)| now(SEARCHERS.get(index)) == then);
        self.searches.is_empty()
    }
}

fn now(searcher: &Searcher) -> u64 {
    // [search-unpin] Acquire: pairs with the Release at the end of `searching`.
    searcher
        .epoch
        .load(prim::order!("search-unpin", Ordering::Acquire))
}
