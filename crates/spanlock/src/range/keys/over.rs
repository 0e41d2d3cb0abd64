//! What may be the raw lock of a lock over keys: the list itself, or what counts or limits one.

use super::{Compare, Key, RawKeys};
use crate::range::list::Token;
use crate::range::raw::RawOwned;
use crate::range::{Instrumented, Limited};

/// The raw lock of a [`KeyRangeLock`](super::KeyRangeLock): [`RawKeys`], or one in [`Limited`] or [`Instrumented`].
/// Sealed.
#[expect(private_bounds, reason = "that seals it")]
pub trait OverKeys<K: ?Sized + Key, C: Compare<K>>: RawOwned<Token = Token> + Wraps<K, C> {}

/// The same for this library.
pub(in crate::range) trait Wraps<K: ?Sized + Key, C: Compare<K>> {
    /// Whether a request is one request to the list. Else its keys have to be kept from one to the next.
    const ASKS_ONCE: bool;

    /// The list.
    fn keys(&self) -> &RawKeys<K, C>;
}

impl<K: ?Sized + Key, C: Compare<K>> OverKeys<K, C> for RawKeys<K, C> {}

impl<K: ?Sized + Key, C: Compare<K>> Wraps<K, C> for RawKeys<K, C> {
    const ASKS_ONCE: bool = true;

    #[inline]
    fn keys(&self) -> &Self {
        self
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> OverKeys<K, C> for Limited<L> {}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> Wraps<K, C> for Limited<L> {
    const ASKS_ONCE: bool = L::ASKS_ONCE;

    fn keys(&self) -> &RawKeys<K, C> {
        self.inner().keys()
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> OverKeys<K, C> for Instrumented<L> {}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> Wraps<K, C> for Instrumented<L> {
    /// It tries first, to see whether the request has to wait.
    const ASKS_ONCE: bool = false;

    fn keys(&self) -> &RawKeys<K, C> {
        self.inner().keys()
    }
}
