//! Locks with a word for each segment.

use super::common;
use super::counting::LIVE_BYTES;
use super::{FLAT, growth};
use spanlock::range::RangeLock;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// Trees that grow, under threads that race for it, and are dropped with guards leaked.
pub fn trees_that_come_and_go_leave_nothing() {
    let grown = growth(1_000, || {
        let lock = RangeLock::from_raw(common::srl_tree());
        thread::scope(|scope| {
            let other = scope.spawn(|| drop(lock.write(0..100)));
            drop(lock.read(50..200));
            // To its very end, so that the next thread takes over what this one kept.
            other.join().expect("no panic elsewhere");
        });
        mem::forget((lock.write(0..10), lock.read(900..)));
    });
    assert!(grown < FLAT, "{grown} bytes are kept");
}

/// What a lock says that it uses is what it has allocated.
pub fn segment_locks_use_what_they_say() {
    let live = |f: &mut dyn FnMut()| {
        let before = LIVE_BYTES.load(Relaxed);
        f();
        LIVE_BYTES.load(Relaxed) - before
    };
    let (mut array, mut tree) = (None, None);
    let made = live(&mut || array = Some(common::srl_array()));
    assert_eq!(array.unwrap().bytes() as i64, made);
    let made = live(&mut || {
        let lock = RangeLock::from_raw(common::srl_tree());
        drop((lock.write(0..10), lock.write(100..200), lock.write(900..)));
        tree = Some(lock);
    });
    assert_eq!(tree.unwrap().raw().bytes() as i64, made);
}
