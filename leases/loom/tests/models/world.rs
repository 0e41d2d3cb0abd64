//! What the models share: a machine with blocks, and an oracle of what was released.

use prim::atomic::{AtomicBool, Ordering};
use prim::cell::UnsafeCell;
use prim::thread::{self, JoinHandle};
use spanlock::range::raw::{Mode, RawRangeLock};
use spanlock::range::slots::RawSlots;
use spanlock::range::{RangeLock, ReadGuard, Span, WriteGuard};
use spanlock_lease_loom::{Block, Blocks, Drains, Gate, Leased};
use spanlock_testkit_loom::holders::Holders;
use spanlock_testkit_loom::range::finish;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

/// Positions of the resource, and blocks that a model may have.
const POSITIONS: usize = 4;
const BLOCKS: usize = 3;

/// The range lock of a machine.
pub trait Inside: Drains + 'static {
    type Raw: RawRangeLock;

    fn lock(&self) -> &RangeLock<Self::Raw>;
}

impl Inside for Arc<RangeLock> {
    type Raw = RawSlots;

    fn lock(&self) -> &RangeLock {
        self
    }
}

/// The lock of few steps. Its task polls once in vain where it has to wait, and may be dropped then.
pub struct Few(RangeLock<Holders>);

impl Few {
    pub fn new() -> Self {
        Self(RangeLock::from_raw(Holders::new()))
    }
}

// SAFETY: it is locked as a whole once.
unsafe impl Drains for Few {
    async fn drain(&self, span: Span) {
        let range = || span.start()..=span.last();
        let mut polls = 0;
        let drained = poll_fn(|context| {
            polls += 1;
            match polls {
                1 if self.0.try_write(range()).is_none() => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                1 => Poll::Ready(()),
                _ => {
                    drop(self.0.write(range()));
                    Poll::Ready(())
                }
            }
        });
        drained.await;
    }
}

impl Inside for Few {
    type Raw = Holders;

    fn lock(&self) -> &RangeLock<Holders> {
        &self.0
    }
}

/// What keeps a range until it is dropped.
enum Hold<'a, R: RawRangeLock> {
    Shared(ReadGuard<'a, R>),
    Exclusive(WriteGuard<'a, R>),
}

fn hold<L: Inside>(inside: &L, span: Span, mode: Mode) -> Hold<'_, L::Raw> {
    let range = span.start()..=span.last();
    match mode {
        Mode::Shared => Hold::Shared(inside.lock().read(range)),
        Mode::Exclusive => Hold::Exclusive(inside.lock().write(range)),
    }
}

/// A lease. Its fence is its number.
pub struct Token {
    number: usize,
    span: Span,
    gate: Arc<Gate>,
}

impl Leased for Token {
    type Fence = usize;

    fn span(&self) -> Span {
        self.span
    }

    fn mode(&self) -> Mode {
        Mode::Exclusive
    }

    fn fence(&self) -> usize {
        self.number
    }

    fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }
}

/// What machines lock, in cells whose accesses loom checks, and the leases that there have been.
pub struct Resource {
    positions: [UnsafeCell<()>; POSITIONS],
    /// Whether each was released.
    released: [UnsafeCell<bool>; BLOCKS],
    /// No block is freed, so that a mutant finds one that it must not find, and not freed memory.
    blocks: [OnceLock<Arc<Block<Token>>>; BLOCKS],
}

// SAFETY: loom checks the accesses to the cells, which is what they are for.
unsafe impl Sync for Resource {}

impl Resource {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            positions: prim::array![UnsafeCell::new(()); POSITIONS],
            released: prim::array![UnsafeCell::new(false); BLOCKS],
            blocks: prim::array![OnceLock::new(); BLOCKS],
        })
    }

    pub fn block(&self, number: usize) -> &Arc<Block<Token>> {
        self.blocks[number].get().expect("it was brought")
    }

    /// A lease of a range, which a machine gets.
    pub fn bring(&self, number: usize, span: Span) -> (&Arc<Block<Token>>, Arc<Gate>) {
        let gate = Gate::new();
        let token = Token {
            number,
            span,
            gate: Arc::clone(&gate),
        };
        let block = self.blocks[number].get_or_init(|| Arc::new(Block::new(token)));
        (block, gate)
    }

    /// Somebody holds the range, and has found the block.
    fn is_used(&self, block: &Block<Token>, span: Span, mode: Mode) {
        let covers = block.span.start() <= span.start() && span.last() <= block.span.last();
        assert!(covers, "a block of another range is found");
        // One is this world's. Whoever gives the block up has it by reference.
        let keepers = Arc::strong_count(self.block(block.fence));
        assert!(keepers > 1, "a block that nobody keeps is used");
        // SAFETY: loom reports the race, if there is one.
        let released = self.released[block.fence].with(|released| unsafe { *released });
        assert!(!released, "a block that was released is used");
        for position in span.start()..=span.last() {
            let position = &self.positions[position as usize];
            match mode {
                Mode::Shared => position.with(|_| ()),
                Mode::Exclusive => position.with_mut(|_| ()),
            }
        }
    }

    /// Others have its range from now on, and write all of it.
    pub fn release(&self, token: Token) {
        self.released[token.number].with_mut(|released| {
            // SAFETY: as above.
            unsafe { *released = true };
        });
        for position in token.span.start()..=token.span.last() {
            self.positions[position as usize].with_mut(|_| ());
        }
    }

    pub fn is_released(&self, number: usize) -> bool {
        // SAFETY: as above.
        self.released[number].with(|released| unsafe { *released })
    }
}

/// A machine, and the resource that it has blocks of.
pub struct World<L> {
    pub resource: Arc<Resource>,
    pub blocks: Blocks<L, Token>,
    has_stopped: AtomicBool,
}

pub fn span(range: std::ops::Range<u64>) -> Span {
    Span::of(range).expect("it is not empty")
}

impl<L: Inside> World<L> {
    pub fn new(lock: L) -> Arc<Self> {
        Self::of(Resource::new(), lock)
    }

    pub fn of(resource: Arc<Resource>, lock: L) -> Arc<Self> {
        Arc::new(Self {
            resource,
            blocks: Blocks::new(lock, 2),
            has_stopped: AtomicBool::new(false),
        })
    }

    /// Brings a block. Its gate.
    pub fn bring(&self, number: usize, range: std::ops::Range<u64>) -> Arc<Gate> {
        let (block, gate) = self.resource.bring(number, span(range));
        self.blocks.add(Arc::clone(block));
        gate
    }

    /// Holds a range and uses the block that covers it, if there is one.
    pub fn hit(&self, range: std::ops::Range<u64>, mode: Mode) -> bool {
        let span = span(range);
        let hold = |inside| hold(inside, span, mode);
        // SAFETY: the guard holds the range.
        let Some((held, block)) = (unsafe { self.blocks.enter(span, mode, hold) }) else {
            return false;
        };
        // SAFETY: no block of a model is freed.
        let block = unsafe { block.as_ref() };
        self.resource.is_used(block, span, mode);
        // Who gives up may stop between the two looks.
        self.has_stopped.load(Ordering::Relaxed);
        self.resource.is_used(block, span, mode);
        drop(held);
        true
    }

    /// As who writes.
    pub fn write(&self, range: std::ops::Range<u64>) -> bool {
        self.hit(range, Mode::Exclusive)
    }

    /// Gives a block up, to the end. Whether that was what released it.
    pub fn give_up(&self, number: usize) -> bool {
        let mut giving_up = pin!(self.blocks.give_up(self.resource.block(number)));
        let token = finish(|waker| giving_up.as_mut().poll(&mut Context::from_waker(waker)));
        let is_ours = token.is_some();
        token
            .into_iter()
            .for_each(|token| self.resource.release(token));
        is_ours
    }

    /// Gives a block up, and stops where that has to wait.
    pub fn begin_to_give_up(&self, number: usize) {
        let mut giving_up = Box::pin(self.blocks.give_up(self.resource.block(number)));
        let polled = giving_up
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Some(token)) = polled {
            self.resource.release(token);
        }
        drop(giving_up);
        self.has_stopped.store(true, Ordering::Relaxed);
    }

    /// Gives up all blocks that there are.
    pub fn give_up_all(&self) {
        for block in self.blocks.all() {
            let number = block.fence;
            drop(block);
            self.give_up(number);
        }
    }

    /// Runs `f` in a thread of its own.
    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> JoinHandle<R> {
        let world = Arc::clone(self);
        thread::spawn(move || f(&world))
    }
}
