//! The fast path: a list with one node, which no other thread has read.
//!
//! ```text
//!   acquire:  head: null --> node, with a mark               one compare-exchange
//!   release:  head: node, with the mark --> null             another one; the node may be used again at once
//!
//!   another thread's walk takes the mark away before it reads the node [demote]: then the release is a regular one
//! ```
//!
//! The edges cited are the parent module's.

use super::node::Link;
use super::skip::Index;
use super::{List, Protocol, Token};
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::parts::Local;
use crate::range::span::Span;
use crate::range::thread;
use crate::range::wait::WaitQueue;
use prim::atomic::Ordering;
use std::panic::Location;

impl<P: Protocol, I: Index> List<P, I> {
    /// The fast path: the list is empty, and this thread's spare node is not in use.
    #[inline]
    #[track_caller]
    pub(in crate::range) fn acquire_fast(
        &self,
        queue: &WaitQueue,
        local: &Local,
        span: Span,
        mode: Mode,
    ) -> Option<Token> {
        if !self.may_be_fast(queue) {
            return None;
        }
        let node = local.spare.take()?;
        // SAFETY: a spare node is known to its thread only, and this thread has just taken it.
        unsafe { self.prepare(node, span, mode, Location::caller()) };
        let fast = Link::to(node).fast();
        if !self.insert_fast(fast) {
            local.return_spare(node);
            return None;
        }
        Some(Token::new(fast))
    }

    /// The fast path of a list whose nodes bear keys: the node comes from the thread's pool.
    #[inline]
    pub(super) fn acquire_fast_naming(
        &self,
        queue: &WaitQueue,
        span: Span,
        mode: Mode,
        at: &'static Location<'static>,
    ) -> Option<Token> {
        if !self.may_be_fast(queue) {
            return None;
        }
        thread::with_record(|record| {
            // A thread that is exiting has its record for this call only, and frees then a node that was not inserted,
            // with the keys that are asked for.
            if !record.is_here() {
                return None;
            }
            let request = Request::new(span, mode, record.thread());
            let token = self.insert_alone(self.index.take_plain_node(record), &request, at)?;
            record.parts.list.acquired();
            Some(token)
        })
    }

    /// Whether the fast path is worth a try.
    #[inline]
    pub(super) fn may_be_fast(&self, queue: &WaitQueue) -> bool {
        // Hints. The head is not loaded before the compare-exchange: the load would cost more than everything else here
        // but the compare-exchange.
        !self.is_crowded.load(Ordering::Relaxed) && !queue.has_reservations()
    }

    /// Inserts the node of that link, which has the mark, if the list is empty. The node is prepared, and known to this
    /// thread only.
    #[inline]
    pub(super) fn insert_fast(&self, fast: Link) -> bool {
        // [fast-acquire] Acquire: pairs with [fast-release] and [unlink]. [fast-publish] Release: pairs with
        // [publish-acquire].
        let success = prim::order!(
            "fast-publish",
            prim::order!("fast-acquire", Ordering::AcqRel, Ordering::Release),
            Ordering::Acquire
        );
        let inserted = self
            .head
            .replace(Link::NULL, fast, success, Ordering::Relaxed);
        inserted.is_ok()
    }
}

impl<P, I: Index> List<P, I> {
    /// Takes the node of the fast path out of the list, if no other thread has walked the list meanwhile.
    #[inline]
    pub(super) fn remove_fast(&self, fast: Link) -> bool {
        // [fast-release] Release: pairs with [fast-acquire].
        let released = self.head.replace(
            fast,
            Link::NULL,
            prim::order!("fast-release", Ordering::Release),
            Ordering::Relaxed,
        );
        released.is_ok()
    }
}
