//! The thread that keeps the leases: it asks the engine, renews, and tells what is lost.
//!
//! It has a runtime of its own, so renewals do not wait behind the user's tasks. Each request is a task: it tries until
//! it is granted, cancelled or out of time, and then keeps what it was granted.
//!
//! A lease runs out, for us, one ttl after the moment *before* the request or renewal was sent that the engine granted,
//! less the drift. The engine counts one ttl from a later moment on, so while the drift holds nobody else has the range
//! before we know that it is lost. No clocks of two machines are compared.

use crate::blocks::{Gate, IsOpen};
use crate::clock::{Alarms, Moment, now};
use crate::{
    Answer, End, Engine, Fence, Lost, Mode, News, NotOpened, Options, Pending, RangeLease, Refused,
    Renewal, Request, RequestId, Span, Token, Trouble, Wanted,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::select;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{JoinSet, LocalSet};

/// What is asked for, beside the range.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) mode: Mode,
    pub(crate) ttl: Duration,
    pub(crate) limit: Option<Duration>,
    pub(crate) grow: Option<u32>,
    pub(crate) cancel: Option<watch::Receiver<bool>>,
}

/// Where the outcome of an acquisition goes.
type Reply = oneshot::Sender<Result<Token, Refused>>;

/// What the keeper is told to do.
pub(crate) enum Command {
    /// To serve a request for a lease.
    Acquire(Span, Ask, Reply),
    /// To poll this to its end.
    Poll(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// What the user of a token says. It is released when no more can come.
pub(crate) enum Message {
    Renew(oneshot::Sender<Result<(), Lost>>),
    Release(oneshot::Sender<Result<(), Lost>>),
    End(oneshot::Sender<End>),
    Wanted(oneshot::Sender<Wanted>),
}

/// After an engine was not reached, it is asked again after this time.
const AGAIN: Duration = Duration::from_millis(50);

/// Starts the thread. It says `opened`, or why not.
pub(crate) fn start<E: Engine + Send>(
    engine: E,
    options: Options,
    commands: mpsc::UnboundedReceiver<Command>,
    opened: RangeLease,
) -> Pending<Result<RangeLease, NotOpened>> {
    let pending = || Pending::new(|| Err(NotOpened::Thread(io::ErrorKind::BrokenPipe.into())));
    let (answer, opening) = pending();
    let work = move || {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(answer.send(Err(NotOpened::Thread(error)))),
        };
        LocalSet::new().block_on(&runtime, keep(engine, options, commands, opened, answer));
    };
    let started = thread::Builder::new()
        .name("spanlock-lease".to_owned())
        .spawn(work);
    match started {
        Ok(_detached) => opening,
        Err(error) => {
            let (answer, opening) = pending();
            drop(answer.send(Err(NotOpened::Thread(error))));
            opening
        }
    }
}

/// Keeps leases, on this thread. It says `opened`, or why not.
pub(crate) async fn keep<E: Engine>(
    engine: E,
    options: Options,
    commands: mpsc::UnboundedReceiver<Command>,
    opened: RangeLease,
    answer: oneshot::Sender<Result<RangeLease, NotOpened>>,
) {
    match Keeper::open(engine, options).await {
        Ok(keeper) => {
            // If nobody waits for it, it is dropped, and no command will come.
            drop(answer.send(Ok(opened)));
            Rc::new(keeper).run(commands).await;
        }
        Err(error) => drop(answer.send(Err(error))),
    }
}

struct Keeper<E> {
    engine: E,
    options: Options,
    alarms: Alarms,
    /// Whom to tell what the engine reports.
    concerned: RefCell<BTreeMap<RequestId, Rc<Notify>>>,
}

/// What a lease has got: until when it is ours.
#[derive(Clone, Copy)]
struct Term {
    /// When the request or renewal was sent.
    sent: Moment,
    /// The ttl, less the drift.
    length: Duration,
}

impl Term {
    fn renewal(self) -> Moment {
        self.sent.saturating_add(self.length / 3)
    }

    /// From then on, no work should begin.
    fn closing(self) -> Moment {
        self.sent.saturating_add(self.length / 4 * 3)
    }

    fn end(self) -> Moment {
        self.sent.saturating_add(self.length)
    }
}

impl<E: Engine> Keeper<E> {
    async fn open(engine: E, options: Options) -> Result<Self, NotOpened> {
        let alarms = Alarms::new().map_err(NotOpened::Thread)?;
        engine.open().await.map_err(NotOpened::Engine)?;
        Ok(Self {
            engine,
            options,
            alarms,
            concerned: RefCell::default(),
        })
    }

    /// Until no request can come and nothing is held.
    async fn run(self: Rc<Self>, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut tasks = JoinSet::new();
        let mut alarms = pin!(self.alarms.run());
        let mut more = true;
        while more || !tasks.is_empty() {
            select! {
                // Each is done sooner than the next one of its kind comes, so none keeps the others from theirs.
                biased;
                () = &mut alarms => {}
                // One that has panicked has closed its token.
                Some(_ended) = tasks.join_next() => {}
                news = self.engine.news() => self.tell(news),
                command = commands.recv(), if more => match command {
                    Some(Command::Acquire(span, ask, reply)) => {
                        tasks.spawn_local(Rc::clone(&self).serve(span, ask, reply));
                    }
                    Some(Command::Poll(future)) => _ = tasks.spawn_local(future),
                    None => more = false,
                },
            }
        }
    }

    fn term(&self, sent: Moment, ttl: Duration) -> Term {
        let drift = ttl / 1000 * self.options.drift_per_mille;
        Term {
            sent,
            length: ttl.saturating_sub(drift),
        }
    }

    fn tell(&self, news: News) {
        let concerned = self.concerned.borrow();
        match news {
            News::About(id) => concerned
                .get(&id)
                .into_iter()
                .for_each(|notify| notify.notify_one()),
            News::Missed => concerned.values().for_each(|notify| notify.notify_one()),
        }
    }

    /// From the request to the end of its lease.
    async fn serve(self: Rc<Self>, span: Span, ask: Ask, mut reply: Reply) {
        let request = Request {
            id: RequestId::new(),
            span,
            mode: ask.mode,
            ttl: ask.ttl,
            grow: ask.grow,
        };
        let news = Rc::new(Notify::new());
        self.concerned
            .borrow_mut()
            .insert(request.id, Rc::clone(&news));
        let limit = ask.limit.map(|limit| now().saturating_add(limit));
        let granted = select! {
            biased;
            granted = self.attempts(&request, &news) => granted,
            () = reply.closed() => Err(Refused::Cancelled),
            () = cancelled(ask.cancel) => Err(Refused::Cancelled),
            () = self.limit(limit) => Err(Refused::TimedOut),
        };
        match granted {
            Ok((span, fence, term)) => {
                let (keeper, messages) = mpsc::unbounded_channel();
                let gate = Gate::new();
                let token = Token {
                    id: request.id,
                    span,
                    mode: ask.mode,
                    fence,
                    gate: Arc::clone(&gate),
                    keeper,
                };
                // A token that nobody takes is dropped, and so released.
                let _ = reply.send(Ok(token));
                let lease = Lease {
                    keeper: &self,
                    id: request.id,
                    ttl: ask.ttl,
                    term,
                    gate,
                    news: &news,
                    listeners: Listeners::default(),
                    messages,
                };
                lease.keep().await;
            }
            Err(refused) => {
                // Its wish, and what it may have been granted meanwhile, is of no use to anybody. The answer does not
                // wait for that.
                let _ = reply.send(Err(refused));
                let term = self.term(now(), ask.ttl);
                let _ = self.release(request.id, term).await;
            }
        }
        self.concerned.borrow_mut().remove(&request.id);
    }

    async fn limit(&self, limit: Option<Moment>) {
        match limit {
            Some(limit) => self.alarms.until(limit).await,
            None => std::future::pending().await,
        }
    }

    /// Asks until it is granted.
    async fn attempts(
        &self,
        request: &Request,
        news: &Notify,
    ) -> Result<(Span, Fence, Term), Refused> {
        let mut wish_is_known = false;
        loop {
            let sent = now();
            let wait = match self.engine.acquire(request).await {
                Ok(Answer::Granted { span, fence }) => {
                    let term = self.term(sent, request.ttl);
                    if now() < term.closing() {
                        return Ok((span, fence, term));
                    }
                    // The answer took too long to be of use. The next one is for another ttl.
                    AGAIN
                }
                // A release that came before the wish told nobody. So the first refusal is no reason to sleep.
                Ok(Answer::Busy { .. }) if !wish_is_known => {
                    wish_is_known = true;
                    Duration::ZERO
                }
                Ok(Answer::Busy { expires }) => {
                    expires.unwrap_or(Duration::MAX).min(self.options.poll)
                }
                Err(Trouble::Unreachable(_)) => AGAIN,
                Err(refused) => return Err(Refused::Engine(refused)),
            };
            select! {
                biased;
                () = news.notified() => {}
                () = self.alarms.until(now().saturating_add(wait)) => {}
            }
        }
    }

    /// Releases, unless the end comes first.
    async fn release(&self, id: RequestId, term: Term) -> Result<(), Lost> {
        let released = async {
            while self.engine.release(id).await.is_err() {
                self.alarms.until(now() + AGAIN).await;
            }
        };
        select! {
            biased;
            () = released => Ok(()),
            () = self.alarms.until(term.end()) => Err(Lost),
        }
    }
}

async fn cancelled(cancel: Option<watch::Receiver<bool>>) {
    if let Some(mut cancel) = cancel
        && cancel.wait_for(|&cancelled| cancelled).await.is_ok()
    {
        return;
    }
    // There is nobody who could cancel.
    std::future::pending().await
}

/// A lease that is kept.
struct Lease<'a, E> {
    keeper: &'a Keeper<E>,
    id: RequestId,
    ttl: Duration,
    term: Term,
    gate: Arc<Gate>,
    news: &'a Notify,
    // To drop these tells as well, and comes after the gate is closed.
    listeners: Listeners,
    messages: mpsc::UnboundedReceiver<Message>,
}

/// Also when the keeper panics.
impl<E> Drop for Lease<'_, E> {
    fn drop(&mut self) {
        // [closed-first]
        self.gate.set(IsOpen::No);
    }
}

/// Who waits to be told something.
#[derive(Default)]
struct Listeners {
    end: Vec<oneshot::Sender<End>>,
    wanted: Vec<oneshot::Sender<Wanted>>,
    renewed: Option<oneshot::Sender<Result<(), Lost>>>,
    is_wanted: bool,
}

impl Listeners {
    fn told_wanted(&mut self) {
        self.is_wanted = true;
        for listener in self.wanted.drain(..) {
            let _ = listener.send(Wanted::Yes);
        }
    }

    fn told_renewed(&mut self, renewed: Result<(), Lost>) {
        if let Some(done) = self.renewed.take() {
            let _ = done.send(renewed);
        }
    }

    fn told_end(&mut self, how: End) {
        for listener in self.end.drain(..) {
            let _ = listener.send(how);
        }
    }
}

impl<E: Engine> Lease<'_, E> {
    /// Until it is released or lost.
    async fn keep(mut self) {
        let alarms = &self.keeper.alarms;
        let mut renew_at = self.term.renewal();
        loop {
            select! {
                biased;
                message = self.messages.recv() => match message {
                    None => return self.end_by(None).await,
                    Some(Message::Release(done)) => return self.end_by(Some(done)).await,
                    Some(Message::End(told)) => {
                        self.listeners.end.push(told);
                        continue;
                    }
                    Some(Message::Wanted(told)) => {
                        self.listeners.wanted.push(told);
                        if self.listeners.is_wanted {
                            self.listeners.told_wanted();
                        }
                        continue;
                    }
                    Some(Message::Renew(done)) => self.listeners.renewed = Some(done),
                },
                () = self.news.notified() => {}
                () = alarms.until(renew_at) => {}
            }
            let renewed = self.renew().await;
            let listeners = &mut self.listeners;
            let Ok(wanted) = renewed else {
                return self.gate.close(|| {
                    listeners.told_renewed(Err(Lost));
                    listeners.told_end(End::Lost);
                });
            };
            listeners.told_renewed(Ok(()));
            if wanted == Wanted::Yes {
                listeners.told_wanted();
            }
            renew_at = self.term.renewal();
        }
    }

    /// Asks until it is renewed or lost.
    async fn renew(&mut self) -> Result<Wanted, Lost> {
        let alarms = &self.keeper.alarms;
        let (closing, end) = (self.term.closing(), self.term.end());
        let gate = &self.gate;
        let closes = async {
            alarms.until(closing).await;
            gate.set(IsOpen::No);
            alarms.until(end).await;
        };
        let asks = async {
            loop {
                let sent = now();
                match self.keeper.engine.renew(self.id, self.ttl).await {
                    Ok(Renewal::Kept { wanted }) => {
                        let term = self.keeper.term(sent, self.ttl);
                        if now() < term.closing() {
                            return Ok((term, wanted));
                        }
                    }
                    Ok(Renewal::Gone) | Err(Trouble::Refused(_)) => return Err(Lost),
                    Err(Trouble::Unreachable(_)) => alarms.until(now() + AGAIN).await,
                }
            }
        };
        // What the engine says counts more than our clock: a lease that it renewed was never another's.
        let (term, wanted) = select! {
            biased;
            renewed = asks => renewed?,
            () = closes => return Err(Lost),
        };
        self.term = term;
        self.gate.set(IsOpen::Yes);
        Ok(wanted)
    }

    async fn end_by(mut self, done: Option<oneshot::Sender<Result<(), Lost>>>) {
        self.gate.set(IsOpen::No);
        let released = self.keeper.release(self.id, self.term).await;
        self.listeners
            .told_end(released.map_or(End::Lost, |()| End::Released));
        if let Some(done) = done {
            let _ = done.send(released);
        }
    }
}
