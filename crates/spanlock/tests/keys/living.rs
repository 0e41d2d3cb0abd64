//! Keys live as long as anybody may compare them, whatever becomes of the nodes that bear them.

use spanlock::range::Holding;
use spanlock::range::keys::{Compare, KeyRangeLock};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A key that is known after it was dropped.
#[derive(Debug)]
struct Living {
    key: u32,
    name: u64,
}

static NAMED: AtomicU64 = AtomicU64::new(0);
static DROPPED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn dropped() -> MutexGuard<'static, BTreeSet<u64>> {
    DROPPED.lock().expect("no panic under it")
}

impl Living {
    fn new(key: u32) -> Self {
        let name = NAMED.fetch_add(1, Relaxed);
        Self { key, name }
    }
}

impl Clone for Living {
    fn clone(&self) -> Self {
        Self::new(self.key)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        dropped().insert(self.name);
    }
}

type Held = Holding<Arc<KeyRangeLock<u32>>>;

/// Compares keys that live. Releases what it has been given when it first compares those of two requests: one begins
/// at 5.
struct Releasing(Mutex<Vec<Held>>);

impl Compare<Living> for Releasing {
    fn compare(&self, one: &Living, other: &Living) -> Ordering {
        for key in [one, other] {
            let is_dropped = dropped().contains(&key.name);
            assert!(!is_dropped, "a key is dropped already");
        }
        if one.key == 5 && other.key == 9 || one.key == 9 && other.key == 5 {
            let released = std::mem::take(&mut *self.0.lock().unwrap());
            drop(released);
        }
        one.key.cmp(&other.key)
    }
}

/// A thread has as many nodes as it keeps, and tries for a range in vain: the node of its first try is freed no earlier
/// than another one bears the keys.
#[test]
fn keys_of_a_try_in_vain_outlive_its_first_node() {
    let others: Vec<_> = (0..300).map(|_| Arc::new(KeyRangeLock::new())).collect();
    let held = others.iter().map(|other| other.write_owned(0..1));
    let lock = &KeyRangeLock::ordered_by(Releasing(Mutex::new(held.collect())));
    let guard = lock.write(Living::new(5)..Living::new(6));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                let tried = lock.try_write(Living::new(0)..Living::new(9));
                assert!(tried.is_none(), "it is held");
            }
        });
    });
    drop(guard);
}
