//! Futexes for platforms without the system call: sleepers share a few condition variables, chosen by the word's
//! address.

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
        return Woken::Recheck;
    }
    let Some(deadline) = deadline else {
        drop(bucket.changed.wait(gate));
        return Woken::Recheck;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Woken::TimedOut;
    }
    drop(bucket.changed.wait_timeout(gate, left));
    Woken::Recheck
}

/// Wakes all: sleepers on other words share the condition variable, so a single wake-up might reach the wrong thread.
pub(super) fn wake_one(word: &AtomicU32) -> bool {
    wake_all(word);
    false
}

pub(super) fn wake_all(word: &AtomicU32) {
    let bucket = bucket(word);
    // A sleeper loads the word while it holds the gate. So either that load comes after this section and sees the
    // change, or the sleeper is asleep before this section and the notification reaches it.
    drop(bucket.gate.lock().unwrap_or_else(PoisonError::into_inner));
    bucket.changed.notify_all();
}
