//! Futexes on any platform: sleepers share a few condition variables, chosen by the word's address.

use super::Woken;
use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Instant;
use core::ptr;
use std::sync::{Condvar, Mutex, PoisonError};

struct Bucket {
    gate: Mutex<()>,
    changed: Condvar,
}

static BUCKETS: [Bucket; 64] = [const {
    Bucket {
        gate: Mutex::new(()),
        changed: Condvar::new(),
    }
}; 64];

fn bucket(word: &AtomicU32) -> &'static Bucket {
    &BUCKETS[(ptr::from_ref(word).addr() / align_of::<AtomicU32>()) % BUCKETS.len()]
}

pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    let bucket = bucket(word);
    let gate = bucket.gate.lock().unwrap_or_else(PoisonError::into_inner);
    if word.load(Ordering::Relaxed) != expected {
        return Woken::LookAgain;
    }
    let Some(deadline) = deadline else {
        drop(bucket.changed.wait(gate));
        return Woken::LookAgain;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Woken::TimedOut;
    }
    drop(bucket.changed.wait_timeout(gate, left));
    Woken::LookAgain
}

/// Its condition variable is shared with sleepers on other words, so one of them may be the wrong one: all wake.
pub(super) fn wake_one(word: &AtomicU32) {
    wake_all(word);
}

pub(super) fn wake_all(word: &AtomicU32) {
    let bucket = bucket(word);
    // A sleeper looks at the word with the gate held: having held it here, the change is before its look, or its
    // sleep before our wake-up.
    drop(bucket.gate.lock().unwrap_or_else(PoisonError::into_inner));
    bucket.changed.notify_all();
}
