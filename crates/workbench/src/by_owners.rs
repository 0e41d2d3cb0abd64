//! A lock each of whose ranges is held by an owner of its own: so workloads of threads show what owners and tasks pay.

use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{Ask, AskBy, Mode, RawOwned, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::{Owner, Refusal, Span};
use std::panic::Location;

/// A lock whose ranges are held by anonymous owners.
#[derive(Debug)]
pub struct ByOwners<L>(pub L);

/// Who holds all ranges.
static SOMEBODY: Owner = Owner::anonymous();

impl<L: RawOwned> ByOwners<L> {
    #[track_caller]
    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        match self.0.lock_by(AskBy::new(&SOMEBODY, span, mode, wait)) {
            Ok(token) => Some(token),
            Err(Refusal::Busy) => None,
            Err(refusal) => panic!("{refusal}, asked for at {}", Location::caller()),
        }
    }
}

// SAFETY: owners exclude each other as threads do.
unsafe impl<L: RawOwned> RawRangeMutex for ByOwners<L> {
    type Token = L::Token;

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        self.lock(Mode::Exclusive, ask.span, ask.wait)
    }

    #[inline]
    unsafe fn unlock(&self, token: L::Token) {
        // SAFETY: the lock granted it to an owner, as the caller promises.
        unsafe { self.0.unlock_by(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.0.granule(span)
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        self.0.is_taken(span, mode)
    }

    unsafe fn span_of(&self, token: &L::Token) -> Option<Span> {
        // SAFETY: the caller's promise.
        unsafe { self.0.span_of(token) }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.0.snapshot()
    }
}

// SAFETY: as above.
unsafe impl<L: RawOwned> RawRangeLock for ByOwners<L> {
    #[inline]
    #[track_caller]
    fn lock_shared(&self, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        self.lock(Mode::Shared, ask.span, ask.wait)
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: the lock granted it to an owner, exclusively, as the caller promises.
        unsafe { self.0.share_by(&token) };
        token
    }
}
