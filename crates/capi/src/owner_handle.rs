//! An owner, as a program has it, and what it holds.
//!
//! What an owner holds any thread may use. So its tables are under a mutex: one for each kind of lock. Nobody waits for
//! a range under the mutex. A thread that changes what a token stands for takes it out of its place meanwhile, and
//! others that come with the same token are refused.

use crate::answer::{Answer, Refused, ensure};
use crate::copies::{Copy, Handle};
use crate::exports::types::{OWNER, Token};
use crate::key_handle::KeyHandle;
use crate::range_handle::RangeHandle;
use crate::ranged::Ranged;
use crate::sanitizer;
use crate::tables::{Table, Ticket};
use libc::{EBUSY, EINVAL};
use prim::sync::Mutex;
use spanlock::range::{Holding, Owner};

/// What an owner holds of a lock.
pub(crate) type Held<L> = Holding<<L as Ranged>::Place>;

/// Somebody who holds ranges and is no thread. It lives on the heap, and is known by its address.
#[repr(C)] // Another copy of the library, of another version, finds the first word.
pub struct OwnerHandle {
    copy: Copy,
    pub(crate) owner: Owner,
    tables: Mutex<Tables>,
}

/// What an owner holds, by the kind of the lock.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) positions: Table<Held<RangeHandle>>,
    pub(crate) keys: Table<Held<KeyHandle>>,
}

impl Handle for OwnerHandle {
    fn copy(&self) -> &Copy {
        &self.copy
    }
}

/// What a token stands for, out of its place. It comes back when this is dropped, also by a panic.
struct Taken<'a, L: Ranged> {
    owner: &'a OwnerHandle,
    ticket: Ticket,
    held: Option<Held<L>>,
}

impl<L: Ranged> Drop for Taken<'_, L> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            L::table(&mut self.owner.tables.lock()).put_back(self.ticket, held);
        }
    }
}

/// What a token of an owner tells of a table.
fn ticket(token: Token) -> Answer<Ticket> {
    match token.parts() {
        (OWNER, ticket) => Ok(ticket),
        _ => Err(Refused::by(EINVAL)),
    }
}

impl OwnerHandle {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            copy: Copy::this(0),
            owner,
            tables: Mutex::default(),
        }
    }

    /// The owner's life ends. `EBUSY` if it holds or asks for a range.
    pub(crate) fn end(&self) -> Answer {
        ensure(self.owner.asks_or_holds() == 0, EBUSY)?;
        self.copy.end();
        Ok(())
    }

    /// Notes what the owner has acquired.
    pub(crate) fn note<L: Ranged>(&self, lock: &L, held: Held<L>) -> Token {
        Token::new(OWNER, L::table(&mut self.tables.lock()).note(lock, held))
    }

    /// Forgets what was acquired, and returns it, to be released. `EINVAL` if that was released, or is of another owner
    /// or in another lock; `EBUSY` if another thread uses it.
    pub(crate) fn forget<L: Ranged>(&self, lock: &L, token: Token) -> Answer<Held<L>> {
        L::table(&mut self.tables.lock()).forget(lock, ticket(token)?)
    }

    /// Calls `f` with what a token stands for. Errors as of [`forget`](Self::forget).
    pub(crate) fn with<L: Ranged>(
        &self,
        lock: &L,
        token: Token,
        f: impl FnOnce(&mut Held<L>) -> Answer,
    ) -> Answer {
        let ticket = ticket(token)?;
        let held = L::table(&mut self.tables.lock()).take(lock, ticket)?;
        let mut taken = Taken::<L> {
            owner: self,
            ticket,
            held: None,
        };
        f(taken.held.insert(held))
    }

    /// Releases all that was acquired, in all locks. `EBUSY` if another thread uses some of it: that stays, and nothing
    /// else.
    pub(crate) fn release_all(&self) -> Answer {
        let mut tables = self.tables.lock();
        let (positions, some_in_use) = tables.positions.forget_all();
        let (keys, more_in_use) = tables.keys.forget_all();
        drop(tables);
        release(positions);
        release(keys);
        ensure(!some_in_use && !more_in_use, EBUSY)
    }

    /// Whether something that the owner holds of a lock is so. What a thread has just taken out of its place does not
    /// count.
    #[cold] // A request has been refused once.
    pub(crate) fn has_one<L: Ranged>(&self, lock: &L, is_so: impl FnMut(&Held<L>) -> bool) -> bool {
        L::table(&mut self.tables.lock()).held(lock).any(is_so)
    }
}

fn release<H>(all: Vec<(*const (), H)>) {
    for (lock, held) in all {
        sanitizer::released(lock);
        drop(held);
    }
}
