//! Upgradable readers: one at a time beside plain readers, and it may become the writer.
//!
//! The bit `UPGRADABLE` of the word is its hold. An upgrade is one step, from that bit alone to the bit `WRITER`. While
//! plain readers are inside, the upgradable reader waits as a writer does.

use super::{FutexRwLock, GiveWay, Preference, Reader, Slept, State};
use crate::rw::raw::{ThreadBound, granted};
use crate::rw::watch::{self, Mode};
use crate::wait::Wait;
use lock_api::{RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed};
use prim::atomic::Ordering;
use prim::clock::{Duration, Instant};

impl<P: Preference> FutexRwLock<P> {
    fn read_upgradably(&self, wait: Wait) -> Option<ThreadBound> {
        self.read_by(wait, |seen| self.enter_upgradable(seen))
    }

    #[track_caller]
    fn try_read_upgradably(&self, wait: Wait) -> Option<ThreadBound> {
        watch::attempt(self, Mode::Upgradable, || self.read_upgradably(wait))
    }

    /// Enters as an upgradable reader, or returns the state that does not admit one.
    fn enter_upgradable(&self, seen: State) -> Result<(), State> {
        // [futex-enter-upgradable] Acquire: pairs with [futex-leave-exclusive].
        let acquire = prim::order!("futex-enter-upgradable", Ordering::Acquire);
        self.change(seen, acquire, |seen| {
            let admitted = seen.admits(Reader::Upgradable, P::GIVE_WAY);
            admitted.then_some(State(seen.0 + Reader::Upgradable.held()))
        })
    }

    /// Turns the upgradable reader into the writer, in one step.
    fn upgrade_within(&self, wait: Wait) -> Option<ThreadBound> {
        let held = State::UPGRADABLE;
        match self.enter_exclusive(held, self.state(), Slept::No) {
            Ok(()) => Some(ThreadBound::new()),
            Err(_) if wait == Wait::Never => None,
            Err(seen) => self.write_contended(held, seen, wait),
        }
    }

    fn try_upgrade_within(
        &self,
        guard: ThreadBound,
        wait: Wait,
    ) -> Result<ThreadBound, ThreadBound> {
        watch::try_upgrade(self, || self.upgrade_within(wait).ok_or(guard))
    }

    /// The upgradable reader leaves, or stays as `rest` plain readers.
    fn leave_upgradable(&self, rest: u32) {
        // [futex-leave-upgradable] Release: pairs with [futex-enter-exclusive].
        let leave = prim::order!("futex-leave-upgradable", Ordering::Release);
        let held = Reader::Upgradable.held();
        let before = State(self.state.fetch_sub(held - rest, leave));
        debug_assert!(before.is_upgradable(), "a read lock was released twice");
        if P::GIVE_WAY == GiveWay::ToWaitingWriters && before.has_waiting_writer() {
            // [futex-writer-next]
            if before.readers() + rest == 0 && prim::intact!("futex-writer-next") {
                self.wake_writer(State(before.0 - held));
            }
        } else if before.has_waiters() && prim::intact!("futex-next-upgradable") {
            // [futex-next-upgradable]
            self.wake_all();
        }
    }
}

// SAFETY: the word admits one upgradable reader at a time and no writer beside it. It becomes the writer when it is the
// only holder, and Acquires what the threads that left have Released.
unsafe impl<P: Preference> RawRwLockUpgrade for FutexRwLock<P> {
    type UpgradableGuard = ThreadBound;

    #[track_caller]
    fn lock_upgradable(&self) -> ThreadBound {
        watch::acquire(self, Mode::Upgradable, || {
            granted(self.read_upgradably(Wait::Forever))
        })
    }

    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<ThreadBound> {
        self.try_read_upgradably(Wait::Never)
    }

    unsafe fn unlock_upgradable(&self, _: ThreadBound) {
        watch::leave(self, Mode::Upgradable);
        self.leave_upgradable(0);
    }

    #[track_caller]
    unsafe fn upgrade(&self, token: ThreadBound) -> ThreadBound {
        // SAFETY: `watch` passes on the token it was given, which the caller promises is this lock's.
        let leave = |token| unsafe { self.unlock_upgradable(token) };
        let upgrade = |_| self.upgrade_within(Wait::Forever);
        granted(watch::upgrade(self, token, leave, upgrade))
    }

    unsafe fn try_upgrade(&self, guard: ThreadBound) -> Result<ThreadBound, ThreadBound> {
        self.try_upgrade_within(guard, Wait::Never)
    }
}

// SAFETY: each is one atomic step that lets no writer in between; it Releases.
unsafe impl<P: Preference> RawRwLockUpgradeDowngrade for FutexRwLock<P> {
    unsafe fn downgrade_upgradable(&self, guard: ThreadBound) -> ThreadBound {
        watch::convert(self, Mode::Upgradable, Mode::Read);
        self.leave_upgradable(Reader::Plain.held());
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: ThreadBound) -> ThreadBound {
        watch::convert(self, Mode::Write, Mode::Upgradable);
        self.downgrade_to(Reader::Upgradable);
        guard
    }
}

// SAFETY: the timed forms acquire and upgrade as the untimed ones do, or not at all.
unsafe impl<P: Preference> RawRwLockUpgradeTimed for FutexRwLock<P> {
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<ThreadBound> {
        self.try_read_upgradably(Wait::at_most(timeout))
    }

    #[track_caller]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<ThreadBound> {
        self.try_read_upgradably(Wait::Until(deadline))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: ThreadBound,
        timeout: Duration,
    ) -> Result<ThreadBound, ThreadBound> {
        self.try_upgrade_within(guard, Wait::at_most(timeout))
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: ThreadBound,
        deadline: Instant,
    ) -> Result<ThreadBound, ThreadBound> {
        self.try_upgrade_within(guard, Wait::Until(deadline))
    }
}
