//! An answer of the keeper, for tasks and for threads.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// What will be known later: a future, for any executor, or [`wait`](Self::wait).
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
    /// Within an `async` context of tokio, where a thread must not block.
    pub fn wait(self) -> T {
        let otherwise = self.otherwise;
        self.answer.blocking_recv().unwrap_or_else(|_| otherwise())
    }
}

impl<T> Pending<T> {
    /// The outcome, if it is known by now. It is told once.
    pub fn try_wait(&mut self) -> Option<T> {
        match self.answer.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some((self.otherwise)()),
        }
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
