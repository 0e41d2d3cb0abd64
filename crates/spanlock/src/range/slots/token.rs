//! Tokens: what a range is released by.

use super::slot::Slot;
use crate::range::list::{InPlace, Link, Node, Token as ListToken};
use prim::atomic::Ordering;
use std::ptr::NonNull;

/// Proof of an acquisition: a token of the list, or the address of a slot or of a node in the annex, with a mark.
#[derive(Debug)]
pub struct Token(NonNull<Node>);

// The marks are in the address of a slot, and are not set in that of a node.
const _: () = assert!(align_of::<Slot>() > Token::SLOT | Token::OTHER);
const _: () = assert!(align_of::<Node>() > Token::SLOT | Token::OTHER);

/// What a token stands for.
pub(super) enum Granted<'a> {
    List(ListToken),
    Annex(ListToken),
    Slot(&'a Slot),
}

impl Token {
    /// Marks, in bits that a link to a node does not use. With the second one alone it is of a node in the annex.
    const SLOT: usize = 16;
    const OTHER: usize = 32;
    const MARKS: usize = Self::SLOT | Self::OTHER;

    #[inline]
    pub(super) fn of_list(token: &ListToken) -> Self {
        Self(token.link().non_null())
    }

    #[inline]
    pub(super) fn of_slot(slot: &Slot, is_home: bool) -> Self {
        let mark = if is_home {
            Self::SLOT
        } else {
            Self::SLOT | Self::OTHER
        };
        let slot = NonNull::from(slot).cast::<Node>();
        Self(slot.map_addr(|address| address | mark))
    }

    pub(super) fn of_annex(token: &ListToken) -> Self {
        let node = token.link().non_null();
        Self(node.map_addr(|address| address | Self::OTHER))
    }

    #[inline]
    pub(super) fn is_of_list(&self) -> bool {
        self.0.addr().get() & Self::MARKS == 0
    }

    #[inline]
    pub(super) fn is_of_annex(&self) -> bool {
        self.0.addr().get() & Self::MARKS == Self::OTHER
    }

    /// Whether the slot, if it is one, is the thread's home slot.
    #[inline]
    pub(super) fn is_home(&self) -> bool {
        self.0.addr().get() & Self::OTHER == 0
    }

    /// The list's token that this one is.
    #[inline]
    pub(super) fn as_list_token(&self) -> ListToken {
        ListToken::new(Link::from_non_null(self.0))
    }

    /// The annex's token that this one is, but for the mark.
    pub(super) fn as_annex_token(&self) -> ListToken {
        let marked = self.0.as_ptr();
        let node = marked.map_addr(|address| address & !Self::MARKS);
        ListToken::new(Link::from_non_null(
            NonNull::new(node).expect("it has a node"),
        ))
    }

    /// The slot that it is the address of.
    ///
    /// # Safety
    /// It is neither the list's nor the annex's, and the lock of the token is alive for `'a`.
    #[inline]
    pub(super) unsafe fn slot<'a>(&self) -> &'a Slot {
        let slot = self.0.as_ptr().map_addr(|address| address & !Self::MARKS);
        // SAFETY: the slots of a lock live as long as the lock.
        unsafe { &*slot.cast::<Slot>() }
    }

    /// What an owner holds by it, and where.
    ///
    /// # Safety
    /// It is not released, and its lock is alive.
    pub(super) unsafe fn in_place(&self) -> InPlace {
        // SAFETY: the caller's promise.
        match unsafe { self.granted() } {
            // SAFETY: the caller's promise.
            Granted::List(token) | Granted::Annex(token) => unsafe {
                InPlace::in_node(token.node())
            },
            Granted::Slot(slot) => InPlace {
                place: slot.id(),
                held: slot.request(slot.load(Ordering::Relaxed)),
            },
        }
    }

    /// # Safety
    /// The lock of the token is alive for `'a`.
    #[inline]
    pub(super) unsafe fn granted<'a>(&self) -> Granted<'a> {
        if self.is_of_list() {
            Granted::List(self.as_list_token())
        } else if self.is_of_annex() {
            Granted::Annex(self.as_annex_token())
        } else {
            // SAFETY: the caller's promise.
            Granted::Slot(unsafe { self.slot() })
        }
    }
}
