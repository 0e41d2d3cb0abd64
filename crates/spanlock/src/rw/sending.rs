//! Guards that may go to other threads, by the type of their lock.

use super::watch::unwatched;
use super::{Bravo, FutexRwLock, PhaseFairQueue, PhaseFairTicket, Policy, Preference};
use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeTimed,
};

/// A lock that any thread may release, whichever acquired it. All of this library are.
///
/// # Safety
/// The guards of the lock (of `lock_api`'s raw traits) may be sent to another thread, and be used there for whatever
/// the traits do with a guard. That need not be known to the compiler.
pub unsafe trait ForeignRelease: RawRwLock {}

// SAFETY: the word holds no thread, and the guards hold nothing.
unsafe impl<P: Preference> ForeignRelease for FutexRwLock<P> {}
// SAFETY: tickets are numbers, and belong to no thread.
unsafe impl ForeignRelease for PhaseFairTicket {}
// SAFETY: whoever has entered has left the queue of threads.
unsafe impl ForeignRelease for PhaseFairQueue {}
// SAFETY: the guards remember their publication, which any thread may end, or the guard of the underlying lock, which
// any thread may release.
unsafe impl<L: ForeignRelease, P: Policy> ForeignRelease for Bravo<L, P> {}

/// A lock whose guards may be sent to other threads.
///
/// ```
/// use lock_api::RwLock;
/// use spanlock::rw::{Bravo, FutexRwLock, SendGuards};
///
/// static CONFIG: RwLock<SendGuards<Bravo<FutexRwLock>>, u32> = RwLock::new(5);
///
/// let guard = CONFIG.write();
/// std::thread::spawn(move || drop(guard)).join().expect("it releases");
/// assert_eq!(*CONFIG.read(), 5);
/// ```
///
/// Futures that hold a guard across an `await` compile for executors of several threads. Such a program deadlocks if
/// all threads of the executor wait for the lock while the future that holds it is suspended.
///
/// # When not to use it
/// When guards stay on their threads: debug builds do not find out that a thread waits for itself by such a lock,
/// because another thread may release it.
///
/// # Cost, fairness, blocking
/// Those of the lock inside.
#[derive(Debug, Default)]
pub struct SendGuards<L>(L);

impl<L> SendGuards<L> {
    /// Guards of `lock` that may be sent.
    #[must_use]
    pub const fn new(lock: L) -> Self {
        Self(lock)
    }
}

impl<L: ForeignRelease> SendGuards<L> {
    /// What a method of the lock inside acquires.
    pub(super) fn sent<G>(&self, lock: impl FnOnce(&L) -> G) -> SentToken<G> {
        SentToken(unwatched(|| lock(&self.0)))
    }

    /// What a method of the lock inside acquires that tries.
    pub(super) fn try_sent<G>(&self, lock: impl FnOnce(&L) -> Option<G>) -> Option<SentToken<G>> {
        unwatched(|| lock(&self.0)).map(SentToken)
    }

    /// Releases by a method of the lock inside.
    pub(super) fn leave<G>(&self, guard: SentToken<G>, unlock: impl FnOnce(&L, G)) {
        unwatched(|| unlock(&self.0, guard.0));
    }
}

/// A guard's token that may be sent.
#[derive(Debug)]
pub struct SentToken<G>(G);

// SAFETY: only `SendGuards` makes it, from the guard of a lock that any thread may release.
unsafe impl<G> Send for SentToken<G> {}

/// Methods that do what the methods of the same name do to the lock inside, but for what the tokens are.
macro_rules! forwards {
    (lock: $($lock:ident -> $Guard:ident;)+) => {$(
        #[inline]
        fn $lock(&self) -> SentToken<L::$Guard> {
            SentToken(unwatched(|| self.0.$lock()))
        }
    )+};
    (try: $($lock:ident($($limit:ident: $Limit:ident)?) -> $Guard:ident;)+) => {$(
        #[inline]
        fn $lock(&self, $($limit: L::$Limit)?) -> Option<SentToken<L::$Guard>> {
            unwatched(|| self.0.$lock($($limit)?)).map(SentToken)
        }
    )+};
    (unlock: $($unlock:ident($Guard:ident);)+) => {$(
        #[inline]
        unsafe fn $unlock(&self, guard: SentToken<L::$Guard>) {
            // SAFETY: the caller's promise, and any thread may release it.
            unwatched(|| unsafe { self.0.$unlock(guard.0) });
        }
    )+};
    (convert: $($convert:ident($Guard:ident) -> $After:ident;)+) => {$(
        #[inline]
        unsafe fn $convert(&self, guard: SentToken<L::$Guard>) -> SentToken<L::$After> {
            // SAFETY: the caller's promise, and any thread may convert it.
            SentToken(unwatched(|| unsafe { self.0.$convert(guard.0) }))
        }
    )+};
    (upgrade: $($upgrade:ident($($limit:ident: $Limit:ident)?);)+) => {$(
        #[inline]
        unsafe fn $upgrade(
            &self,
            guard: SentToken<L::UpgradableGuard>,
            $($limit: L::$Limit)?
        ) -> Result<SentToken<L::ExclusiveGuard>, SentToken<L::UpgradableGuard>> {
            // SAFETY: the caller's promise, and any thread may convert it.
            let upgraded = unwatched(|| unsafe { self.0.$upgrade(guard.0, $($limit)?) });
            upgraded.map(SentToken).map_err(SentToken)
        }
    )+};
}

// SAFETY: the lock inside excludes, and any thread may release it.
unsafe impl<L: ForeignRelease> RawRwLock for SendGuards<L> {
    const INIT: Self = Self(L::INIT);

    type SharedGuard = SentToken<L::SharedGuard>;
    type ExclusiveGuard = SentToken<L::ExclusiveGuard>;

    forwards! { lock: lock_shared -> SharedGuard; lock_exclusive -> ExclusiveGuard; }
    forwards! { try: try_lock_shared() -> SharedGuard; try_lock_exclusive() -> ExclusiveGuard; }
    forwards! { unlock: unlock_shared(SharedGuard); unlock_exclusive(ExclusiveGuard); }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: the timed forms acquire as those of the lock inside do.
unsafe impl<L: ForeignRelease + RawRwLockTimed> RawRwLockTimed for SendGuards<L> {
    type Duration = L::Duration;
    type Instant = L::Instant;

    forwards! { try:
        try_lock_shared_for(timeout: Duration) -> SharedGuard;
        try_lock_shared_until(deadline: Instant) -> SharedGuard;
        try_lock_exclusive_for(timeout: Duration) -> ExclusiveGuard;
        try_lock_exclusive_until(deadline: Instant) -> ExclusiveGuard;
    }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockDowngrade> RawRwLockDowngrade for SendGuards<L> {
    forwards! { convert: downgrade(ExclusiveGuard) -> SharedGuard; }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockUpgrade> RawRwLockUpgrade for SendGuards<L> {
    type UpgradableGuard = SentToken<L::UpgradableGuard>;

    forwards! { lock: lock_upgradable -> UpgradableGuard; }
    forwards! { try: try_lock_upgradable() -> UpgradableGuard; }
    forwards! { unlock: unlock_upgradable(UpgradableGuard); }
    forwards! { convert: upgrade(UpgradableGuard) -> ExclusiveGuard; }
    forwards! { upgrade: try_upgrade(); }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade
    for SendGuards<L>
{
    forwards! { convert:
        downgrade_upgradable(UpgradableGuard) -> SharedGuard;
        downgrade_to_upgradable(ExclusiveGuard) -> UpgradableGuard;
    }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for SendGuards<L> {
    forwards! { try:
        try_lock_upgradable_for(timeout: Duration) -> UpgradableGuard;
        try_lock_upgradable_until(deadline: Instant) -> UpgradableGuard;
    }
    forwards! { upgrade: try_upgrade_for(timeout: Duration); try_upgrade_until(deadline: Instant); }
}
