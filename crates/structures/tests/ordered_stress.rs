//! Real threads on one map. Each insertion and each removal is counted; values know whether they were dropped.

use fastrand::Rng;
use spanlock::range::list::{ListEx, ListRw};
use spanlock::range::skip::SkipEx;
use spanlock_structures::ordered::exclusion::Exclusion;
use spanlock_structures::ordered::{ByNode, ByRange, RangeSkipMap};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::setting;
use spanlock_testkit::watchdog::{self, HANG};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

/// A value that counts how many there are, and keeps a secret that is destroyed with it.
struct Value<'c> {
    alive: &'c AtomicI64,
    secret: u64,
    key: u64,
}

const SECRET: u64 = 0x5eed_cafe;

impl<'c> Value<'c> {
    fn new(alive: &'c AtomicI64, key: u64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self {
            alive,
            secret: SECRET ^ key,
            key,
        }
    }

    fn check(&self, key: u64) {
        assert_eq!(
            (self.key, self.secret),
            (key, SECRET ^ key),
            "read after it was dropped"
        );
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        self.check(self.key);
        self.secret = 0;
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One thread's work. Returns how often it has inserted each key, less how often it has removed the key.
fn work<'c, X: Exclusion>(
    map: &RangeSkipMap<u64, Value<'c>, X>,
    alive: &'c AtomicI64,
    done: &AtomicU64,
    keys: u64,
    ops: u64,
    mut rng: Rng,
) -> Vec<i64> {
    let mut balance = vec![0; usize::try_from(keys).expect("few keys")];
    for op in 1..=ops {
        // Seldom, so that threads meet in the map alone.
        if op.is_multiple_of(1 << 10) {
            done.fetch_add(1 << 10, Ordering::Relaxed);
        }
        let view = map.pin();
        let key = rng.u64(..keys);
        let at = usize::try_from(key).expect("few keys");
        match rng.u8(..20) {
            0..6 => {
                let before = view.insert(key, Value::new(alive, key));
                before.inspect(|value| value.check(key));
                balance[at] += i64::from(before.is_none());
            }
            6..11 => {
                if let Some((found, value)) = view.remove(&key) {
                    value.check(*found);
                    balance[at] -= 1;
                }
            }
            11 => {
                if let Some((found, value)) = view.pop_first() {
                    value.check(*found);
                    balance[usize::try_from(*found).expect("few keys")] -= 1;
                }
            }
            12 => {
                view.update(&key, |value| {
                    value.check(key);
                    Value::new(alive, key)
                });
            }
            13 => {
                let mut last = None;
                for (found, value) in view.range(key..).take(20) {
                    value.check(*found);
                    assert!(
                        *found >= key && last.is_none_or(|last| last < *found),
                        "out of order"
                    );
                    last = Some(*found);
                }
            }
            14 => {
                view.first().inspect(|(found, value)| value.check(**found));
                view.last().inspect(|(found, value)| value.check(**found));
            }
            _ => {
                view.get(&key).inspect(|value| value.check(key));
            }
        }
    }
    balance
}

fn stress<X: Exclusion + Default + Send + Sync>(keys: u64) {
    let ops = setting("SPANLOCK_STRESS_OPS", 400_000);
    let threads = setting("SPANLOCK_STRESS_THREADS", 4);
    let seed = setting("SPANLOCK_STRESS_SEED", 7);
    let (alive, done) = (&AtomicI64::new(0), &AtomicU64::new(0));
    let map = RangeSkipMap::<u64, Value<'_>, X>::new();
    let run = || -> Vec<_> {
        thread::scope(|scope| {
            let start = |thread| {
                let (map, rng) = (&map, Rng::with_seed(seed * threads + thread));
                scope.spawn(move || work(map, alive, done, keys, ops / threads, rng))
            };
            let crew: Vec<_> = (0..threads).map(start).collect();
            let joined = crew.into_iter().map(|thread| thread.join());
            joined
                .map(|balance| balance.expect("no violation"))
                .collect()
        })
    };
    let progress = || done.load(Ordering::Relaxed);
    let report = |done: &u64| format!("after {done} operations or a few more");
    let balances = watchdog::watched(HANG, progress, report, run);
    let view = map.pin();
    for key in 0..keys {
        let at = usize::try_from(key).expect("few keys");
        let balance: i64 = balances.iter().map(|balance| balance[at]).sum();
        assert_eq!(balance, i64::from(view.contains(&key)), "key {key}");
    }
    let total: i64 = balances.iter().flatten().sum();
    assert_eq!(i64::try_from(view.iter().count()), Ok(total));
    drop(view);
    assert!(alive.load(Ordering::Relaxed) >= total);
    drop(map);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "values are leaked");
}

/// A test for each exclusion and number of keys.
macro_rules! stress {
    ($($name:ident: $Exclusion:ty, $keys:literal;)+) => {$(
        #[test]
        fn $name() {
            stress::<$Exclusion>($keys);
        }
    )+};
}

stress! {
    few_keys_under_a_list_lock: ByRange<ListEx>, 8;
    many_keys_under_a_list_lock: ByRange<ListEx>, 4000;
    keys_under_a_skip_list_lock: ByRange<SkipEx>, 200;
    keys_under_a_lock_with_readers: ByRange<ListRw>, 200;
    few_keys_under_locks_in_nodes: ByNode, 8;
    many_keys_under_locks_in_nodes: ByNode, 4000;
}
