//! A listing of the holders and waiters of a lock over keys, for people who debug a hang.

use super::OverKeys;
use super::{Compare, Key, KeyRange, KeyRangeLock};
use crate::range::id::OwnerId;
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::order::{Order, Ranges};
use std::fmt;
use std::ops::RangeBounds;

/// A request: a range of keys, a mode, and who holds the range or asks for it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyRequest<K: ?Sized + Key> {
    /// The range.
    pub range: KeyRange<K>,
    /// How it is held or asked for.
    pub mode: Mode,
    /// Who holds it or asks for it: a thread, unless an [`Owner`](crate::range::Owner) was named.
    pub owner: OwnerId,
}

impl<K: ?Sized + Key> KeyRequest<K> {
    /// # Safety
    /// As [`KeyRange::of_span`], of the request's span.
    unsafe fn of(request: &Request) -> Self {
        Self {
            // SAFETY: the caller's promise.
            range: unsafe { KeyRange::of_span(request.span) },
            mode: request.mode,
            owner: request.owner,
        }
    }
}

impl<K: ?Sized + Key> fmt::Display for KeyRequest<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = self.mode.word();
        write!(f, "{}: {} {mode}", self.owner, self.range)
    }
}

/// A sleeping request, and what it sleeps behind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WaitingForKeys<K: ?Sized + Key> {
    /// What is asked for.
    pub request: KeyRequest<K>,
    /// The holder, or the earlier request, that is in the way. `None`: it has just left.
    pub behind: Option<KeyRequest<K>>,
}

/// The holders and waiters of a lock over keys at about one time: from [`KeyRangeLock::snapshot`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeySnapshot<K: ?Sized + Key> {
    /// The holders, in order of range start.
    pub holders: Vec<KeyRequest<K>>,
    /// The sleeping requests, first come first.
    pub waiters: Vec<WaitingForKeys<K>>,
}

/// As [`Snapshot`](crate::range::inspect::Snapshot) is printed.
impl<K: ?Sized + Key> fmt::Display for KeySnapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "held by {}", self.holders.len())?;
        for holder in &self.holders {
            writeln!(f, "  {holder}")?;
        }
        writeln!(f, "awaited by {}", self.waiters.len())?;
        for WaitingForKeys { request, behind } in &self.waiters {
            match behind {
                Some(behind) => writeln!(f, "  {request}, behind {behind}")?,
                None => writeln!(f, "  {request}")?,
            }
        }
        Ok(())
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, L> {
    /// The requests that hold keys and those that wait, to find a hang. Copies their keys.
    ///
    /// Other threads go on while it is taken: holders that come or go meanwhile may be in it or not.
    #[must_use]
    pub fn snapshot(&self) -> KeySnapshot<K> {
        let (mut holders, mut waiters) = (Vec::new(), Vec::new());
        // SAFETY: a walk has reached the node that bears the keys, or the request is in the queue.
        let shown = |request: &Request| unsafe { KeyRequest::of(request) };
        let raw = self.raw.keys();
        raw.each_holder(|_, request| holders.push(shown(request)));
        raw.each_waiter(|request, behind| {
            let request = shown(request);
            let behind = behind.map(shown);
            waiters.push(WaitingForKeys { request, behind });
        });
        KeySnapshot { holders, waiters }
    }

    /// Who holds some of a range, in order of range start. Copies their keys, and nobody else's.
    ///
    /// Other threads go on meanwhile: holders that come or go may be in it or not.
    ///
    /// ```
    /// use spanlock::range::Owner;
    /// use spanlock::range::keys::{KeyRangeLock, between, point};
    ///
    /// let (table, client) = (KeyRangeLock::<[u8]>::new(), Owner::new());
    /// let held = table.by(&client).write(between(b"a", b"c"))?;
    /// let others = table.by(&Owner::new()).read(point(b"d"))?;
    /// let in_the_way = table.holders_in(point(b"b"));
    /// assert_eq!(in_the_way.len(), 1);
    /// assert_eq!(in_the_way[0].owner, client.id());
    /// # drop((held, others));
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    ///
    /// # Panics
    /// When the range is reversed, or a comparison panics.
    #[must_use]
    pub fn holders_in(&self, range: impl RangeBounds<K>) -> Vec<KeyRequest<K>> {
        let order = self.order();
        let mut holders = Vec::new();
        let Some(sought) = order.sought(&range) else {
            return holders;
        };
        self.raw.keys().each_holder(|_, request| {
            if order.overlap(request.span, sought.span()) {
                // SAFETY: a walk has reached the node that bears the keys.
                holders.push(unsafe { KeyRequest::of(request) });
            }
        });
        holders
    }
}
