//! What may be the raw lock of a lock over keys: the list itself, or what limits one.

use super::{Compare, Key, RawKeys};
use crate::range::Limited;
use crate::range::list::Token;
use crate::range::raw::RawOwned;

/// The raw lock of a [`KeyRangeLock`](super::KeyRangeLock): [`RawKeys`], or one in [`Limited`]. Sealed.
#[expect(private_bounds, reason = "that seals it")]
pub trait OverKeys<K: ?Sized + Key, C: Compare<K>>: RawOwned<Token = Token> + Wraps<K, C> {}

/// What this library asks of it.
pub(in crate::range) trait Wraps<K: ?Sized + Key, C: Compare<K>> {
    /// The list.
    fn keys(&self) -> &RawKeys<K, C>;
}

impl<K: ?Sized + Key, C: Compare<K>> OverKeys<K, C> for RawKeys<K, C> {}

impl<K: ?Sized + Key, C: Compare<K>> Wraps<K, C> for RawKeys<K, C> {
    #[inline]
    fn keys(&self) -> &Self {
        self
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> OverKeys<K, C> for Limited<L> {}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> Wraps<K, C> for Limited<L> {
    fn keys(&self) -> &RawKeys<K, C> {
        self.inner().keys()
    }
}
