//! An answer of the keeper, for tasks and for threads.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::time::timeout;

/// What will be known later: a future, for any executor, or [`wait`](Self::wait) and
/// [`wait_within`](Self::wait_within).
///
/// What it stands for has begun. It goes on when this is dropped, except for an acquisition, which is then cancelled.
#[must_use = "its outcome is not known yet"]
pub struct Pending<T> {
    answer: oneshot::Receiver<T>,
    /// What is said if the keeper has gone.
    otherwise: fn() -> T,
}

impl<T> Pending<T> {
    /// And where the answer goes.
    pub(crate) fn new(otherwise: fn() -> T) -> (oneshot::Sender<T>, Self) {
        let (sender, answer) = oneshot::channel();
        (sender, Self { answer, otherwise })
    }

    /// Blocks the thread.
    ///
    /// # Panics
    /// Within an `async` context of tokio, where a thread must not block: `.await` it there.
    #[track_caller]
    pub fn wait(self) -> T {
        let otherwise = self.otherwise;
        let answered = blocking(|| self.answer.blocking_recv());
        answered.unwrap_or_else(|_| otherwise())
    }

    /// Blocks the thread, for so long at most. What is not known by then is given back. Tasks have the time limits of
    /// their executor.
    ///
    /// # Errors
    /// When it is not known in time.
    ///
    /// # Panics
    /// Within an `async` context of tokio, or if the system has no memory for a timer.
    #[track_caller]
    pub fn wait_within(mut self, limit: Duration) -> Result<T, Self> {
        let clock = Builder::new_current_thread().enable_time().build();
        let clock = clock.expect("a timer needs memory only");
        let answer = blocking(|| clock.block_on(async { timeout(limit, &mut self).await }));
        answer.map_err(|_late| self)
    }

    /// The outcome, if it is known by now. It is told once.
    pub fn try_wait(&mut self) -> Option<T> {
        match self.answer.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some((self.otherwise)()),
        }
    }
}

/// Blocks the thread. Tokio says when it must not, but not what to do instead.
#[track_caller]
fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(wait)) {
        Ok(answer) => answer,
        Err(_within_a_runtime) => panic!(
            "`wait` blocks its thread, which runs tasks of tokio: `.await` instead, or wait within `spawn_blocking`"
        ),
    }
}

impl<T> Future for Pending<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| answer.unwrap_or_else(|_| (self.otherwise)()))
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}
