//! What a lock kind does for the steps of a request: the trait [`Acquisition`], and what may come of it.

use super::entry::HolderId;
use crate::deadlock::Deadlock;
use crate::range::inspect::{Request, SelfDeadlock};
use crate::range::owner::{Owner, Refusal};
use std::panic::Location;

/// One request, as its lock kind takes part in its steps.
pub(in crate::range) trait Acquisition {
    /// Proof of the acquisition.
    type Token;

    /// The holder or rival in the way, with all that is needed to check it. Dropped before the thread sleeps.
    type Blocker;

    /// Tries once to get the whole range. Unless it is granted, nothing stays behind that blocks other requests.
    fn attempt(&mut self) -> Attempt<Self::Token, Self::Blocker>;

    /// How the blocker stands now. The thread spins on this.
    fn look(&self, blocker: &Self::Blocker) -> Standing;

    /// Whether this very thread holds the blocker, so that waiting for it would never end. Debug builds ask this.
    fn deadlock_with(&self, blocker: &Self::Blocker) -> Option<SelfDeadlock>;

    /// Marks the blocker, so that it calls [`Queue::holders_left`](super::Queue::holders_left) when it leaves. `None`:
    /// it is no longer in the way. Called under the queue's mutex.
    fn mark(&self, blocker: &Self::Blocker) -> Option<Holder>;

    /// All that this thread holds in the lock. No walk is under way.
    ///
    /// A range may be missing while the thread exits, if the guard is in a thread-local that is destroyed late.
    fn held(&self) -> Vec<Request>;

    /// The holder that `sleeper`, which slept behind this request, sleeps behind now that this request is granted.
    /// The release by the token will find that somebody sleeps. Called under the queue's mutex.
    fn adopt(&self, token: &mut Self::Token, sleeper: &Request) -> HolderId;
}

/// How a blocker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) enum Standing {
    /// It is not in the way any more.
    Gone,
    /// It is a rival that may withdraw.
    Undecided,
    Stays,
    /// It stays, and the attempt has waited for it. The thread does not spin again.
    Outlasts,
}

/// The result of one attempt.
pub(in crate::range) enum Attempt<T, B> {
    Granted(T),
    Blocked(B),
    /// Other requests were faster again and again. None of them needs to conflict with this one.
    Overtaken,
}

/// The holder that a request goes to sleep behind.
pub(in crate::range) struct Holder {
    pub(in crate::range) id: HolderId,
    pub(in crate::range) request: Request,
    /// Where it has locked, if that is known.
    pub(in crate::range) at: Option<&'static Location<'static>>,
}

/// When a request gets its reservation, once that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) enum Reserves {
    /// When it finds its range taken again. This suits locks in which every blocker wakes its sleepers.
    WhenWoken,
    /// Also while it sleeps: blockers may come and go in turn, so that nothing ever wakes the sleeper.
    WhileAsleep,
}

/// Why a request ends without its range.
pub(in crate::range) enum Refused {
    OutOfTime,
    /// Its owner was cancelled.
    Cancelled,
    /// It and another request would wait for each other: both are of owners that share what the other wants alone.
    OtherUpgrade,
    /// In a box, so that the results of all requests stay small.
    SelfDeadlock(Box<SelfDeadlock>),
    /// It is part of a deadlock, and its lock refuses one of those.
    Deadlock(Box<Deadlock>),
}

impl Refused {
    /// The answer to the caller: a token, or `None`.
    ///
    /// # Panics
    /// When the thread would have waited for itself.
    #[track_caller]
    pub(in crate::range) fn answer<T>(outcome: Result<T, Self>) -> Option<T> {
        match outcome {
            Ok(token) => Some(token),
            // Only owners are cancelled or refused, and only owners upgrade.
            Err(Self::OutOfTime | Self::Cancelled | Self::OtherUpgrade | Self::Deadlock(_)) => None,
            Err(Self::SelfDeadlock(deadlock)) => panic_for(&deadlock),
        }
    }

    /// The answer to an owner.
    ///
    /// # Errors
    /// Why it is refused.
    ///
    /// # Panics
    /// When the owner would have waited for itself.
    #[track_caller]
    pub(in crate::range) fn answer_owner<T>(
        outcome: Result<T, Self>,
        owner: &Owner,
    ) -> Result<T, Refusal> {
        // No closure: it would be the caller.
        match outcome {
            Ok(token) => Ok(token),
            Err(Self::OutOfTime) => Err(Refusal::Busy),
            Err(Self::Cancelled) => Err(Refusal::Cancelled),
            Err(Self::OtherUpgrade) => Err(Refusal::OtherUpgrade),
            Err(Self::Deadlock(deadlock)) => {
                owner.note_deadlock(*deadlock);
                Err(Refusal::Deadlock)
            }
            Err(Self::SelfDeadlock(deadlock)) => panic_for(&deadlock),
        }
    }
}

#[cold]
#[track_caller]
fn panic_for(deadlock: &SelfDeadlock) -> ! {
    let _uncancelled = prim::thread::Uncancelled::new(); // The panic is written to a file.
    panic!("{deadlock}");
}
