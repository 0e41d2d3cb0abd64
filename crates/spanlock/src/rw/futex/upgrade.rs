//! Readers that may become the writer.

use super::{FutexRwLock, Preference, Reader, Slept, State};
use crate::range::raw::Wait;
use crate::rw::raw::granted;
use lock_api::{GuardSend, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed};
use prim::atomic::Ordering;
use prim::clock::{Duration, Instant};

impl<P: Preference> FutexRwLock<P> {
    fn read_upgradably(&self, wait: Wait) -> Option<GuardSend> {
        self.read_by(wait, |seen| self.enter_upgradable(seen))
    }

    /// Enters as an upgradable reader, unless somebody is in the way: then the state that says so.
    fn enter_upgradable(&self, mut seen: State) -> Result<(), State> {
        while seen.admits(Reader::Upgradable, P::GIVE_WAY) {
            // [futex-enter] Acquire: pairs with [futex-leave].
            let entered = self.state.compare_exchange(
                seen.0,
                seen.0 + Reader::Upgradable.held(),
                prim::order!("futex-enter-upgradable", Ordering::Acquire),
                Ordering::Relaxed,
            );
            match entered {
                Ok(_) => return Ok(()),
                Err(found) => seen = State(found),
            }
        }
        Err(seen)
    }

    /// From upgradable reader to writer in one step.
    fn upgrade_within(&self, wait: Wait) -> Option<GuardSend> {
        let held = State::UPGRADABLE;
        match self.enter_exclusive(held, self.state(), Slept::No) {
            Ok(()) => Some(GuardSend::new()),
            Err(_) if wait == Wait::Never => None,
            Err(seen) => self.write_contended(held, seen, wait),
        }
    }

    /// The upgradable reader goes, or stays as `rest` readers.
    fn leave_upgradable(&self, rest: u32) {
        // [futex-leave] Release: pairs with [futex-enter].
        let leave = prim::order!("futex-leave-upgradable", Ordering::Release);
        let held = Reader::Upgradable.held();
        let before = State(self.state.fetch_sub(held - rest, leave));
        debug_assert!(before.is_upgradable(), "a read lock was released twice");
        // [futex-next-upgradable]
        if before.has_waiters() && prim::intact!("futex-next-upgradable") {
            self.wake_all();
        }
    }
}

// SAFETY: the word admits one upgradable reader at a time and no writer beside it, and it becomes the writer where
// there is nobody else, acquiring what those who left released.
unsafe impl<P: Preference> RawRwLockUpgrade for FutexRwLock<P> {
    type UpgradableGuard = GuardSend;

    fn lock_upgradable(&self) -> GuardSend {
        granted(self.read_upgradably(Wait::Forever))
    }

    fn try_lock_upgradable(&self) -> Option<GuardSend> {
        self.read_upgradably(Wait::Never)
    }

    unsafe fn unlock_upgradable(&self, _: GuardSend) {
        self.leave_upgradable(0);
    }

    unsafe fn upgrade(&self, _: GuardSend) -> GuardSend {
        granted(self.upgrade_within(Wait::Forever))
    }

    unsafe fn try_upgrade(&self, guard: GuardSend) -> Result<GuardSend, GuardSend> {
        self.upgrade_within(Wait::Never).ok_or(guard)
    }
}

// SAFETY: each is one step, and releases.
unsafe impl<P: Preference> RawRwLockUpgradeDowngrade for FutexRwLock<P> {
    unsafe fn downgrade_upgradable(&self, guard: GuardSend) -> GuardSend {
        self.leave_upgradable(Reader::Plain.held());
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: GuardSend) -> GuardSend {
        self.share(Reader::Upgradable);
        guard
    }
}

// SAFETY: as above.
unsafe impl<P: Preference> RawRwLockUpgradeTimed for FutexRwLock<P> {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardSend> {
        self.read_upgradably(Wait::at_most(timeout))
    }

    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<GuardSend> {
        self.read_upgradably(Wait::Until(deadline))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardSend,
        timeout: Duration,
    ) -> Result<GuardSend, GuardSend> {
        self.upgrade_within(Wait::at_most(timeout)).ok_or(guard)
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardSend,
        deadline: Instant,
    ) -> Result<GuardSend, GuardSend> {
        self.upgrade_within(Wait::Until(deadline)).ok_or(guard)
    }
}
