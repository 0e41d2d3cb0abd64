//! What scenarios share: a watchdog, ways to see that others wait, and the leak probe.

use spanlock::range::Span;
use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{Ask, RawRangeLock, RawRangeMutex, Wait};
use spanlock_testkit::watchdog;
pub use spanlock_testkit::watchdog::HANG;
use std::cell::Cell;
use std::thread;
use std::time::Duration;

/// A lock that threads can share and pass on.
pub trait Exclusive: RawRangeMutex + Send + Sync + 'static {}
impl<L: RawRangeMutex + Send + Sync + 'static> Exclusive for L {}

/// A lock with readers that threads can share.
pub trait Shared: RawRangeLock + Exclusive {}
impl<L: RawRangeLock + Exclusive> Shared for L {}

/// Runs `scenario`. Should it hang, prints who holds and who waits, and aborts.
pub fn watched<R>(raw: &impl Exclusive, scenario: impl FnOnce() -> R) -> R {
    let report = |(): &()| snapshot(raw).to_string();
    watchdog::watched(HANG, || (), report, scenario)
}

/// Runs a scenario of a lock that cannot list its holders. Should it hang, aborts.
pub fn watched_silently<R>(scenario: impl FnOnce() -> R) -> R {
    let report = |(): &()| "a lock that cannot list its holders".to_owned();
    watchdog::watched(HANG, || (), report, scenario)
}

/// The leak probe: everything is lockable at once, and the listing agrees.
pub fn assert_nothing_held(raw: &impl RawRangeMutex) {
    let probe = raw.lock_exclusive(Ask::new(Span::ALL, Wait::Never));
    let token = probe.unwrap_or_else(|| panic!("something is held:\n{}", snapshot(raw)));
    // SAFETY: the lock's own token.
    unsafe { raw.unlock(token) };
    assert_eq!(snapshot(raw), Snapshot::default());
}

/// The holders and the waiting requests; empty if the lock cannot list them.
pub fn snapshot(raw: &impl RawRangeMutex) -> Snapshot {
    raw.snapshot().unwrap_or_default()
}

/// Returns when so many requests sleep in the lock. Of a lock that cannot tell, it returns when they had time to begin:
/// so nothing that a test asserts afterwards may depend on it, unless the test needs a listing.
pub fn await_sleepers(raw: &impl RawRangeMutex, count: usize) {
    match raw.snapshot() {
        Some(_) => until(|| snapshot(raw).waiters.len() == count),
        None => thread::sleep(Duration::from_millis(5)),
    }
}

/// Returns when the condition holds; a watchdog sees to it that it does.
pub fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_micros(100));
    }
}

/// What `f` says on another thread, one that holds nothing.
pub fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let mut f = Some(f);
    let mut said = None;
    in_another_thread(&mut || said = f.take().map(|f| f()));
    said.expect("the thread has ended")
}

/// Compiled once, where [`elsewhere`] is compiled for each closure.
fn in_another_thread(f: &mut (dyn FnMut() + Send)) {
    thread::scope(|scope| scope.spawn(f).join().expect("no panic elsewhere"));
}

thread_local! {
    static EXPECTS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in [`panic_message`].
pub fn expects_panic() -> bool {
    EXPECTS_PANIC.get()
}

/// The message of the panic that `f` ends with.
pub fn panic_message(f: impl FnOnce()) -> String {
    EXPECTS_PANIC.set(true);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    EXPECTS_PANIC.set(false);
    let payload = unwound.expect_err("a panic was expected");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other
            .downcast_ref::<&str>()
            .map_or_else(String::new, |text| (*text).to_owned()),
    }
}
