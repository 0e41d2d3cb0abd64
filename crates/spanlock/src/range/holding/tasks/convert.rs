//! Conversions: the task keeps what it holds while it waits for what it wants.

use super::super::convert::Cut;
use super::super::located::Leads;
use super::super::{Holding, Piece, Place, SharedPlace};
use super::{One, Until};
use crate::range::order::Ranges;
use crate::range::owner::Refusal;
use crate::range::raw::{AskBy, Mode, Wait};
use crate::range::sought::Sought;
use crate::range::span::Span;
use prim::clock::Duration;
use std::future::{Future, poll_fn};
use std::ops::RangeBounds;
use std::task::{Poll, ready};

impl<P: Place + Clone> Holding<P> {
    /// As [`extend`](Self::extend), for a task: a future, which waits without blocking a thread. Dropping it leaves
    /// what was held as it was. Leaking it locks for good what it has gained so far, and leaves its request in the
    /// queue.
    ///
    /// ```
    /// use spanlock::range::{RangeMutex, Refusal};
    ///
    /// async fn append(log: &RangeMutex) -> Result<(), Refusal> {
    ///     let mut held = log.lock_async(0..100).await;
    ///     held.extend_async(100..200).await?;
    ///     assert_eq!(held.span().map(|span| span.last()), Some(199));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn extend_async(
        &mut self,
        range: impl RangeBounds<P::Key>,
    ) -> impl Future<Output = Result<(), Refusal>> {
        let sought = self.lock.ranges().sought(&range);
        self.extend_soon(sought, Until::new(Wait::Forever))
    }

    /// As [`extend_async`](Self::extend_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_extend_async_for(
        &mut self,
        range: impl RangeBounds<P::Key>,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), Refusal>> {
        let until = Until::new(Wait::at_most(timeout));
        let sought = self.lock.ranges().sought(&range);
        self.extend_soon(sought, until)
    }

    pub(in crate::range::holding) async fn extend_soon(
        &mut self,
        sought: Option<Sought>,
        until: Until,
    ) -> Result<(), Refusal> {
        let Some(sought) = sought else {
            return Ok(());
        };
        let span = sought.span();
        let gained = self.gain_soon(span, Mode::Exclusive, until).await?;
        self.cut(span, &Cut::ReleaseShared);
        self.take(gained);
        Ok(())
    }

    /// Shares what it does not hold of a range. What it holds alone stays so.
    pub(in crate::range::holding) async fn share_more_soon(
        &mut self,
        sought: Sought,
        until: Until,
    ) -> Result<(), Refusal> {
        let gained = self.gain_soon(sought.span(), Mode::Shared, until).await?;
        self.take(gained);
        Ok(())
    }

    /// Waits for what may be refused: what of `span` is not held, and what of it is shared and is to be held alone.
    async fn gain_soon(&self, span: Span, mode: Mode, until: Until) -> Result<Self, Refusal> {
        let mut gained = self.another();
        for (at, part) in self.parts(span) {
            let next = match at.map(|at| (at, self.pieces[at].mode)) {
                None => {
                    let part = Some(self.lock.ranges().part(part));
                    self.asks(part, mode, until).await?
                }
                Some((at, Mode::Shared)) if mode == Mode::Exclusive => {
                    self.gain_alone(at, part, until).await?
                }
                Some(_) => continue,
            };
            gained.take(next);
        }
        Ok(gained)
    }

    /// Waits to have alone some of what it shares by that piece.
    async fn gain_alone(&self, at: usize, span: Span, until: Until) -> Result<Self, Refusal> {
        let ranges = self.lock.ranges();
        let shares = ranges.part(self.shares(at));
        let sought = ranges.part(span);
        let span = sought.span();
        let mut request = Waiting {
            holding: self,
            one: One::new(sought, Mode::Exclusive, until),
        };
        self.owner.count_piece();
        request.one.is_counted = true;
        let mut gained = self.another();
        poll_fn(|context| {
            let token = &self.pieces[at].token;
            // SAFETY: the lock granted the token to this owner, which shares it, and is borrowed meanwhile. Either
            // what is gained is released, or the piece is cut, before the owner asks for more of it.
            let ask = unsafe { AskBy::alone(&self.owner, token, shares.span(), span, until.wait) };
            let token = ready!(request.one.poll(&self.lock, ask, context))?;
            gained.hold(request.one.piece(&self.lock, token));
            Poll::Ready(Ok(()))
        })
        .await?;
        drop(request);
        Ok(gained)
    }
}

impl<P: SharedPlace + Clone> Holding<P> {
    /// As [`convert`](Self::convert), for a task: a future, which waits without blocking a thread. Dropping it leaves
    /// what was held as it was.
    ///
    /// Leaking it also leaves locked what it has gained so far, and its request stays in the queue: it is in nobody's
    /// way for longer than a turn, but upgrades of other owners in the same ranges may be refused with
    /// [`Refusal::OtherUpgrade`] as long as the lock lives.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn convert_async(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
    ) -> impl Future<Output = Result<(), Refusal>> {
        let sought = self.lock.ranges().sought(&range);
        self.convert_soon(sought, mode, Until::new(Wait::Forever))
    }

    /// As [`convert_async`](Self::convert_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_convert_async_for(
        &mut self,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), Refusal>> {
        let until = Until::new(Wait::at_most(timeout));
        let sought = self.lock.ranges().sought(&range);
        self.convert_soon(sought, mode, until)
    }

    /// As [`upgrade`](Self::upgrade), for a task: [`convert_async`](Self::convert_async) for all that is held.
    ///
    /// # Errors
    /// See there.
    #[track_caller]
    pub fn upgrade_async(&mut self) -> impl Future<Output = Result<(), Refusal>> {
        self.upgrade_soon(Until::new(Wait::Forever))
    }

    pub(in crate::range) async fn upgrade_soon(&mut self, until: Until) -> Result<(), Refusal> {
        let mut gained = self.another();
        for at in 0..self.pieces.len() {
            let Piece { span, mode, .. } = self.pieces[at];
            if mode == Mode::Shared {
                gained.take(self.gain_alone(at, span, until).await?);
            }
        }
        let all = self.lock.ranges().everything();
        self.cut(all.span(), &Cut::ReleaseShared);
        self.take(gained);
        Ok(())
    }

    async fn convert_soon(
        &mut self,
        sought: Option<Sought>,
        mode: Mode,
        until: Until,
    ) -> Result<(), Refusal> {
        match (sought, mode) {
            (sought, Mode::Exclusive) => self.extend_soon(sought, until).await,
            (Some(sought), Mode::Shared) => {
                let span = sought.span();
                let gained = self.gain_soon(span, mode, until).await?;
                self.share(span);
                self.take(gained);
                Ok(())
            }
            (None, Mode::Shared) => Ok(()),
        }
    }
}

/// A request that is given up when it is dropped.
struct Waiting<'a, P: Place> {
    holding: &'a Holding<P>,
    one: One,
}

impl<P: Place> Drop for Waiting<'_, P> {
    fn drop(&mut self) {
        let Holding { lock, owner, .. } = self.holding;
        self.one.give_up(lock, owner);
    }
}
