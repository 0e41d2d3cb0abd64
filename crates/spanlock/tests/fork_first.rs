//! A process forks while another of its threads acquires a range for the first time.
//!
//! One test in a process of its own, since a first acquisition happens once. The C library's registration of fork
//! handlers is held up here until the fork is over, so that the child is always forked in the midst of it.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod common;

use common::status_of_child;
use spanlock::range::RangeLock;
use spanlock_testkit::exact::Exact;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

/// Whether the first registration of fork handlers has begun.
static REGISTERING: AtomicBool = AtomicBool::new(false);

/// Whether it may go on.
static FORKED: AtomicBool = AtomicBool::new(false);

fn wait_for(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
}

type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// What `pthread_atfork` calls; found before the C library's, which does the work.
///
/// # Safety
/// As the C library's.
// SAFETY: it does what the C library's function of that name does, though later.
#[unsafe(no_mangle)]
unsafe extern "C" fn __register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    object: *mut c_void,
) -> c_int {
    if !REGISTERING.swap(true, SeqCst) {
        wait_for(&FORKED);
    }
    // SAFETY: a name that ends in a zero.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__register_atfork".as_ptr()) };
    assert!(!next.is_null(), "the C library registers fork handlers");
    // SAFETY: the C library's function of that name has that type.
    let next: Register = unsafe { std::mem::transmute(next) };
    // SAFETY: the caller's.
    unsafe { next(prepare, parent, child, object) }
}

#[test]
fn a_child_forked_during_the_first_acquisition_locks() {
    let lock = RangeLock::new();
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(0..10)));
        wait_for(&REGISTERING);
        // A child that hangs is killed, and its status says so.
        let status = status_of_child(|| {
            let other = RangeLock::new();
            let held = other.try_write(0..10);
            held.is_some() && other.try_read(5..15).is_none()
        });
        FORKED.store(true, SeqCst);
        assert_eq!(status, 0);
    });
    // The hook was registered all the same: a child of later is told apart from its parent.
    let held = lock.write(0..10);
    let ids = |lock: &RangeLock| lock.snapshot().holders[0].owner;
    let parents = ids(&lock);
    let status = status_of_child(|| {
        let own = RangeLock::new();
        let _held = (own.write(0..1), own.write(2..3));
        ids(&lock) == parents && ids(&own) != parents
    });
    assert_eq!(status, 0);
    drop(held);
}
