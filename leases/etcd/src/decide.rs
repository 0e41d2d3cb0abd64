//! What a request is told, by what is known of the resource.

use crate::keys::{Claim, Entry, Keys, Place, State};
use crate::wire::KeyValue;
use spanlock_lease::{Fence, Mode, Request, RequestId, Span, Wanted};

/// What is to be done for a request.
#[derive(Debug)]
pub(crate) enum Decision<'a> {
    /// It has its lease already.
    Held(&'a Entry),
    /// It may have this.
    Grant(Span),
    /// It has to wait. Its wish, if it is known.
    Wait(Option<&'a Entry>),
}

impl State {
    /// The decision.
    pub(crate) fn decide(&self, request: &Request) -> Decision<'_> {
        if let Some(held) = self.held.iter().find(|held| held.id == request.id) {
            return Decision::Held(held);
        }
        let wish = self.wishes.iter().find(|wish| wish.id == request.id);
        // A request that comes now has come after all that is known.
        let came = wish.map_or(i64::MAX, |wish| wish.created);
        let Request { id, mode, .. } = *request;
        if self.in_grace
            || self
                .wishes(id, request.span, mode)
                .any(|wish| gives_way(came, wish))
        {
            return Decision::Wait(wish);
        }
        let is_held = |&span: &Span| {
            self.held
                .iter()
                .any(|held| held.claim.conflicts(span, mode))
        };
        let is_wished_for = |&span: &Span| self.wishes(id, span, mode).next().is_some();
        match request.largest(|span| !is_held(span), is_wished_for) {
            Some(span) => Decision::Grant(span),
            None => Decision::Wait(wish),
        }
    }

    /// Whether others wish for a part of what a request holds.
    pub(crate) fn wanted(&self, id: RequestId, span: Span, mode: Mode) -> Wanted {
        match self.wishes(id, span, mode).next() {
            Some(_) => Wanted::Yes,
            None => Wanted::No,
        }
    }

    /// Wishes of others that conflict.
    fn wishes(&self, id: RequestId, span: Span, mode: Mode) -> impl Iterator<Item = &Entry> {
        let conflicts = move |wish: &&Entry| wish.id != id && wish.claim.conflicts(span, mode);
        self.wishes.iter().filter(conflicts)
    }
}

/// Whether others wish for a part of what is held. A wish that is not understood, as one of a later version of this
/// library, may be for all of it.
pub(crate) fn wanted(keys: &Keys, wishes: &[KeyValue], held: &Entry) -> Wanted {
    let is_for_it = |kv: &KeyValue| match keys.place(&kv.key) {
        Some(Place::Wish(id)) if id == held.id => false,
        Some(Place::Wish(_)) => Claim::parse(&kv.value)
            .is_none_or(|wish| wish.conflicts(held.claim.span, held.claim.mode)),
        _ => true,
    };
    match wishes.iter().any(is_for_it) {
        true => Wanted::Yes,
        false => Wanted::No,
    }
}

/// Whether a request that came then gives way to a wish: to one that came earlier and has passed no mark since
/// (*marks-pass*).
pub(crate) fn gives_way(came: i64, wish: &Entry) -> bool {
    wish.modified < came
}

impl Entry {
    /// Of what is held: the transaction that made it granted it (*fence-is-revision*).
    pub(crate) fn fence(&self) -> Fence {
        fence(self.claim.epoch, self.created)
    }
}

pub(crate) fn fence(epoch: u32, revision: i64) -> Fence {
    Fence {
        epoch,
        counter: revision.cast_unsigned(),
    }
}
