//! A range lock that is as simple as its specification: a list of spans under a mutex.

use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::sync::Mutex;
use spanlock::range::Span;
use spanlock::range::list::ListEx;
use spanlock::range::raw::{Ask, RawRangeMutex, Wait};
use spanlock_structures_loom::ordered::{ByNode, ByRange};

#[derive(Debug)]
pub struct Specified {
    held: Mutex<Vec<Span>>,
    releases: AtomicU32,
}

// SAFETY: a span is granted only when no other that overlaps it is held, and the mutex orders holders.
unsafe impl RawRangeMutex for Specified {
    type Token = Span;

    fn lock_exclusive(&self, ask: Ask<'_, Span>) -> Option<Span> {
        let span = ask.span;
        loop {
            let mut held = self.held.lock();
            if !held.iter().any(|other| other.overlaps(span)) {
                held.push(span);
                return Some(span);
            }
            match ask.wait {
                Wait::Never => return None,
                Wait::Forever => {}
                Wait::Until(_) => unreachable!("maps wait, or try"),
            }
            let seen = self.releases.load(Ordering::Relaxed);
            drop(held);
            futex::wait(&self.releases, seen, None);
        }
    }

    unsafe fn unlock(&self, token: Span) {
        let mut held = self.held.lock();
        held.retain(|span| *span != token);
        self.releases.fetch_add(1, Ordering::Relaxed);
        drop(held);
        futex::wake_all(&self.releases);
    }
}

pub fn specified() -> ByRange<Specified> {
    let held = Mutex::new(Vec::new());
    let releases = AtomicU32::new(0);
    ByRange::new(Specified { held, releases })
}

pub fn list() -> ByRange<ListEx> {
    ByRange::new(ListEx::builder().build())
}

pub fn by_node() -> ByNode {
    ByNode::new()
}
