//! A range that is asked for, from when a program writes it until it is granted or given up.

use super::named::Named;
use super::span::Span;

/// The words of a range, and what keeps alive what they name, unless they are positions.
#[derive(Debug, Clone)]
pub struct Sought {
    span: Span,
    named: Option<Named>,
}

impl Sought {
    /// Positions.
    #[inline]
    pub(super) const fn positions(span: Span) -> Self {
        Self { span, named: None }
    }

    /// What is named.
    #[inline]
    pub(super) fn named(named: Named) -> Self {
        let span = named.span();
        let named = Some(named);
        Self { span, named }
    }

    /// The words alone. Where they name something, the node of the request takes that over: so it is made, whatever
    /// else happens.
    #[inline]
    pub(super) fn offer(self) -> Span {
        match self.named {
            Some(named) => named.offer(),
            None => self.span,
        }
    }

    #[inline]
    pub(super) const fn span(&self) -> Span {
        self.span
    }
}
