//! Locks whose ranges are all held by owners: each thread has an owner of its own, and asks in its name. So owners pass
//! what threads pass.

use crate::common::{self, Exclusive, Shared};
use spanlock::range::inspect::Snapshot;
use spanlock::range::list::{ListEx, ListRw};
use spanlock::range::raw::{Ask, Mode, RawOwned, RawOwnedMutex, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Holding, Owner, RangeLock, RangeMutex, Refusal, Span};
use std::sync::Arc;

/// A typed lock that an owner of the running thread asks.
pub struct ByOwners<T>(Arc<T>);

/// The configurations of the same name, asked by owners.
macro_rules! by_owners {
    ($($Typed:ident { $($name:ident: $Lock:ty;)+ })+) => {$($(
        pub fn $name() -> ByOwners<$Typed<$Lock>> {
            ByOwners(Arc::new($Typed::from_raw(common::$name())))
        }
    )+)+};
}

by_owners! {
    RangeLock {
    standard: ListRw;
    writers_first: ListRw;
    skip: SkipRw;
    slots: RawSlots;
    slots_at_once: RawSlots;
    slots_buckets: RawSlots;
    }
    RangeMutex {
    exclusive: ListEx;
    skip_exclusive: SkipEx;
    }
}

thread_local! {
    static OWNER: Owner = Owner::new();
}

/// The owner of the running thread; of one that is exiting, another one.
fn owner() -> Owner {
    OWNER.try_with(Owner::clone).unwrap_or_default()
}

/// What was asked for, or `None`.
fn answer<H>(outcome: Result<H, Refusal>) -> Option<H> {
    match outcome {
        Ok(held) => Some(held),
        Err(Refusal::Busy) => None,
        Err(refusal) => panic!("{refusal}"),
    }
}

/// What both kinds of typed locks do, with the names of their methods.
macro_rules! is_a_lock {
    ($Typed:ident over $Raw:ident) => {
        // SAFETY: it hands everything on to a lock that keeps the promise.
        unsafe impl<L: $Raw + Exclusive> RawRangeMutex for ByOwners<$Typed<L>> {
            type Token = Holding<Arc<$Typed<L>>>;

            fn lock_exclusive(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token> {
                let owner = owner();
                let by = self.0.by_arc(&owner);
                answer(match ask.wait {
                    Wait::Forever => by.write(ask.span),
                    Wait::Never => by.try_write(ask.span),
                    Wait::Until(deadline) => by.try_write_until(ask.span, deadline),
                })
            }

            unsafe fn unlock(&self, token: Self::Token) {
                drop(token);
            }

            fn granule(&self, span: Span) -> Span {
                self.0.raw().granule(span)
            }

            fn snapshot(&self) -> Option<Snapshot> {
                self.0.raw().snapshot()
            }
        }
    };
}

is_a_lock!(RangeLock over RawOwned);
is_a_lock!(RangeMutex over RawOwnedMutex);

// SAFETY: it hands everything on to a lock that keeps the promise.
unsafe impl<L: RawOwned + Shared> RawRangeLock for ByOwners<RangeLock<L>> {
    fn lock_shared(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token> {
        let owner = owner();
        let by = self.0.by_arc(&owner);
        answer(match ask.wait {
            Wait::Forever => by.read(ask.span),
            Wait::Never => by.try_read(ask.span),
            Wait::Until(deadline) => by.try_lock_until(ask.span, Mode::Shared, deadline),
        })
    }

    unsafe fn downgrade(&self, mut token: Self::Token) -> Self::Token {
        token.downgrade();
        token
    }
}
