//! x
use prim::thread;
use spanlock_loom::range::{RangeLock, RangeMutex};
use std::sync::Arc;
#[test]
fn two() {
    prim::model(Some(2), || {
        let lock = Arc::new(RangeMutex::new());
        let l = lock.clone();
        let t = thread::spawn(move || {
            let _g = l.lock(0..10);
        });
        drop(lock.lock(5..15));
        t.join().unwrap();
    });
}
#[test]
fn two_rw() {
    prim::model(Some(2), || {
        let lock = Arc::new(RangeLock::new());
        let l = lock.clone();
        let t = thread::spawn(move || {
            let _g = l.read(0..10);
        });
        drop(lock.write(5..15));
        t.join().unwrap();
    });
}
