//! Calls at points in time: by a timer that the program has installed, or else on a thread of the library's timer.
//!
//! The thread starts with the first call that is asked for, and sleeps until the next one is due. A forked child has
//! a timer of its own, which knows no call of its parent, and none of the program's: whatever that depends on may be
//! gone with the parent's threads.

use crate::clock::Instant;
use crate::contain;
use crate::futex;
use crate::sync::{Arc, Mutex};
use crate::thread::{self, ForkHook};
use std::collections::BTreeMap;
use std::fmt;
use std::ptr;
use std::sync::Weak;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Something that is to happen at a point in time.
pub trait Due: Send + Sync {
    /// The time has come. `at` is the point in time that was asked for, or a later one. A panic ends this call alone.
    fn due(self: Arc<Self>, at: Instant);
}

/// Calls `whom` at `when`, or a little later, if it still lives then: once, however often that is asked for. `false`:
/// there is no timer here, and no call.
///
/// A timer of the program's may call as often as it was asked to.
pub fn at(when: Instant, whom: Weak<dyn Due>) -> bool {
    if let Some(theirs) = Installed::here() {
        return theirs.ask(when, whom);
    }
    !cfg!(target_family = "wasm") && Timer::here().call(when, whom)
}

/// A timer of the program: what an executor or an event loop has.
pub trait CallAt: Send + Sync {
    /// Has `call` [made](Call::make) at that time or a little later, by any thread.
    ///
    /// It must not block, use a range lock, nor make the call itself. A thread or a task may be in the middle of a
    /// request. So a panic does not come out of it either: it counts as if there were no timer.
    fn call_at(&self, when: Instant, call: Call);
}

/// A call that a [timer of the program](CallAt) has to make.
///
/// If it is dropped instead, whoever depends on it may wait for ever. If it is made early, as by a clock of whole
/// milliseconds, the timer is asked for it once more.
#[must_use = "who depends on the call waits until it is made"]
pub struct Call {
    when: Instant,
    whom: Weak<dyn Due>,
}

impl Call {
    /// Makes the call. It takes the mutex of a lock's queue for a moment, and wakes threads and tasks. A panic of a
    /// waker does not come out of it.
    pub fn make(self) {
        let Self { when, whom } = self;
        let is_early = Instant::now() < when;
        let again = Installed::here().filter(|_| is_early);
        if !again.is_some_and(|theirs| theirs.ask(when, whom.clone())) {
            call_out(when, &whom);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("when", &self.when)
            .finish_non_exhaustive()
    }
}

/// There is a timer of the program already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlreadyInstalled;

impl fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timer is installed already")
    }
}

impl std::error::Error for AlreadyInstalled {}

/// Has all calls from now on made by a timer of the program.
///
/// # Errors
/// When there is one already.
pub fn install(timer: Box<dyn CallAt>) -> Result<(), AlreadyInstalled> {
    FORK.register();
    let fresh = Box::into_raw(Box::new(Installed(timer)));
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    match INSTALLED.compare_exchange(ptr::null_mut(), fresh, success, failure) {
        Ok(_) => Ok(()),
        Err(_) => {
            // SAFETY: it comes from a box, and nobody else has come to know it.
            drop(unsafe { Box::from_raw(fresh) });
            Err(AlreadyInstalled)
        }
    }
}

struct Installed(Box<dyn CallAt>);

static INSTALLED: AtomicPtr<Installed> = AtomicPtr::new(ptr::null_mut());

impl Installed {
    fn here() -> Option<&'static Self> {
        let known = INSTALLED.load(Ordering::Acquire);
        // SAFETY: null, or a timer that lives as long as the process.
        unsafe { known.as_ref() }
    }

    /// Asks for a call. `false`: the timer has panicked, and there may be no call.
    fn ask(&self, when: Instant, whom: Weak<dyn Due>) -> bool {
        contain(|| self.0.call_at(when, Call { when, whom })).is_some()
    }
}

static FORK: ForkHook = ForkHook::new(after_fork);

#[derive(Default)]
struct Calls {
    /// By time and by the address of whom, which is no other's as long as there is a reference to it.
    by_time: BTreeMap<(Instant, usize), Weak<dyn Due>>,
    /// The system had no thread for the timer.
    is_lost: bool,
}

/// The stack of the timer's thread, on which functions of the program run: as much as Rust's threads have.
const STACK: usize = 2 << 20;

struct Timer {
    calls: Mutex<Calls>,
    /// Changes when there is an earlier call than before.
    earlier: AtomicU32,
}

static TIMER: AtomicPtr<Timer> = AtomicPtr::new(ptr::null_mut());

/// Runs in a forked child. The thread is gone, and the mutex may be held for ever: the child gets another timer.
extern "C" fn after_fork() {
    TIMER.store(ptr::null_mut(), Ordering::Release);
    INSTALLED.store(ptr::null_mut(), Ordering::Release);
}

impl Timer {
    /// The process's timer.
    fn here() -> &'static Self {
        let known = TIMER.load(Ordering::Acquire);
        // SAFETY: null, or a timer that lives as long as the process.
        unsafe { known.as_ref() }.unwrap_or_else(Self::new)
    }

    #[cold] // Once in a process.
    fn new() -> &'static Self {
        FORK.register();
        let fresh = Box::into_raw(Box::new(Self {
            calls: Mutex::new(Calls::default()),
            earlier: AtomicU32::new(0),
        }));
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match TIMER.compare_exchange(ptr::null_mut(), fresh, success, failure) {
            Ok(_) => {
                // SAFETY: it comes from a box, and lives as long as the process from now on.
                let timer: &'static Self = unsafe { &*fresh };
                if !thread::start_own(c"spanlock-timer", STACK, || timer.run()) {
                    timer.lose();
                }
                timer
            }
            Err(known) => {
                // SAFETY: it comes from a box, and nobody else has come to know it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: a timer that lives as long as the process.
                unsafe { &*known }
            }
        }
    }

    /// There is no thread: nothing is called later, and what was asked for meanwhile is called now.
    fn lose(&self) {
        let mut calls = self.calls.lock();
        calls.is_lost = true;
        let asked = std::mem::take(&mut calls.by_time);
        drop(calls);
        for ((when, _), whom) in asked {
            call_out(when, &whom);
        }
    }

    fn call(&self, when: Instant, whom: Weak<dyn Due>) -> bool {
        let mut calls = self.calls.lock();
        if calls.is_lost {
            return false;
        }
        let key = (when, whom.as_ptr().addr());
        if calls.by_time.insert(key, whom).is_some() {
            return true;
        }
        let first = calls.by_time.first_key_value();
        let is_first = first.is_some_and(|(&first, _)| first == key);
        if is_first {
            // Relaxed: the mutex orders the calls.
            self.earlier.fetch_add(1, Ordering::Relaxed);
        }
        drop(calls);
        if is_first {
            futex::wake_all(&self.earlier);
        }
        true
    }

    fn run(&self) {
        loop {
            let mut calls = self.calls.lock();
            // Relaxed: changed under the mutex.
            let seen = self.earlier.load(Ordering::Relaxed);
            let next = calls.by_time.first_entry();
            let first = next.as_ref().map(|call| call.key().0);
            match next {
                Some(call) if call.key().0 <= Instant::now() => {
                    let ((when, _), whom) = call.remove_entry();
                    drop(calls);
                    call_out(when, &whom);
                }
                _ => {
                    drop(calls);
                    futex::wait(&self.earlier, seen, first);
                }
            }
        }
    }
}

/// Calls one that still lives. The timer may be the last to know it, and drop it.
fn call_out(when: Instant, whom: &Weak<dyn Due>) {
    contain(|| {
        if let Some(whom) = whom.upgrade() {
            whom.due(when);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Arc, AtomicU32, Due, Instant, Mutex, Ordering, TIMER, Weak, at, futex};
    use crate::clock::Duration;

    struct Noting {
        calls: Mutex<Vec<Instant>>,
        count: AtomicU32,
    }

    impl Due for Noting {
        fn due(self: Arc<Self>, at: Instant) {
            assert!(Instant::now() >= at);
            self.calls.lock().push(at);
            self.count.fetch_add(1, Ordering::Release);
            futex::wake_all(&self.count);
        }
    }

    /// Who panics when it is called, and once more when it is dropped, and a third time when what it threw is.
    struct Panicking;

    impl Due for Panicking {
        fn due(self: Arc<Self>, _: Instant) {
            std::panic::panic_any(Self);
        }
    }

    impl Drop for Panicking {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::panic_any(Self);
            }
        }
    }

    /// The process has one timer, so one test at a time uses it.
    static ALONE: Mutex<()> = Mutex::new(());

    impl Noting {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                calls: Mutex::new(Vec::new()),
                count: AtomicU32::new(0),
            })
        }

        /// Returns when it was called so often.
        fn await_calls(&self, calls: u32) {
            loop {
                let count = self.count.load(Ordering::Acquire);
                if count >= calls {
                    return;
                }
                futex::wait(&self.count, count, None);
            }
        }
    }

    #[test]
    fn a_panic_ends_its_call_alone() {
        let _alone = ALONE.lock();
        let panicking = Arc::new(Panicking);
        let noting = Noting::new();
        let soon = Instant::now() + Duration::from_millis(1);
        assert!(at(soon, Arc::downgrade(&panicking) as Weak<dyn Due>));
        let later = soon + Duration::from_millis(1);
        assert!(at(later, Arc::downgrade(&noting) as Weak<dyn Due>));
        noting.await_calls(1);
        std::mem::forget(panicking);
    }

    /// Asks for calls, the last one twice. Returns who notes them, and their times; `None` if one was due before
    /// all were asked for.
    fn ask(part: Duration) -> Option<(Arc<Noting>, [Instant; 3])> {
        let [noting, gone] = [(); 2].map(|()| Noting::new());
        let now = Instant::now();
        let [soon, later, last] = [1, 20, 30].map(|parts| now + parts * part);
        let whom: Weak<dyn Due> = Arc::downgrade(&noting) as Weak<dyn Due>;
        assert!(at(last, whom.clone()));
        assert!(at(soon, Arc::downgrade(&gone) as Weak<dyn Due>));
        drop(gone);
        assert!(at(later, whom.clone()));
        assert!(at(last, whom.clone()), "it is asked for already");
        assert!(at(soon, whom));
        (Instant::now() < later).then_some((noting, [soon, later, last]))
    }

    #[test]
    fn calls_come_in_order_and_only_to_those_that_live() {
        let _alone = ALONE.lock();
        // On a machine that stalls, calls come before all are asked for. There they are asked for at later times.
        let (noting, times) = (1..)
            .find_map(|part| ask(Duration::from_millis(part)))
            .expect("a time is late enough");
        noting.await_calls(3);
        assert_eq!(*noting.calls.lock(), times);
        let asked = TIMER.load(Ordering::Acquire);
        // SAFETY: this test has asked for calls, and a timer lives as long as the process.
        let asked = unsafe { &*asked }.calls.lock();
        let whom = Arc::as_ptr(&noting).cast::<()>().addr();
        assert!(
            asked.by_time.keys().all(|&(_, of)| of != whom),
            "each of them once"
        );
    }
}
