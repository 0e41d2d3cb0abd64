//! Upgradable readers of a biased lock.
//!
//! An upgradable reader is a reader of the underlying lock, which lets in one of them at a time. It takes the slow path
//! and sets no bias: if it does upgrade, it would have to revoke that bias.
//!
//! To upgrade it arrives as any writer does. It waits for the readers in the table while it holds the underlying lock
//! as a reader, and then upgrades the underlying lock:
//!
//! ```text
//!   upgradable reader --> arrive ---> wait until the table --> upgrade the --> writer, which
//!   (holds the                        is empty, clear          underlying      leaves as any
//!   underlying lock)                  the bias                 lock            other
//!                           \                  \                     \
//!                            +---- gives up: upgradable reader as before
//! ```
//!
//! By itself this keeps no reader out. But another writer that waits for the underlying lock may hold readers back, if
//! that lock prefers writers. A reader inside by the table that reads again would wait for that writer, the writer for
//! the upgradable reader, and the upgradable reader for the reader in the table. So a thread that reads must not read
//! again while another may upgrade.

use super::options::{Event, Policy, report};
use super::{Bravo, UnderToken, Way, WriteToken};
use crate::rw::raw::{Token, granted};
use crate::rw::watch::{self, Mode};
use crate::wait::Wait;
use lock_api::{
    RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed,
};
use prim::clock::{Duration, Instant};

/// What the thread holds after an attempt to upgrade: the lock as a writer, or as an upgradable reader as before.
type Upgraded<L> = Result<
    WriteToken<<L as lock_api::RawRwLock>::ExclusiveGuard>,
    UnderToken<<L as RawRwLockUpgrade>::UpgradableGuard>,
>;

/// What an upgrade of the underlying lock returns.
type UpgradedUnder<L> =
    Result<<L as lock_api::RawRwLock>::ExclusiveGuard, <L as RawRwLockUpgrade>::UpgradableGuard>;

impl<L: RawRwLockUpgrade, P: Policy> Bravo<L, P> {
    fn read_upgradably(
        &self,
        lock: impl FnOnce(&L) -> Option<L::UpgradableGuard>,
    ) -> Option<UnderToken<L::UpgradableGuard>> {
        let guard = lock(&self.raw)?;
        report(&self.policy, Event::SlowRead);
        Some(Token::new(guard))
    }

    /// Becomes the writer; `upgrade` upgrades the underlying lock.
    fn upgrade_within(
        &self,
        token: UnderToken<L::UpgradableGuard>,
        wait: Wait,
        upgrade: impl FnOnce(&L, L::UpgradableGuard) -> UpgradedUnder<L>,
    ) -> Upgraded<L> {
        if wait == Wait::Never && self.bias.is_read() {
            return Err(token);
        }
        let guard = token.what();
        let revocation = self.bias.arrive(&self.policy);
        let upgraded = if revocation.drain(wait, &self.policy) {
            upgrade(&self.raw, guard)
        } else {
            Err(guard)
        };
        let guard = upgraded.map_err(Token::new)?;
        revocation.stay();
        Ok(Token::new(Way::Bias(guard)))
    }
}

// SAFETY: the underlying lock excludes writers and other upgradable readers. An upgrading reader has excluded fast
// readers by a revocation, as any writer, and holds the underlying lock from before the revocation until it writes.
unsafe impl<L: RawRwLockUpgrade, P: Policy> RawRwLockUpgrade for Bravo<L, P> {
    type UpgradableGuard = UnderToken<L::UpgradableGuard>;

    #[track_caller]
    fn lock_upgradable(&self) -> Self::UpgradableGuard {
        watch::acquire(self, Mode::Upgradable, || {
            granted(self.read_upgradably(|raw| Some(raw.lock_upgradable())))
        })
    }

    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<Self::UpgradableGuard> {
        watch::attempt(self, Mode::Upgradable, || {
            self.read_upgradably(L::try_lock_upgradable)
        })
    }

    unsafe fn unlock_upgradable(&self, token: Self::UpgradableGuard) {
        watch::leave(self, Mode::Upgradable);
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        unsafe { self.raw.unlock_upgradable(token.what()) };
    }

    #[track_caller]
    unsafe fn upgrade(&self, token: Self::UpgradableGuard) -> Self::ExclusiveGuard {
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        let upgrade = |raw: &L, guard| Ok(unsafe { raw.upgrade(guard) });
        // SAFETY: `watch` passes on the token it was given, which the caller promises is this lock's.
        let leave = |token| unsafe { self.unlock_upgradable(token) };
        let upgraded = watch::upgrade(self, token, leave, |token| {
            self.upgrade_within(token, Wait::Forever, upgrade)
        });
        upgraded.unwrap_or_else(|_| unreachable!("a wait without end ends with a grant"))
    }

    unsafe fn try_upgrade(&self, token: Self::UpgradableGuard) -> Upgraded<L> {
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        let upgrade = |raw: &L, guard| unsafe { raw.try_upgrade(guard) };
        watch::try_upgrade(self, || self.upgrade_within(token, Wait::Never, upgrade))
    }
}

// SAFETY: the underlying lock promises that no writer gets in between. The new reader or upgradable reader sets no
// bias.
unsafe impl<L: RawRwLockUpgradeDowngrade, P: Policy> RawRwLockUpgradeDowngrade for Bravo<L, P> {
    unsafe fn downgrade_upgradable(&self, token: Self::UpgradableGuard) -> Self::SharedGuard {
        watch::convert(self, Mode::Upgradable, Mode::Read);
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        Token::new(Way::Under(unsafe {
            self.raw.downgrade_upgradable(token.what())
        }))
    }

    unsafe fn downgrade_to_upgradable(&self, token: Self::ExclusiveGuard) -> Self::UpgradableGuard {
        watch::convert(self, Mode::Write, Mode::Upgradable);
        let guard = self.leave(token);
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        Token::new(unsafe { self.raw.downgrade_to_upgradable(guard) })
    }
}

// SAFETY: the timed forms acquire and upgrade as the untimed ones do, or not at all.
unsafe impl<L, P: Policy> RawRwLockUpgradeTimed for Bravo<L, P>
where
    L: RawRwLockUpgradeTimed + RawRwLockTimed<Duration = Duration, Instant = Instant>,
{
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Self::UpgradableGuard> {
        watch::attempt(self, Mode::Upgradable, || {
            self.read_upgradably(|raw| raw.try_lock_upgradable_for(timeout))
        })
    }

    #[track_caller]
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
            // SAFETY: the caller promises that the token is this lock's, and it is passed on.
            Some(deadline) => unsafe { self.try_upgrade_until(token, deadline) },
            // SAFETY: the caller promises that the token is this lock's, and it is passed on.
            None => Ok(unsafe { self.upgrade(token) }),
        }
    }

    unsafe fn try_upgrade_until(
        &self,
        token: Self::UpgradableGuard,
        deadline: Instant,
    ) -> Upgraded<L> {
        // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
        let upgrade = |raw: &L, guard| unsafe { raw.try_upgrade_until(guard, deadline) };
        watch::try_upgrade(self, || {
            self.upgrade_within(token, Wait::Until(deadline), upgrade)
        })
    }
}
