//! Ranges that a machine keeps while no other machine wishes for them.
//!
//! A *hit* locks its range in the machine's own range lock, and finds a block that covers it: see
//! [`blocks`](crate::blocks) for why that block may be used. A *miss* asks the engine for the block around its range,
//! one miss at a time for each block. When another machine wishes for a token, or it is lost, a task of the keeper
//! gives it up: it takes the block away, so no newcomer finds it, locks its whole span in the machine's lock, so that
//! those who hold parts of it have ended, and releases it.

use crate::blocks;
use crate::{Fence, Lost, Mode, RangeLease, Refused, Span, Token};
use spanlock::range::{Holding, RangeLock, ReadGuard, WriteGuard};
use std::fmt;
use std::ops::RangeBounds;
use std::pin::pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::time::sleep;

/// Leases of blocks, which the threads and tasks of a machine share by a range lock.
///
/// An acquisition within a block that the machine has is an acquisition of a range lock and a look at a few words: no
/// round trip, no clock, no allocation, no mutex. A block is kept, and renewed, until another machine wishes for a part
/// of it, or [`give_up`](Self::give_up) is called.
///
/// # When not to use it
/// - Machines take turns at the same ranges: then each turn costs the round trips of giving up as well.
/// - A thread or task asks for a range while it holds another one of the same cache. The second may need a block that
///   is given up only when the first one ends, so the two wait for each other. One request for all is safe.
/// - Thousands of blocks are used in turn: 256 are found without a search, and those that begin at the same place,
///   counted in blocks and modulo 256, are not found so together.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

type Block = blocks::Block<Token>;

struct Inner {
    lease: RangeLease,
    ttl: Duration,
    /// What the machine has, and who holds what of it.
    blocks: blocks::Blocks<Arc<RangeLock>, Token>,
    /// Misses of one block wait for each other.
    misses: RangeLock,
}

/// For so long a block is kept at least. Whoever brought it gets to lock his range meanwhile, also if others wait for
/// it already: else he might bring it in vain, again and again.
const GRACE: Duration = Duration::from_millis(2);

impl Cache {
    /// Over leases of a resource. Blocks have up to `2^k` positions, and are leased for `ttl`.
    #[must_use]
    pub fn new(lease: RangeLease, k: u32, ttl: Duration) -> Self {
        Self(Arc::new(Inner {
            lease,
            ttl,
            blocks: blocks::Blocks::new(Arc::default(), k),
            misses: RangeLock::new(),
        }))
    }

    /// Acquires a range, for a task of any executor. It may be sent, and keeps what it needs.
    ///
    /// # Errors
    /// When the engine refuses, or the range is empty.
    ///
    /// # Panics
    /// When the range starts after it ends.
    pub async fn lock(&self, range: impl RangeBounds<u64>, mode: Mode) -> Result<Cached, Refused> {
        let span = Span::of(range).ok_or(Refused::Empty)?;
        loop {
            let range = span.start()..=span.last();
            let inside = self.0.blocks.inside();
            let holding = match mode {
                Mode::Shared => inside.read_owned_async(range).await,
                Mode::Exclusive => inside.write_owned_async(range).await,
            };
            // SAFETY: the range is held.
            let found = unsafe { self.0.blocks.enter(span, mode, |_| holding) };
            if let Some((holding, block)) = found {
                let block = block.as_ptr();
                // SAFETY: it is from an `Arc` of the list, which is dropped only when the range is not held any more.
                unsafe { Arc::increment_strong_count(block) };
                // SAFETY: the same, and it was counted.
                let block = unsafe { Arc::from_raw(block) };
                return Ok(Cached {
                    _holding: holding,
                    block,
                    span,
                });
            }
            self.0.bring(span, mode).await?;
        }
    }

    /// Acquires a range, for this thread. It blocks while others of this machine hold some of it, and for as long as it
    /// takes to bring a block.
    ///
    /// # Errors
    /// When the engine refuses, or the range is empty.
    ///
    /// # Panics
    /// When the range starts after it ends; in debug builds, when this thread holds some of it.
    #[inline]
    pub fn lock_blocking(
        &self,
        range: impl RangeBounds<u64>,
        mode: Mode,
    ) -> Result<CachedGuard<'_>, Refused> {
        let span = Span::of(range).ok_or(Refused::Empty)?;
        loop {
            let range = span.start()..=span.last();
            // SAFETY: the guard holds the range.
            let found = unsafe {
                self.0.blocks.enter(span, mode, |inside| match mode {
                    Mode::Shared => Hold::Shared(inside.read(range)),
                    Mode::Exclusive => Hold::Exclusive(inside.write(range)),
                })
            };
            match found {
                Some((hold, block)) => return Ok(CachedGuard { hold, block }),
                None => self.bring_blocking(span, mode)?,
            }
        }
    }

    #[cold]
    fn bring_blocking(&self, span: Span, mode: Mode) -> Result<(), Refused> {
        block_on(self.0.bring(span, mode))
    }

    /// Gives up all blocks, when those who hold parts of them have ended. If the future is dropped before, those that
    /// it has come to are not found any more, and go when somebody wishes for them, or when this is called again.
    pub async fn give_up(&self) {
        for block in self.0.blocks.all() {
            self.0.give_up(&block).await;
        }
    }

    /// How many blocks the machine has.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.0.blocks.count()
    }
}

impl Inner {
    /// The block that a miss may bring, or the blocks that the range touches.
    fn around(&self, span: Span) -> Span {
        let rest = (1_u64 << self.blocks.k()) - 1;
        Span::inclusive(span.start() & !rest, span.last() | rest).expect("it holds the range")
    }

    /// Leases a block that covers the range, unless there is one.
    async fn bring(self: &Arc<Self>, span: Span, mode: Mode) -> Result<(), Refused> {
        let around = self.around(span);
        let around = around.start()..=around.last();
        let _one_at_a_time = self.misses.write_async(around).await;
        // Another miss may have brought it.
        if !self.blocks.has(span, mode) {
            let range = span.start()..=span.last();
            let asks = self.lease.acquire(range, mode, self.ttl);
            self.add(asks.grown(self.blocks.k()).await?);
        }
        Ok(())
    }

    fn add(self: &Arc<Self>, token: Token) {
        let ends = token.wanted();
        let block = Arc::new(Block::new(token));
        self.blocks.add(Arc::clone(&block));
        // It keeps neither alive: a cache that is dropped releases what it has.
        let (inner, block) = (Arc::downgrade(self), Arc::downgrade(&block));
        self.lease.spawn(async move {
            let kept = sleep(GRACE);
            // Somebody wishes for it, or it is lost.
            let _ = ends.await;
            kept.await;
            if let (Some(inner), Some(block)) = (inner.upgrade(), block.upgrade()) {
                inner.give_up(&block).await;
            }
        });
    }

    async fn give_up(&self, block: &Arc<Block>) {
        if let Some(token) = self.blocks.give_up(block).await {
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
            .field("k", &self.blocks.k())
            .finish_non_exhaustive()
    }
}

/// A range that is held, within a block that the machine has leased. It may be sent.
#[must_use = "it is released when it is dropped"]
pub struct Cached {
    _holding: Holding<Arc<RangeLock>>,
    block: Arc<Block>,
    span: Span,
}

/// A range that a thread holds, within a block that the machine has leased.
#[must_use = "it is released when it is dropped"]
pub struct CachedGuard<'a> {
    hold: Hold<'a>,
    /// It lives while the range is held.
    block: NonNull<Block>,
}

enum Hold<'a> {
    Shared(ReadGuard<'a>),
    Exclusive(WriteGuard<'a>),
}

impl Cached {
    /// The range.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    fn block(&self) -> &Block {
        &self.block
    }
}

impl CachedGuard<'_> {
    /// The range.
    #[must_use]
    pub fn span(&self) -> Span {
        let span = match &self.hold {
            Hold::Shared(guard) => guard.span(),
            Hold::Exclusive(guard) => guard.span(),
        };
        span.expect("it is not empty")
    }

    fn block(&self) -> &Block {
        // SAFETY: the range is held until this is dropped, so its drain waits.
        unsafe { self.block.as_ref() }
    }
}

/// What each says of itself.
macro_rules! says {
    ($($Held:ty as $name:literal),+) => {$(
        impl $Held {
            /// The fence of the block. What is written under it carries it.
            #[must_use]
            pub fn fence(&self) -> Fence {
                self.block().fence
            }

            /// As [`Token::check`]. It does not fail while the block is only given up: that waits for this.
            ///
            /// # Errors
            /// When the lease of the block is lost, or was not renewed in time.
            pub fn check(&self) -> Result<(), Lost> {
                if self.block().is_open() {
                    Ok(())
                } else {
                    Err(Lost)
                }
            }
        }

        impl fmt::Debug for $Held {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut debug = f.debug_struct($name);
                debug.field("span", &self.span()).field("fence", &self.fence());
                debug.finish_non_exhaustive()
            }
        }
    )+};
}

says!(Cached as "Cached", CachedGuard<'_> as "CachedGuard");

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
