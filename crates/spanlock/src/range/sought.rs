//! A range that is asked for, from when a program writes it until it is granted or given up.

use super::keys::cells::Keys;
use super::span::Span;

/// The words that name a range. In a lock over keys, what keeps the keys there.
#[derive(Debug, Clone)]
pub struct Sought {
    span: Span,
    keys: Option<Keys>,
}

impl Sought {
    /// Positions.
    #[inline]
    pub(super) const fn positions(span: Span) -> Self {
        Self { span, keys: None }
    }

    /// A range between keys.
    #[inline]
    pub(super) fn keys(keys: Keys) -> Self {
        let span = keys.span();
        let keys = Some(keys);
        Self { span, keys }
    }

    /// The words alone. In a lock over keys, the node of the request takes the keys over: so it is made, whatever else
    /// happens.
    #[inline]
    pub(super) fn offer(self) -> Span {
        match self.keys {
            Some(keys) => keys.offer(),
            None => self.span,
        }
    }

    #[inline]
    pub(super) const fn span(&self) -> Span {
        self.span
    }
}
