//! The methods that the typed locks have in common, each written once.
//!
//! A typed lock offers up to four forms of an acquisition, for one range and for many, in each mode that it grants.
//! They differ in their names, their guards and in how long they may wait. A macro names them:
//!
//! ```text
//!   one_range! { range of u64, by read_within, as ReadGuard<'_, L>; ... read, try_read, try_read_for, try_read_until }
//!
//!   expands to
//!
//!     pub fn read(&self, range: impl RangeBounds<u64>) -> ReadGuard<'_, L>                  Wait::Forever
//!     pub fn try_read(&self, range: ..) -> Option<ReadGuard<'_, L>>                         Wait::Never
//!     pub fn try_read_for(&self, range: .., timeout: Duration) -> Option<ReadGuard<'_, L>>  Wait::at_most(timeout)
//!     pub fn try_read_until(&self, range: .., deadline: Instant) -> Option<..>              Wait::Until(deadline)
//! ```
//!
//! each of which calls `self.read_within(range, wait)`. With `owned range` for `range`, `self` is an `&Arc<Self>`.

/// The four methods that acquire one range.
///
/// `$lock` carries its own documentation. `$refused` completes the sentence "`None` if it would block", and `$panics`
/// says when all four panic.
macro_rules! one_range {
    (range of $($rest:tt)*) => {
        one_range! { @(&self) self; $($rest)* }
    };
    (owned range of $($rest:tt)*) => {
        one_range! { @(self: &Arc<Self>) self; $($rest)* }
    };
    (
        @($($receiver:tt)+) $self:ident; $position:ty, by $within:ident, as $guard:ty;
        panics $panics:literal;
        refused $refused:literal;
        $(#[$documented:meta])*
        $lock:ident, $try_lock:ident, $try_lock_for:ident, $try_lock_until:ident
    ) => {
        $(#[$documented])*
        #[inline]
        #[track_caller]
        pub fn $lock($($receiver)+, range: impl RangeBounds<$position>) -> $guard {
            granted($self.$within(range, Wait::Forever))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` if it would block")]
        #[doc = concat!($refused, ".")]
        /// A request that is about to hold some of it or to withdraw counts as a holder if it has not decided after 128
        /// us.
        ///
        /// # Panics
        #[doc = $panics]
        #[inline]
        #[track_caller]
        pub fn $try_lock($($receiver)+, range: impl RangeBounds<$position>) -> Option<$guard> {
            $self.$within(range, Wait::Never)
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        #[doc = $panics]
        #[track_caller]
        pub fn $try_lock_for(
            $($receiver)+,
            range: impl RangeBounds<$position>,
            timeout: Duration,
        ) -> Option<$guard> {
            $self.$within(range, Wait::at_most(timeout))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` at `deadline`.")]
        ///
        /// # Panics
        #[doc = $panics]
        #[track_caller]
        pub fn $try_lock_until(
            $($receiver)+,
            range: impl RangeBounds<$position>,
            deadline: Instant,
        ) -> Option<$guard> {
            $self.$within(range, Wait::Until(deadline))
        }
    };
}

/// The three methods that acquire several ranges, all or none.
macro_rules! many_ranges {
    (
        of $position:ty, by $within:ident, as $guard:ty;
        does $does:literal;
        panics $panics:literal;
        $(#[$example:meta])*
        $lock:ident, $try_lock:ident, $try_lock_for:ident
    ) => {
        #[doc = $does]
        /// All or none. Ranges that overlap or touch count as one.
        ///
        $(#[$example])*
        ///
        /// Does not deadlock with other calls that lock many, whatever their order, provided that the raw lock lets a
        /// thread that holds a range pass the requests that wait for it. All raw locks of this library do. A thread
        /// that holds other ranges while it calls this is responsible for the order itself, as with any lock.
        ///
        /// # Panics
        #[doc = $panics]
        #[track_caller]
        pub fn $lock<R: RangeBounds<$position>>(
            &self,
            ranges: impl IntoIterator<Item = R>,
        ) -> Guards<$guard> {
            granted(self.$within(ranges, Wait::Forever))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` if it would block.")]
        /// It holds those that it has until it meets one that is taken meanwhile.
        ///
        /// # Panics
        /// When a range is reversed.
        #[track_caller]
        pub fn $try_lock<R: RangeBounds<$position>>(
            &self,
            ranges: impl IntoIterator<Item = R>,
        ) -> Option<Guards<$guard>> {
            self.$within(ranges, Wait::Never)
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        /// When a range is reversed.
        #[track_caller]
        pub fn $try_lock_for<R: RangeBounds<$position>>(
            &self,
            ranges: impl IntoIterator<Item = R>,
            timeout: Duration,
        ) -> Option<Guards<$guard>> {
            self.$within(ranges, Wait::at_most(timeout))
        }
    };
}

/// What every typed lock has besides: how it is made, its raw lock, the listing, and how it acquires in each mode.
macro_rules! over_raw_lock {
    (
        $Lock:ident over $Raw:ident, by default $Default:ty, built by $Builder:ty;
        $($Mode:ident as $Guard:ident: $within:ident, $many_within:ident;)+
    ) => {
        impl $Lock {
            prim::const_fn! {
                /// A lock with nothing held.
                #[must_use]
                pub const fn new() -> Self {
                    Self { raw: <$Default>::new() }
                }
            }

            /// Begins a lock with another policy: [`Builder::build`] makes it, and [`from_raw`](Self::from_raw) makes
            /// it typed.
            pub const fn builder() -> $Builder {
                <$Default>::builder()
            }
        }

        impl<L: $Raw> $Lock<L> {
            $(
                #[inline]
                #[track_caller]
                pub(super) fn $within(&self, range: impl RangeBounds<u64>, wait: Wait) -> Option<$Guard<'_, L>> {
                    many::acquire_one($Mode, &self.raw, range, wait).map($Guard::new)
                }

                #[track_caller]
                pub(super) fn $many_within<R: RangeBounds<u64>>(
                    &self,
                    ranges: impl IntoIterator<Item = R>,
                    wait: Wait,
                ) -> Option<Guards<$Guard<'_, L>>> {
                    many::acquire($Mode, &self.raw, ranges, wait, $Guard::new)
                }
            )+

            /// A typed lock over a raw one.
            #[must_use]
            pub const fn from_raw(raw: L) -> Self {
                Self { raw }
            }

            /// The raw lock.
            #[must_use]
            pub const fn raw(&self) -> &L {
                &self.raw
            }

            /// The requests that hold ranges and those that wait, to find a hang. Empty, if the raw lock cannot list
            /// them.
            #[must_use]
            pub fn snapshot(&self) -> Snapshot {
                self.raw.snapshot().unwrap_or_default()
            }
        }

        impl<L: $Raw> fmt::Debug for $Lock<L> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.snapshot().finish(&mut f.debug_struct(stringify!($Lock)))
            }
        }
    };
}

/// The result of a wait without a limit.
#[inline]
pub(super) fn granted<G>(guard: Option<G>) -> G {
    guard.expect("a request that waits forever is granted")
}

pub(super) use {many_ranges, one_range, over_raw_lock};

/// Methods for tasks, of one mode: on a reference, on an `Arc`, and each with a limit of time.
macro_rules! for_tasks {
    (
        $position:ty, $mode:ident;
        $(#[$documented:meta])*
        $lock:ident, $try_lock_for:ident; $lock_owned:ident, $try_lock_owned_for:ident
    ) => {
        $(#[$documented])*
        #[inline]
        #[track_caller]
        pub fn $lock(&self, range: impl RangeBounds<$position>) -> Lock<&Self> {
            Lock(LockBy::anonymous(self, range, Mode::$mode, Wait::Forever))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        /// When the range is reversed.
        #[track_caller]
        pub fn $try_lock_for(&self, range: impl RangeBounds<$position>, timeout: Duration) -> TryLock<&Self> {
            TryLock(LockBy::anonymous(self, range, Mode::$mode, Wait::at_most(timeout)))
        }

        #[doc = concat!("As [`", stringify!($lock), "`](Self::", stringify!($lock), "), where what is held keeps the lock.")]
        ///
        /// # Panics
        /// When the range is reversed.
        #[track_caller]
        pub fn $lock_owned(self: &Arc<Self>, range: impl RangeBounds<$position>) -> Lock<Arc<Self>> {
            Lock(LockBy::anonymous(Arc::clone(self), range, Mode::$mode, Wait::Forever))
        }

        #[doc = concat!("As [`", stringify!($lock_owned), "`](Self::", stringify!($lock_owned), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        /// When the range is reversed.
        #[track_caller]
        pub fn $try_lock_owned_for(
            self: &Arc<Self>,
            range: impl RangeBounds<$position>,
            timeout: Duration,
        ) -> TryLock<Arc<Self>> {
            TryLock(LockBy::anonymous(Arc::clone(self), range, Mode::$mode, Wait::at_most(timeout)))
        }
    };
}
pub(super) use for_tasks;
