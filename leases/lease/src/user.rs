//! What the user of a token says to the keeper, and is told by it.

use crate::{End, Lost, Wanted};
use tokio::sync::{mpsc, oneshot};

/// Where it goes whether a renewal or a release has succeeded.
pub(crate) type Done = oneshot::Sender<Result<(), Lost>>;

/// What the user of a token says. It is released when no more can come.
pub(crate) enum Message {
    Renew(Done),
    Release(Done),
    End(oneshot::Sender<End>),
    Wanted(oneshot::Sender<Wanted>),
}

/// What is to be done for a token.
pub(crate) enum Due {
    /// For those who have asked for it.
    Renewal,
    /// For the one who has asked for it, if the token was not just dropped.
    Release(Option<Done>),
}

/// The user of a token. To drop it tells as well.
pub(crate) struct User {
    messages: mpsc::UnboundedReceiver<Message>,
    end: Vec<oneshot::Sender<End>>,
    wanted: Vec<oneshot::Sender<Wanted>>,
    /// Who waits for the renewal that is under way.
    renewing: Vec<Done>,
    /// Who waits for the next one to begin.
    renewals: Vec<Done>,
    is_wanted: bool,
}

impl User {
    pub(crate) fn new(messages: mpsc::UnboundedReceiver<Message>) -> Self {
        Self {
            messages,
            end: Vec::new(),
            wanted: Vec::new(),
            renewing: Vec::new(),
            renewals: Vec::new(),
            is_wanted: false,
        }
    }

    /// Listens until something is to be done. It may be dropped and called again.
    pub(crate) async fn due(&mut self) -> Due {
        while self.renewals.is_empty() {
            match self.messages.recv().await {
                None => return Due::Release(None),
                Some(message) => {
                    if let Some(done) = self.hear(message) {
                        return Due::Release(Some(done));
                    }
                }
            }
        }
        Due::Renewal
    }

    /// Listens until the token is released, while it is renewed. It may be dropped and called again.
    pub(crate) async fn release(&mut self) -> Option<Done> {
        loop {
            let message = self.messages.recv().await?;
            if let Some(done) = self.hear(message) {
                return Some(done);
            }
        }
    }

    /// A release is to be done at once.
    fn hear(&mut self, message: Message) -> Option<Done> {
        match message {
            Message::Release(done) => return Some(done),
            Message::Renew(done) => self.renewals.push(done),
            Message::End(told) => self.end.push(told),
            Message::Wanted(told) => {
                self.wanted.push(told);
                if self.is_wanted {
                    self.told_wanted();
                }
            }
        }
        None
    }

    /// A renewal begins. Who asks from now on gets the next one.
    pub(crate) fn renews(&mut self) {
        self.renewing.append(&mut self.renewals);
    }

    pub(crate) fn told_renewed(&mut self, outcome: Result<(), Lost>) {
        for done in self.renewing.drain(..) {
            let _ = done.send(outcome);
        }
    }

    pub(crate) fn told_wanted(&mut self) {
        self.is_wanted = true;
        for listener in self.wanted.drain(..) {
            let _ = listener.send(Wanted::Yes);
        }
    }

    pub(crate) fn told_end(&mut self, how: End) {
        for listener in self.end.drain(..) {
            let _ = listener.send(how);
        }
    }
}
