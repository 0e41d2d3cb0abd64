//! Readers that may become the writer.

use super::{FutexRwLock, Preference, Reader, Slept, State};
use crate::range::raw::Wait;
use crate::rw::raw::{Stays, granted};
use crate::rw::watch::{self, Mode};
use lock_api::{RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed};
use prim::atomic::Ordering;
use prim::clock::{Duration, Instant};

impl<P: Preference> FutexRwLock<P> {
    fn read_upgradably(&self, wait: Wait) -> Option<Stays> {
        self.read_by(wait, |seen| self.enter_upgradable(seen))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_read_upgradably(&self, wait: Wait) -> Option<Stays> {
        watch::attempt(self, Mode::Upgradable, || self.read_upgradably(wait))
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
    fn upgrade_within(&self, wait: Wait) -> Option<Stays> {
        let held = State::UPGRADABLE;
        match self.enter_exclusive(held, self.state(), Slept::No) {
            Ok(()) => Some(Stays::new()),
            Err(_) if wait == Wait::Never => None,
            Err(seen) => self.write_contended(held, seen, wait),
        }
    }

    fn try_upgrade_within(&self, guard: Stays, wait: Wait) -> Result<Stays, Stays> {
        watch::try_upgrade(self, || self.upgrade_within(wait).ok_or(guard))
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
    type UpgradableGuard = Stays;

    #[cfg_attr(debug_assertions, track_caller)]
    fn lock_upgradable(&self) -> Stays {
        watch::acquire(self, Mode::Upgradable, || {
            granted(self.read_upgradably(Wait::Forever))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_upgradable(&self) -> Option<Stays> {
        self.try_read_upgradably(Wait::Never)
    }

    unsafe fn unlock_upgradable(&self, _: Stays) {
        watch::leave(self, Mode::Upgradable);
        self.leave_upgradable(0);
    }

    #[cfg_attr(debug_assertions, track_caller)]
    unsafe fn upgrade(&self, token: Stays) -> Stays {
        // SAFETY: the caller's.
        let leave = |token| unsafe { self.unlock_upgradable(token) };
        let upgrade = |_| self.upgrade_within(Wait::Forever);
        granted(watch::upgrade(self, token, leave, upgrade))
    }

    unsafe fn try_upgrade(&self, guard: Stays) -> Result<Stays, Stays> {
        self.try_upgrade_within(guard, Wait::Never)
    }
}

// SAFETY: each is one step, and releases.
unsafe impl<P: Preference> RawRwLockUpgradeDowngrade for FutexRwLock<P> {
    unsafe fn downgrade_upgradable(&self, guard: Stays) -> Stays {
        watch::convert(self, Mode::Upgradable, Mode::Read);
        self.leave_upgradable(Reader::Plain.held());
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: Stays) -> Stays {
        watch::convert(self, Mode::Write, Mode::Upgradable);
        self.share(Reader::Upgradable);
        guard
    }
}

// SAFETY: as above.
unsafe impl<P: Preference> RawRwLockUpgradeTimed for FutexRwLock<P> {
    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Stays> {
        self.try_read_upgradably(Wait::at_most(timeout))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<Stays> {
        self.try_read_upgradably(Wait::Until(deadline))
    }

    unsafe fn try_upgrade_for(&self, guard: Stays, timeout: Duration) -> Result<Stays, Stays> {
        self.try_upgrade_within(guard, Wait::at_most(timeout))
    }

    unsafe fn try_upgrade_until(&self, guard: Stays, deadline: Instant) -> Result<Stays, Stays> {
        self.try_upgrade_within(guard, Wait::Until(deadline))
    }
}
