//! Ranges that a machine keeps while no other machine wishes for them.
//!
//! A *hit* finds a token that covers its range, locks the range in the machine's own range lock, and looks once more
//! whether the token is still good. A *miss* asks the engine for the block around its range, one miss at a time for
//! each block. When another machine wishes for a token, a task of the keeper gives it up: it takes the token off the
//! list, so no newcomer finds it (newcomers-stopped), locks its whole span in the machine's lock, so that those who
//! hold parts of it have ended (holders-drained), and releases it. Whoever found the token before and locked after
//! looks again, and finds it closed (looks-again).

use crate::token::Gate;
use crate::{Fence, Lost, Mode, RangeLease, Refused, Span, Token, Wanted};
use spanlock::range::{Holding, RangeLock};
use std::fmt;
use std::ops::RangeBounds;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Leases of blocks, which the threads and tasks of a machine share by a range lock.
///
/// An acquisition within a block that the machine has costs no round trip. A block is kept, and renewed, until another
/// machine wishes for a part of it, or [`give_up`](Self::give_up) is called.
///
/// # When not to use it
/// - Machines take turns at the same ranges: then each turn costs the round trips of giving up as well.
/// - A thread or task asks for a range while it holds another one of the same cache. The second may need a block that
///   is given up only when the first one ends, so the two wait for each other. One request for all is safe.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    lease: RangeLease,
    ttl: Duration,
    /// Blocks have up to `2^k` positions.
    k: u32,
    blocks: Mutex<Vec<Arc<Block>>>,
    /// Who holds what within the machine.
    inside: Arc<RangeLock>,
    /// Misses of one block wait for each other.
    misses: RangeLock,
}

/// A token, and whether it is being given up.
#[derive(Debug)]
struct Block {
    token: Mutex<Option<Token>>,
    span: Span,
    mode: Mode,
    fence: Fence,
    gate: Arc<Gate>,
    leaves: AtomicBool,
}

impl Block {
    /// Whether work may begin under it.
    fn is_good(&self) -> bool {
        // Whoever has the range in the machine's lock comes before or after the drain, and sees what was before that.
        !self.leaves.load(Ordering::Relaxed) && self.gate.is_open()
    }

    fn covers(&self, span: Span, mode: Mode) -> bool {
        let (start, last) = (self.span.start(), self.span.last());
        start <= span.start()
            && span.last() <= last
            && (self.mode == mode || self.mode == Mode::Exclusive)
    }
}

impl Cache {
    /// Over leases of a resource. Blocks have up to `2^k` positions, and are leased for `ttl`.
    #[must_use]
    pub fn new(lease: RangeLease, k: u32, ttl: Duration) -> Self {
        Self(Arc::new(Inner {
            lease,
            ttl,
            k: k.min(63),
            blocks: Mutex::default(),
            inside: Arc::new(RangeLock::new()),
            misses: RangeLock::new(),
        }))
    }

    /// Acquires a range, for a task of any executor.
    ///
    /// # Errors
    /// When the engine refuses, or the range is empty.
    ///
    /// # Panics
    /// When the range starts after it ends.
    pub async fn lock(&self, range: impl RangeBounds<u64>, mode: Mode) -> Result<Cached, Refused> {
        let span = Span::of(range).ok_or(Refused::Empty)?;
        loop {
            if let Some(block) = self.0.find(span, mode) {
                if let Some(cached) = self.0.enter(block, span, mode).await {
                    return Ok(cached);
                }
                continue;
            }
            let around = self.0.around(span);
            let _one_at_a_time = self
                .0
                .misses
                .write_async(around.start()..=around.last())
                .await;
            // Another miss may have brought it.
            if self.0.find(span, mode).is_none() {
                let range = span.start()..=span.last();
                let token = self
                    .0
                    .lease
                    .acquire(range, mode, self.0.ttl)
                    .grown(self.0.k)
                    .await?;
                self.0.add(token);
            }
        }
    }

    /// As [`lock`](Self::lock), for a thread.
    ///
    /// # Errors
    /// When the engine refuses, or the range is empty.
    ///
    /// # Panics
    /// When the range starts after it ends.
    pub fn lock_blocking(
        &self,
        range: impl RangeBounds<u64>,
        mode: Mode,
    ) -> Result<Cached, Refused> {
        block_on(self.lock(range, mode))
    }

    /// Gives up all blocks, when those who hold parts of them have ended.
    pub async fn give_up(&self) {
        let blocks = self.0.blocks().clone();
        for block in blocks {
            self.0.give_up(&block).await;
        }
    }

    /// How many blocks the machine has.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.0.blocks().len()
    }
}

impl Inner {
    fn blocks(&self) -> MutexGuard<'_, Vec<Arc<Block>>> {
        self.blocks.lock().expect("no panic while held")
    }

    fn find(&self, span: Span, mode: Mode) -> Option<Arc<Block>> {
        let blocks = self.blocks();
        let good = |block: &&Arc<Block>| block.covers(span, mode) && block.is_good();
        blocks.iter().find(good).map(Arc::clone)
    }

    /// The block that a miss may bring, or the blocks that the range touches.
    fn around(&self, span: Span) -> Span {
        let rest = (1_u64 << self.k) - 1;
        Span::inclusive(span.start() & !rest, span.last() | rest).expect("it holds the range")
    }

    /// A hit, unless the block was given up meanwhile.
    async fn enter(&self, block: Arc<Block>, span: Span, mode: Mode) -> Option<Cached> {
        let range = span.start()..=span.last();
        let holding = match mode {
            Mode::Shared => self.inside.read_owned_async(range).await,
            Mode::Exclusive => self.inside.write_owned_async(range).await,
        };
        // Its drain waits for us, or was before us: (looks-again).
        block.is_good().then_some(Cached {
            _holding: holding,
            block,
            span,
        })
    }

    fn add(self: &Arc<Self>, token: Token) {
        let block = Arc::new(Block {
            span: token.span(),
            mode: token.mode(),
            fence: token.fence(),
            gate: Arc::clone(&token.gate),
            leaves: AtomicBool::new(false),
            token: Mutex::new(None),
        });
        let wanted = token.wanted();
        *block.token.lock().expect("no panic while held") = Some(token);
        self.blocks().push(Arc::clone(&block));
        // It keeps neither alive: a cache that is dropped releases what it has.
        let (inner, block) = (Arc::downgrade(self), Arc::downgrade(&block));
        self.lease.spawn(async move {
            let wanted = wanted.await;
            let (Some(inner), Some(block)) = (inner.upgrade(), block.upgrade()) else {
                return;
            };
            match wanted {
                Wanted::Yes => inner.give_up(&block).await,
                Wanted::No => inner.forget(&block),
            }
        });
    }

    /// (newcomers-stopped)
    fn forget(&self, block: &Arc<Block>) {
        block.leaves.store(true, Ordering::Relaxed);
        self.blocks().retain(|other| !Arc::ptr_eq(other, block));
    }

    async fn give_up(&self, block: &Arc<Block>) {
        self.forget(block);
        let span = block.span;
        // (holders-drained)
        let drained = self
            .inside
            .write_owned_async(span.start()..=span.last())
            .await;
        let token = block.token.lock().expect("no panic while held").take();
        drop(drained);
        if let Some(token) = token {
            // If it is lost meanwhile, it is gone as well.
            let _ = token.release().await;
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Cache");
        debug
            .field("ttl", &self.ttl)
            .field("k", &self.k)
            .finish_non_exhaustive()
    }
}

/// A range that is held, within a block that the machine has leased.
#[must_use = "it is released when it is dropped"]
pub struct Cached {
    _holding: Holding<Arc<RangeLock>>,
    block: Arc<Block>,
    span: Span,
}

impl Cached {
    /// The range.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The fence of the block. What is written under it carries it.
    pub fn fence(&self) -> Fence {
        self.block.fence
    }

    /// As [`Token::check`]. It does not fail while the block is only given up: that waits for this.
    ///
    /// # Errors
    /// When the lease of the block is lost, or was not renewed in time.
    pub fn check(&self) -> Result<(), Lost> {
        if self.block.gate.is_open() {
            Ok(())
        } else {
            Err(Lost)
        }
    }
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Cached");
        debug
            .field("span", &self.span)
            .field("fence", &self.block.fence)
            .finish_non_exhaustive()
    }
}

/// Wakes a thread.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread to its end.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, block_on};
    use crate::{Memory, Mode, RangeLease, Span};
    use std::time::Duration;

    /// What is between the two steps of a hit may take long: the thread has no processor, or waits for its range.
    #[test]
    fn a_block_that_was_found_and_then_given_up_is_not_entered() {
        let lease = RangeLease::open(Memory::new()).wait().expect("it opens");
        let cache = Cache::new(lease, 6, Duration::from_secs(600));
        let inner = &cache.0;
        let part = Span::of(3..5).expect("it is not empty");
        let enter = || {
            drop(
                cache
                    .lock_blocking(0..10, Mode::Shared)
                    .expect("it is free"),
            );
            inner.find(part, Mode::Shared).expect("it was brought")
        };
        assert!(block_on(inner.enter(enter(), part, Mode::Shared)).is_some());
        let found = enter();
        block_on(cache.give_up());
        assert!(block_on(inner.enter(found, part, Mode::Shared)).is_none());
    }
}
