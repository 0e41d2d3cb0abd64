//! What was acquired, as its user sees it.

use crate::blocks::{Gate, Leased};
use crate::user::Message;
use crate::{Fence, Mode, Pending, RequestId, Span, Wanted};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The lease is lost, or will be soon unless it is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lease is lost, or was not renewed in time")
    }
}

impl Error for Lost {}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Others may hold the range since.
    Lost,
    /// Its token was released or dropped.
    Released,
}

/// A range that is leased.
///
/// The keeper renews it after each third of the ttl. When three quarters of the ttl have passed without a renewal, the
/// token is closed to new work, so that what has begun can end in time; a renewal that succeeds opens it again. At the
/// end of the ttl, less what the clocks may differ by, it is lost.
///
/// Dropping it releases it, without waiting for the engine.
#[must_use = "it is released when it is dropped"]
pub struct Token<R = Span> {
    pub(crate) id: RequestId,
    pub(crate) span: R,
    pub(crate) mode: Mode,
    pub(crate) fence: Fence,
    pub(crate) gate: Arc<Gate>,
    /// When it is dropped the keeper releases.
    pub(crate) keeper: mpsc::UnboundedSender<Message>,
}

impl<R: Clone> Token<R> {
    /// The range that is held.
    pub fn span(&self) -> R {
        self.span.clone()
    }
}

impl<R> Token<R> {
    /// The name under which the engine keeps it.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// How it is held.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What tells this grant from earlier ones of the range. The resource has to check it.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Asks before each piece of work whether it may begin. It costs one load, and reads no clock.
    ///
    /// It cannot know that the process was stopped a moment ago: see [the crate](crate#what-a-lease-cannot-do).
    ///
    /// # Errors
    /// When the lease is lost, or closed since it was not renewed in time.
    pub fn check(&self) -> Result<(), Lost> {
        if self.gate.is_open() {
            Ok(())
        } else {
            Err(Lost)
        }
    }

    /// Tells when the lease ends.
    pub fn lost(&self) -> Pending<End> {
        self.ask(Message::End, || End::Lost)
    }

    /// Tells when somebody waits for a part of the range, or when the lease ends.
    pub fn wanted(&self) -> Pending<Wanted> {
        self.ask(Message::Wanted, || Wanted::No)
    }

    /// Renews it now.
    ///
    /// # Errors
    /// When the lease is lost.
    pub fn renew(&self) -> Pending<Result<(), Lost>> {
        self.ask(Message::Renew, || Err(Lost))
    }

    /// Releases it, also while a renewal is under way. What is ready then is that the engine knows. That is at the
    /// latest when the ttl ends that was confirmed last, less the drift. The engine is told for a ttl more.
    ///
    /// # Errors
    /// When the lease was lost before the engine knew.
    pub fn release(self) -> Pending<Result<(), Lost>> {
        self.ask(Message::Release, || Err(Lost))
    }

    fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
        otherwise: fn() -> T,
    ) -> Pending<T> {
        let (answer, pending) = Pending::new(otherwise);
        // If the keeper has gone, the pending answer says so.
        let _ = self.keeper.send(message(answer));
        pending
    }
}

impl Leased for Token {
    type Fence = Fence;

    fn span(&self) -> Span {
        self.span
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn fence(&self) -> Fence {
        self.fence
    }

    fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }
}

impl<R: fmt::Debug> fmt::Debug for Token<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Token");
        debug.field("span", &self.span).field("mode", &self.mode);
        debug
            .field("fence", &self.fence)
            .field("open", &self.gate.is_open());
        debug.finish_non_exhaustive()
    }
}
