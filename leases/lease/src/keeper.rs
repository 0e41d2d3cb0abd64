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
use crate::user::{Done, Due, User};
use crate::{
    Answer, End, Engine, Fence, Lost, Mode, News, NotOpened, Options, Pending, RangeLease, Refused,
    Renewal, Request, RequestId, Token, Trouble, Wanted,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::mem;
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
type Reply<R> = oneshot::Sender<Result<Token<R>, Refused>>;

/// What the keeper is told to do.
pub(crate) enum Command<R> {
    /// To serve a request for a lease.
    Acquire(R, Ask, Reply<R>),
    /// To poll this to its end.
    Poll(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// After an engine was not reached, it is asked again after this time.
const AGAIN: Duration = Duration::from_millis(50);

/// While it does not hear of an end, it is told again after twice the time, up to this.
const LATER: Duration = Duration::from_secs(1);

/// A request whose leases are nearly over when so many of its grants are known is for too short a ttl.
const LATE: u32 = 5;

/// Starts the thread. It says `opened`, or why not.
pub(crate) fn start<E: Engine + Send>(
    engine: E,
    options: Options,
    commands: mpsc::UnboundedReceiver<Command<E::Range>>,
    opened: RangeLease<E::Range>,
) -> Pending<Result<RangeLease<E::Range>, NotOpened>> {
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
    commands: mpsc::UnboundedReceiver<Command<E::Range>>,
    opened: RangeLease<E::Range>,
    answer: oneshot::Sender<Result<RangeLease<E::Range>, NotOpened>>,
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
    ttl: Duration,
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

    /// Others may have had the range since, unless it was renewed and we do not know.
    fn is_over(self) -> Moment {
        self.sent.saturating_add(self.ttl)
    }
}

/// Whether the engine knows that a lease has ended.
enum Knows {
    Yes,
    /// It is not told before that moment.
    Not {
        until: Moment,
    },
}

/// A request that is told what the engine reports of it, until this is dropped.
struct Concerned<'a> {
    all: &'a RefCell<BTreeMap<RequestId, Rc<Notify>>>,
    id: RequestId,
}

impl<'a> Concerned<'a> {
    fn new(
        all: &'a RefCell<BTreeMap<RequestId, Rc<Notify>>>,
        id: RequestId,
        news: &Rc<Notify>,
    ) -> Self {
        all.borrow_mut().insert(id, Rc::clone(news));
        Self { all, id }
    }
}

impl Drop for Concerned<'_> {
    fn drop(&mut self) {
        self.all.borrow_mut().remove(&self.id);
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
    async fn run(self: Rc<Self>, mut commands: mpsc::UnboundedReceiver<Command<E::Range>>) {
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
            ttl,
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

    /// From the request until the engine has nothing left of it.
    async fn serve(self: Rc<Self>, span: E::Range, ask: Ask, mut reply: Reply<E::Range>) {
        let request = Request {
            id: RequestId::new(),
            span,
            mode: ask.mode,
            ttl: ask.ttl,
            grow: ask.grow,
        };
        let news = Rc::new(Notify::new());
        let _concerned = Concerned::new(&self.concerned, request.id, &news);
        let limit = ask.limit.map(|limit| now().saturating_add(limit));
        // What is said if the limit ends now.
        let heard = RefCell::new(Refused::NotAnswered);
        let granted = select! {
            biased;
            granted = self.attempts(&request, &news, &heard) => granted,
            () = reply.closed() => Err(Refused::Cancelled),
            () = cancelled(ask.cancel) => Err(Refused::Cancelled),
            () = self.limit(limit) => Err(heard.into_inner()),
        };
        let knows = match granted {
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
                    term,
                    gate,
                    news: &news,
                    user: User::new(messages),
                };
                lease.keep().await
            }
            Err(refused) => {
                // Its wish, and what it may have been granted meanwhile, is of no use to anybody. The answer does not
                // wait for that.
                let _ = reply.send(Err(refused));
                Knows::Not { until: now() }
            }
        };
        if let Knows::Not { until } = knows {
            self.alarms.until(until).await;
            // It may have done what it did not answer, and then it holds the range for one ttl more.
            let _ = self.release(request.id, self.term(now(), ask.ttl)).await;
        }
    }

    async fn limit(&self, limit: Option<Moment>) {
        match limit {
            Some(limit) => self.alarms.until(limit).await,
            None => std::future::pending().await,
        }
    }

    /// Asks until it is granted. What the engine says last is in `heard`.
    async fn attempts(
        &self,
        request: &Request<E::Range>,
        news: &Notify,
        heard: &RefCell<Refused>,
    ) -> Result<(E::Range, Fence, Term), Refused> {
        let (mut wish_is_known, mut late, mut shortest) = (false, 0, Duration::MAX);
        loop {
            let sent = now();
            let wait = match self.engine.acquire(request).await {
                Ok(Answer::Granted { span, fence }) => {
                    let term = self.term(sent, request.ttl);
                    if now() < term.closing() {
                        return Ok((span, fence, term));
                    }
                    // The answer took too long to be of use. The next one is for another ttl.
                    late += 1;
                    shortest = shortest.min(now().saturating_sub(sent));
                    let too_short = Refused::TtlTooShort {
                        ttl: request.ttl,
                        least: 4 * shortest,
                    };
                    if late == LATE {
                        return Err(too_short);
                    }
                    heard.replace(too_short);
                    AGAIN
                }
                Ok(Answer::Busy { expires }) => {
                    heard.replace(Refused::TimedOut);
                    // A release that came before the wish told nobody. So the first refusal is no reason to sleep.
                    match mem::replace(&mut wish_is_known, true) {
                        false => Duration::ZERO,
                        true => expires.unwrap_or(Duration::MAX).min(self.options.poll),
                    }
                }
                Err(unreachable @ Trouble::Unreachable(_)) => {
                    heard.replace(Refused::Engine(unreachable));
                    AGAIN
                }
                Err(refused @ Trouble::Refused(_)) => return Err(Refused::Engine(refused)),
            };
            select! {
                biased;
                () = news.notified() => {}
                () = self.alarms.until(now().saturating_add(wait)) => {}
            }
        }
    }

    /// Asks until it is renewed or lost.
    async fn renew(&self, id: RequestId, of: Term, gate: &Gate) -> Result<(Term, Wanted), Knows> {
        let until = of.is_over();
        let closes = async {
            self.alarms.until(of.closing()).await;
            gate.set(IsOpen::No);
            self.alarms.until(of.end()).await;
        };
        let asks = async {
            loop {
                let sent = now();
                match self.engine.renew(id, of.ttl).await {
                    Ok(Renewal::Kept { wanted }) => {
                        let term = self.term(sent, of.ttl);
                        if now() < term.closing() {
                            return Ok((term, wanted));
                        }
                    }
                    Ok(Renewal::Gone) => return Err(Knows::Yes),
                    // Who is refused holds what he holds, and the reason may pass: a certificate is renewed.
                    Err(_) => self.alarms.until(now() + AGAIN).await,
                }
            }
        };
        // What the engine says counts more than our clock: a lease that it renewed was never another's.
        let renewed = select! {
            biased;
            renewed = asks => renewed?,
            () = closes => return Err(Knows::Not { until }),
        };
        gate.set(IsOpen::Yes);
        Ok(renewed)
    }

    /// Releases, unless the end comes first.
    async fn release(&self, id: RequestId, term: Term) -> Result<(), Lost> {
        let released = async {
            let mut pause = AGAIN;
            while self.engine.release(id).await.is_err() {
                self.alarms.until(now() + pause).await;
                pause = LATER.min(2 * pause);
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
    term: Term,
    gate: Arc<Gate>,
    news: &'a Notify,
    // To drop it tells as well, and comes after the gate is closed.
    user: User,
}

/// Also when the keeper panics.
impl<E> Drop for Lease<'_, E> {
    fn drop(&mut self) {
        // [closed-first]
        self.gate.set(IsOpen::No);
    }
}

impl<E: Engine> Lease<'_, E> {
    /// Until it is released or lost.
    async fn keep(mut self) -> Knows {
        loop {
            select! {
                biased;
                due = self.user.due() => if let Due::Release(done) = due {
                    return self.release(done).await;
                },
                () = self.news.notified() => {}
                () = self.keeper.alarms.until(self.term.renewal()) => {}
            }
            self.user.renews();
            let renewed = select! {
                biased;
                // A renewal that is under way is of no use any more, and may take long.
                done = self.user.release() => return self.release(done).await,
                renewed = self.keeper.renew(self.id, self.term, &self.gate) => renewed,
            };
            match renewed {
                Ok((term, wanted)) => {
                    self.term = term;
                    self.user.told_renewed(Ok(()));
                    if wanted == Wanted::Yes {
                        self.user.told_wanted();
                    }
                }
                Err(knows) => {
                    self.gate.close(|| {
                        self.user.told_renewed(Err(Lost));
                        self.user.told_end(End::Lost);
                    });
                    return knows;
                }
            }
        }
    }

    /// The user is told when the engine knows, or when the lease ends that it knows of.
    async fn release(mut self, done: Option<Done>) -> Knows {
        self.gate.set(IsOpen::No);
        let released = self.keeper.release(self.id, self.term).await;
        self.user
            .told_end(released.map_or(End::Lost, |()| End::Released));
        if let Some(done) = done {
            let _ = done.send(released);
        }
        match released {
            Ok(()) => Knows::Yes,
            Err(Lost) => Knows::Not { until: now() },
        }
    }
}
