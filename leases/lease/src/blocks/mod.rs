//! The blocks of a cache: how they are found, and how they are given up.
//!
//! All of them are in a list, under a mutex. Those that were found lately are in [*slots*](slot) as well, which are
//! read without it: where a range begins says in which slot it is looked for, and the slot says which positions its
//! block covers.
//!
//! # Why what is found may be used
//! Who looks has the range in the machine's range lock by then, and keeps it while the block is used
//! (**looks-inside**). A block is taken off the list (**newcomers-stopped**) and out of the slots (**slots-emptied**)
//! before its whole span is locked (**holders-drained**), and is released and freed only then. So whoever had the range
//! before the drain keeps it waiting, and whoever has it after finds the block no more: the range lock puts one before
//! the other. Slots change under the mutex of the list (**slots-locked**), so none gets a block that was taken off.
//!
//! Whoever gives a block up may stop in the middle, as futures may be dropped. Until the drain is over the list of
//! those that are *leaving* keeps the block (**leaving-kept**), for those who hold parts of it and for whoever gives it
//! up next (**leaving-listed**). Of several who give up a block, one gets its token.
//!
//! # What is lost
//! A lease that is lost closes its gate, and its users are told only then (**closed-first**). Who begins looks at the
//! gate (**gate-asked**). So who was told, and whoever heard of it from him, begins nothing under it. Those who have
//! begun are not waited for: others may have the range already.
//!
//! The source says `prim`, and names nothing of the rest of the package. So `spanlock-lease-loom` compiles it for the
//! model checker.

mod gate;
mod slot;

pub use gate::{Gate, IsOpen};

use prim::sync::{Arc, Mutex, MutexGuard};
use slot::Slot;
use spanlock::range::raw::Mode;
use spanlock::range::{RangeLock, Span};
use std::ptr::{self, NonNull};

/// What a block is a lease of.
pub trait Leased {
    /// What tells its grants apart.
    type Fence;

    /// Its range.
    fn span(&self) -> Span;

    /// How it is held.
    fn mode(&self) -> Mode;

    /// The fence of this grant.
    fn fence(&self) -> Self::Fence;

    /// What is closed when it is lost.
    fn gate(&self) -> &Arc<Gate>;
}

/// A range lock, by which the threads and tasks of a machine share its blocks.
///
/// # Safety
/// When the future of [`drain`](Self::drain) is over, nobody holds any of the span who held it when the future was
/// made, and what they did is seen. Whoever holds some of it afterwards sees what was done before that.
pub unsafe trait Drains {
    /// Waits until those who hold some of the span have ended.
    fn drain(&self, span: Span) -> impl Future<Output = ()> + Send;
}

// SAFETY: it is locked as a whole once, so each that overlaps is before or after that, and the lock orders them.
unsafe impl Drains for Arc<RangeLock> {
    async fn drain(&self, span: Span) {
        drop(self.write_owned_async(span.start()..=span.last()).await);
    }
}

/// A lease that the threads and tasks of a machine share.
pub struct Block<T: Leased> {
    token: Mutex<Option<T>>,
    /// Its range.
    pub span: Span,
    mode: Mode,
    /// Its fence.
    pub fence: T::Fence,
    gate: Arc<Gate>,
}

impl<T: Leased> Block<T> {
    /// Of a token.
    #[must_use]
    pub fn new(token: T) -> Self {
        Self {
            span: token.span(),
            mode: token.mode(),
            fence: token.fence(),
            gate: Arc::clone(token.gate()),
            token: Mutex::new(Some(token)),
        }
    }

    /// Whether work under it may begin.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    /// Whether work of this mode may begin under it.
    #[inline]
    fn allows(&self, mode: Mode) -> bool {
        // [gate-asked]
        let may_begin = self.is_open() || !prim::intact!("gate-asked");
        may_begin && (mode == Mode::Shared || self.mode == Mode::Exclusive)
    }

    fn covers(&self, span: Span) -> bool {
        self.span.start() <= span.start() && span.last() <= self.span.last()
    }
}

/// So many blocks are found without the mutex, unless two of them have the same slot.
const SLOTS: usize = prim::sized(256, 2);

/// The blocks that a machine has, and the lock by which it shares them.
pub struct Blocks<L, T: Leased> {
    inside: L,
    list: Mutex<List<T>>,
    slots: Box<[Slot<Block<T>>; SLOTS]>,
    k: u32,
}

struct List<T: Leased> {
    /// Those that may be found.
    known: Vec<Arc<Block<T>>>,
    /// Those that are given up, until their holders have ended.
    leaving: Vec<Arc<Block<T>>>,
}

impl<L: Drains, T: Leased> Blocks<L, T> {
    /// None. They have up to `2^k` positions, with `k` at most 63.
    #[must_use]
    pub fn new(inside: L, k: u32) -> Self {
        Self {
            inside,
            list: Mutex::new(List {
                known: Vec::new(),
                leaving: Vec::new(),
            }),
            slots: Box::new(prim::array![Slot::new(); SLOTS]),
            k: k.min(63),
        }
    }

    /// Blocks have up to `2^k` positions.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The range lock of the machine.
    #[inline]
    pub fn inside(&self) -> &L {
        &self.inside
    }

    fn list(&self) -> MutexGuard<'_, List<T>> {
        self.list.lock()
    }

    /// All, also those that are being given up: whoever began that may have stopped.
    pub fn all(&self) -> Vec<Arc<Block<T>>> {
        let list = self.list();
        // [leaving-listed]
        let leaving = list
            .leaving
            .iter()
            .filter(|_| prim::intact!("leaving-listed"));
        list.known.iter().chain(leaving).cloned().collect()
    }

    /// How many may be found.
    pub fn count(&self) -> usize {
        self.list().known.len()
    }

    /// Holds a range, and looks for a block that covers it and allows the mode. The block lives as long as the range is
    /// held. If there is none, nothing is held any more.
    ///
    /// # Safety
    /// What `hold` returns holds the range in the lock, in that mode, and was not asked for before this call unless it
    /// was granted before.
    #[inline]
    pub unsafe fn enter<'a, H>(
        &'a self,
        span: Span,
        mode: Mode,
        hold: impl FnOnce(&'a L) -> H,
    ) -> Option<(H, NonNull<Block<T>>)> {
        // [looks-inside] The mutant looks before the range is held.
        // SAFETY: what the mutant does is wrong.
        let early = (!prim::intact!("looks-inside")).then(|| unsafe { self.find(span, mode) });
        let held = hold(&self.inside);
        // SAFETY: it is held.
        let found = early.unwrap_or_else(|| unsafe { self.find(span, mode) });
        Some((held, NonNull::new(found?.cast_mut())?))
    }

    /// A block that covers the range and allows the mode.
    ///
    /// # Safety
    /// Some of the range has been held since before the call, in the machine's lock.
    #[inline]
    unsafe fn find(&self, span: Span, mode: Mode) -> Option<*const Block<T>> {
        let slot = self.slot(span);
        // SAFETY: it covers what is held, so its drain waits for us, or was before us and had emptied the slot.
        let is_good = |block: &*const Block<T>| unsafe { (**block).allows(mode) };
        match slot.find(span).filter(is_good) {
            None => self.find_in_list(span, mode, slot),
            found => found,
        }
    }

    #[inline]
    fn slot(&self, span: Span) -> &Slot<Block<T>> {
        // What is cut off has no influence on the rest.
        &self.slots[(span.start() >> self.k) as usize % SLOTS]
    }

    /// And has it found without the list from now on.
    #[cold]
    fn find_in_list(
        &self,
        span: Span,
        mode: Mode,
        slot: &Slot<Block<T>>,
    ) -> Option<*const Block<T>> {
        let list = self.list();
        let is_good = |block: &&Arc<Block<T>>| block.covers(span) && block.allows(mode);
        let block = list.known.iter().find(is_good)?;
        let (covered, found) = (block.span, Arc::as_ptr(block));
        // [slots-locked] The mutant lets go of the mutex before.
        let _held = prim::intact!("slots-locked").then_some(list);
        slot.set(covered, found);
        Some(found)
    }

    /// Whether there is a block for the range and the mode.
    pub fn has(&self, span: Span, mode: Mode) -> bool {
        let is_good = |block: &Arc<Block<T>>| block.covers(span) && block.allows(mode);
        self.list().known.iter().any(is_good)
    }

    /// It may be found.
    pub fn add(&self, block: Arc<Block<T>>) {
        self.list().known.push(block);
    }

    /// Gives up a block: when those who hold parts of it have ended, its token is the caller's to release, unless
    /// somebody else has it already. If the future is dropped before, the block is not found any more, and may be given
    /// up again.
    pub async fn give_up(&self, block: &Arc<Block<T>>) -> Option<T> {
        self.remove(block);
        // [holders-drained]
        if prim::intact!("holders-drained") {
            self.inside.drain(block.span).await;
        }
        self.drained(block);
        block.token.lock().take()
    }

    /// It is found no more.
    fn remove(&self, block: &Arc<Block<T>>) {
        let mut list = self.list();
        let List { known, leaving } = &mut *list;
        // [newcomers-stopped]
        if prim::intact!("newcomers-stopped") {
            let removed = known.extract_if(.., |other| Arc::ptr_eq(other, block));
            // [leaving-kept]
            leaving.extend(removed.filter(|_| prim::intact!("leaving-kept")));
        }
        let holds = |slot: &&Slot<_>| slot.has(Arc::as_ptr(block));
        for slot in self.slots.iter().filter(holds) {
            // [slots-emptied]
            if prim::intact!("slots-emptied") {
                slot.set(block.span, ptr::null());
            }
        }
    }

    /// Those who held parts of it when it was removed have ended.
    fn drained(&self, block: &Arc<Block<T>>) {
        self.list()
            .leaving
            .retain(|other| !Arc::ptr_eq(other, block));
    }
}
