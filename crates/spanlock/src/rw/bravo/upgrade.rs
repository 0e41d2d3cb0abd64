//! Upgradable readers: the underlying lock's, who may upgrade when the readers in the table are gone.
//!
//! They take the slow path and set no bias: who reads to write afterwards would revoke it. One that upgrades arrives
//! like any writer, and drains with the underlying lock held as a reader. By itself that keeps no reader out; but a
//! writer that waits for the underlying lock may, where that gives way to writers. So who reads by the table must not
//! read again while another may upgrade.

use super::{Bravo, ReadToken, UnderToken, Way};
use crate::range::raw::Wait;
use crate::rw::policy::{Event, Policy, tell};
use crate::rw::raw::granted;
use crate::rw::watch::{self, Mode};
use lock_api::{
    RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed,
};
use prim::clock::{Duration, Instant};

/// What an attempt to upgrade leaves the thread with.
type Upgraded<L> = Result<
    UnderToken<<L as lock_api::RawRwLock>::ExclusiveGuard>,
    UnderToken<<L as RawRwLockUpgrade>::UpgradableGuard>,
>;

/// The same, of the underlying lock.
type UpgradedUnder<L> =
    Result<<L as lock_api::RawRwLock>::ExclusiveGuard, <L as RawRwLockUpgrade>::UpgradableGuard>;

impl<L: RawRwLockUpgrade, P: Policy> Bravo<L, P> {
    fn read_upgradably(
        &self,
        lock: impl FnOnce(&L) -> Option<L::UpgradableGuard>,
    ) -> Option<UnderToken<L::UpgradableGuard>> {
        let guard = lock(&self.raw)?;
        tell(&self.policy, Event::SlowRead);
        Some(UnderToken::new(guard))
    }

    /// `upgrade` is how to upgrade the underlying lock.
    fn upgrade_within(
        &self,
        token: UnderToken<L::UpgradableGuard>,
        wait: Wait,
        upgrade: impl FnOnce(&L, L::UpgradableGuard) -> UpgradedUnder<L>,
    ) -> Upgraded<L> {
        if wait == Wait::Never && self.bias.is_read() {
            return Err(token);
        }
        let guard = token.0;
        let mut arrival = self.bias.arrive();
        let upgraded = if arrival.drain(wait, &self.policy) {
            upgrade(&self.raw, guard)
        } else {
            Err(guard)
        };
        match upgraded {
            Ok(_) => arrival.enter(),
            Err(_) => arrival.give_up(&self.policy),
        }
        upgraded.map(UnderToken::new).map_err(UnderToken::new)
    }
}

// SAFETY: the underlying lock excludes writers and other upgradable readers; who upgrades has excluded fast readers as
// any writer does, and holds the underlying lock from before until after that.
unsafe impl<L: RawRwLockUpgrade, P: Policy> RawRwLockUpgrade for Bravo<L, P> {
    type UpgradableGuard = UnderToken<L::UpgradableGuard>;

    #[cfg_attr(debug_assertions, track_caller)]
    fn lock_upgradable(&self) -> Self::UpgradableGuard {
        watch::acquire(self, Mode::Upgradable, || {
            granted(self.read_upgradably(|raw| Some(raw.lock_upgradable())))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_upgradable(&self) -> Option<Self::UpgradableGuard> {
        watch::attempt(self, Mode::Upgradable, || {
            self.read_upgradably(L::try_lock_upgradable)
        })
    }

    unsafe fn unlock_upgradable(&self, token: Self::UpgradableGuard) {
        watch::leave(self, Mode::Upgradable);
        // SAFETY: the caller's.
        unsafe { self.raw.unlock_upgradable(token.0) };
    }

    #[cfg_attr(debug_assertions, track_caller)]
    unsafe fn upgrade(&self, token: Self::UpgradableGuard) -> Self::ExclusiveGuard {
        // SAFETY: the caller's.
        let upgrade = |raw: &L, guard| Ok(unsafe { raw.upgrade(guard) });
        // SAFETY: as above.
        let leave = |token| unsafe { self.unlock_upgradable(token) };
        let upgraded = watch::upgrade(self, token, leave, |token| {
            self.upgrade_within(token, Wait::Forever, upgrade)
        });
        upgraded.unwrap_or_else(|_| unreachable!("a wait without end ends with a grant"))
    }

    unsafe fn try_upgrade(&self, token: Self::UpgradableGuard) -> Upgraded<L> {
        // SAFETY: the caller's.
        let upgrade = |raw: &L, guard| unsafe { raw.try_upgrade(guard) };
        watch::try_upgrade(self, || self.upgrade_within(token, Wait::Never, upgrade))
    }
}

// SAFETY: the underlying lock's promise. No bias is set by it.
unsafe impl<L: RawRwLockUpgradeDowngrade, P: Policy> RawRwLockUpgradeDowngrade for Bravo<L, P> {
    unsafe fn downgrade_upgradable(&self, token: Self::UpgradableGuard) -> Self::SharedGuard {
        watch::convert(self, Mode::Upgradable, Mode::Read);
        // SAFETY: the caller's.
        ReadToken::by(Way::Slow(unsafe { self.raw.downgrade_upgradable(token.0) }))
    }

    unsafe fn downgrade_to_upgradable(&self, token: Self::ExclusiveGuard) -> Self::UpgradableGuard {
        watch::convert(self, Mode::Write, Mode::Upgradable);
        // SAFETY: the caller's.
        UnderToken::new(unsafe { self.raw.downgrade_to_upgradable(token.0) })
    }
}

// SAFETY: as for the untimed.
unsafe impl<L, P: Policy> RawRwLockUpgradeTimed for Bravo<L, P>
where
    L: RawRwLockUpgradeTimed + RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Self::UpgradableGuard> {
        watch::attempt(self, Mode::Upgradable, || {
            self.read_upgradably(|raw| raw.try_lock_upgradable_for(timeout))
        })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<Self::UpgradableGuard> {
        watch::attempt(self, Mode::Upgradable, || {
            self.read_upgradably(|raw| raw.try_lock_upgradable_until(deadline))
        })
    }

    unsafe fn try_upgrade_for(
        &self,
        token: Self::UpgradableGuard,
        timeout: Duration,
    ) -> Upgraded<L> {
        match Wait::at_most(timeout).deadline() {
            // SAFETY: the caller's.
            Some(deadline) => unsafe { self.try_upgrade_until(token, deadline) },
            // SAFETY: the caller's.
            None => Ok(unsafe { self.upgrade(token) }),
        }
    }

    unsafe fn try_upgrade_until(
        &self,
        token: Self::UpgradableGuard,
        deadline: Instant,
    ) -> Upgraded<L> {
        // SAFETY: the caller's.
        let upgrade = |raw: &L, guard| unsafe { raw.try_upgrade_until(guard, deadline) };
        watch::try_upgrade(self, || {
            self.upgrade_within(token, Wait::Until(deadline), upgrade)
        })
    }
}
