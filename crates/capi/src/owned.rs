//! An owner, and what it holds.
//!
//! What an owner holds any thread may use. So it is in a table of the owner's, under a mutex, and a token names a place
//! in that table and a ticket that was never used before:
//!
//! ```text
//!   token                                    table of the owner
//!   +----------+---------+-----------+       place   ticket   lock    holding
//!   | an owner | place 1 | ticket 93 |       0       92       L       a range, exclusive
//!   +----------+---------+-----------+       1       93       L       two ranges, of two modes
//!                                            2       94       M       a thread converts it
//! ```
//!
//! Nobody waits for a range under the mutex. A thread that changes what a token stands for takes it out of its place
//! meanwhile, and others that come with the same token are refused.

use crate::answer::{Answer, Refused, ensure};
use crate::copies::Copy;
use crate::handle::Handle;
use crate::holds::{Asked, Token};
use crate::memory::given;
use libc::{EBUSY, EINVAL};
use prim::atomic::{AtomicU64, Ordering};
use prim::sync::{Mutex, MutexGuard};
use spanlock::range::{self, Owner, RangeLock};
use std::ops::Range;
use std::{mem, ptr};

/// What an owner holds of a lock. `'static` stands for the life of the lock, which lives as long as it is held.
pub(crate) type Holding = range::Holding<&'static RangeLock>;

/// Somebody who holds ranges and is no thread. It lives on the heap, and is known by its address.
#[repr(C)] // Another copy of the library, of another version, finds the first word.
pub struct OwnerHandle {
    copy: Copy,
    pub(crate) owner: Owner,
    table: Mutex<Table>,
}

/// What the owner holds.
#[derive(Default)]
struct Table {
    places: Vec<Place>,
    /// The place to use next: a free one, or the one after the last.
    free: u32,
    /// Tickets that no owner has used.
    tickets: Range<u64>,
}

struct Place {
    /// Zero, if the place is free.
    ticket: u64,
    lock: *const Handle,
    content: Content,
}

enum Content {
    /// Nothing. The next place that is free.
    Free(u32),
    Holding(Holding),
    /// A thread has what is here, and brings it back.
    InUse,
}

impl Table {
    fn note(&mut self, lock: &Handle, holding: Holding) -> Token {
        let at = self.free;
        let ticket = self.tickets.next().unwrap_or_else(|| {
            self.tickets = fresh_tickets();
            self.tickets.next().expect("there are some")
        });
        let place = Place {
            ticket,
            lock: ptr::from_ref(lock),
            content: Content::Holding(holding),
        };
        if let Some(old) = self.places.get_mut(at as usize) {
            if let Content::Free(next) = mem::replace(old, place).content {
                self.free = next;
            }
        } else {
            self.free = at
                .checked_add(1)
                .expect("an owner has fewer than 2^32 tokens");
            self.places.push(place);
        }
        Token::of_owner(at, ticket)
    }

    /// What a token stands for. `EINVAL` if that was released, or is of another owner or in another lock; `EBUSY` if
    /// another thread has it.
    fn find(&mut self, lock: &Handle, token: Token) -> Answer<(u32, &mut Place)> {
        let (at, ticket) = token.owned().ok_or(Refused::by(EINVAL))?;
        let place = self
            .places
            .get_mut(at as usize)
            .ok_or(Refused::by(EINVAL))?;
        let is_here = place.ticket == ticket && ticket != 0 && ptr::eq(place.lock, lock);
        ensure(is_here, EINVAL)?;
        ensure(matches!(place.content, Content::Holding(_)), EBUSY)?;
        Ok((at, place))
    }

    /// Frees a place, and returns what was there.
    fn free(&mut self, at: u32) -> Content {
        let place = &mut self.places[at as usize];
        place.ticket = 0;
        mem::replace(
            &mut place.content,
            Content::Free(mem::replace(&mut self.free, at)),
        )
    }
}

/// Tickets for an owner. Zero is none.
fn fresh_tickets() -> Range<u64> {
    /// So that most acquisitions touch nothing that owners share, and an owner wastes few.
    const SOME: u64 = 256;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let first = NEXT.fetch_add(SOME, Ordering::Relaxed);
    first..first + SOME
}

/// What a token stands for, out of its place. It comes back when this is dropped, also by a panic.
struct Taken<'a> {
    owner: &'a OwnerHandle,
    at: u32,
    holding: Option<Holding>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(holding) = self.holding.take() {
            let mut table = self.owner.table();
            table.places[self.at as usize].content = Content::Holding(holding);
        }
    }
}

impl OwnerHandle {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            copy: Copy::this(0),
            owner,
            table: Mutex::default(),
        }
    }

    /// The owner at that address. `EINVAL` if there is none, and `EXDEV` if it is another copy's.
    ///
    /// # Safety
    /// The pointer is null, or leads to an owner that lives for `'a`.
    pub(crate) unsafe fn at<'a>(pointer: *const Self) -> Answer<&'a Self> {
        // SAFETY: the caller's promise.
        let owner = unsafe { given(pointer) }?;
        owner.copy.check()?;
        Ok(owner)
    }

    /// The owner's life ends. `EBUSY` if it holds or asks for a range.
    pub(crate) fn end(&self) -> Answer {
        ensure(self.owner.asks_or_holds() == 0, EBUSY)?;
        self.copy.end();
        Ok(())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Notes what the owner has acquired.
    pub(crate) fn note(&self, lock: &Handle, holding: Holding) -> Token {
        self.table().note(lock, holding)
    }

    /// Forgets what was acquired, and returns it, to be released.
    pub(crate) fn forget(&self, lock: &Handle, token: Token) -> Answer<Holding> {
        let mut table = self.table();
        let (at, _) = table.find(lock, token)?;
        match table.free(at) {
            Content::Holding(holding) => Ok(holding),
            Content::Free(_) | Content::InUse => Err(Refused::by(EINVAL)), // `find` has said that it is not.
        }
    }

    /// Calls `f` with what a token stands for.
    pub(crate) fn with<R>(
        &self,
        lock: &Handle,
        token: Token,
        f: impl FnOnce(&mut Holding) -> Answer<R>,
    ) -> Answer<R> {
        let mut table = self.table();
        let (at, place) = table.find(lock, token)?;
        let Content::Holding(holding) = mem::replace(&mut place.content, Content::InUse) else {
            return Err(Refused::by(EINVAL)); // As above.
        };
        drop(table);
        let mut taken = Taken {
            owner: self,
            at,
            holding: None,
        };
        f(taken.holding.insert(holding))
    }

    /// Forgets all that was acquired, in all locks, and calls `f` with each, to release it. `EBUSY` if another thread
    /// has some of it: that stays, and nothing else.
    pub(crate) fn forget_all(&self, mut f: impl FnMut(*const Handle, Holding)) -> Answer {
        let mut held = Vec::new();
        let mut answer = Ok(());
        let mut table = self.table();
        for at in 0..table.places.len() {
            match table.places[at].content {
                Content::Free(_) => {}
                Content::InUse => answer = Err(Refused::by(EBUSY)),
                Content::Holding(_) => {
                    let lock = table.places[at].lock;
                    let at = u32::try_from(at).expect("a table has fewer places");
                    if let Content::Holding(holding) = table.free(at) {
                        held.push((lock, holding));
                    }
                }
            }
        }
        drop(table);
        for (lock, holding) in held {
            f(lock, holding);
        }
        answer
    }

    /// Whether the owner itself holds something in the way of a request, so that it would wait for ever. What a thread
    /// has just taken out of its place does not count.
    #[cold] // The request has been refused once.
    pub(crate) fn conflicts(&self, lock: &Handle, asked: Asked) -> bool {
        let table = self.table();
        let held = table
            .places
            .iter()
            .filter(|place| ptr::eq(place.lock, lock));
        held.filter_map(|place| match &place.content {
            Content::Holding(holding) => Some(holding),
            Content::Free(_) | Content::InUse => None,
        })
        .flat_map(Holding::pieces)
        .any(|(span, mode)| Asked { span, mode }.conflicts(asked))
    }
}
