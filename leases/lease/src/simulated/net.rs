//! The way of a machine to an engine, on which calls, answers and reports are late or lost.

use crate::{Answer, Engine, Memory, News, Renewal, Request, RequestId, Span, Trouble};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, sleep_until};

/// How bad a way is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    /// Of a hundred calls so many do not arrive, so many others are not answered, and so many take a few seconds more.
    pub(super) lost: u32,
    /// A call takes up to so long on its way, and as long back.
    pub(super) delay: Duration,
    /// Of a hundred reports so many are lost.
    pub(super) reports_lost: u32,
}

/// A way. Calls arrive in the order in which they were made, as on a connection, and also if whoever made them does not
/// wait any more; renewals go by a connection of their own.
pub(super) struct Net {
    memory: Rc<Memory>,
    faults: Faults,
    random: Rc<RefCell<fastrand::Rng>>,
    /// No call arrives from one of these moments to the other.
    outages: Vec<(Instant, Instant)>,
    calls: Rc<Way>,
    renewals: Rc<Way>,
    news: Mutex<mpsc::UnboundedReceiver<News>>,
}

/// The calls on it come one after the other: each holds the mutex until it has come, in the order of their beginnings.
#[derive(Default)]
struct Way {
    turn: Mutex<()>,
    /// When the last one of them comes.
    comes: Cell<Option<Instant>>,
}

/// By so much a call may take longer than others.
const LONGER: Duration = Duration::from_secs(6);

/// What becomes of a call.
struct Fate {
    there: Duration,
    back: Duration,
    arrives: bool,
    is_answered: bool,
    /// After so long it is known that there will be no answer.
    silence: Duration,
}

impl Net {
    pub(super) fn new(
        memory: Memory,
        faults: Faults,
        outages: Vec<(Instant, Instant)>,
        random: &Rc<RefCell<fastrand::Rng>>,
    ) -> Self {
        let (memory, random) = (Rc::new(memory), Rc::clone(random));
        let (sender, news) = mpsc::unbounded_channel();
        spawn_local(report(
            Rc::clone(&memory),
            faults,
            Rc::clone(&random),
            sender,
        ));
        Self {
            memory,
            faults,
            random,
            outages,
            calls: Rc::default(),
            renewals: Rc::default(),
            news: Mutex::new(news),
        }
    }

    fn fate(&self) -> Fate {
        let mut random = self.random.borrow_mut();
        let now = Instant::now();
        let is_out = self
            .outages
            .iter()
            .any(|&(from, to)| from <= now && now < to);
        let mut delay = || {
            let is_long = random.u32(..100) < self.faults.lost;
            let more = if is_long { LONGER } else { Duration::ZERO };
            up_to(self.faults.delay + more, &mut random)
        };
        Fate {
            there: delay(),
            back: delay(),
            arrives: random.u32(..100) >= self.faults.lost && !is_out,
            is_answered: random.u32(..100) >= self.faults.lost,
            silence: up_to(Duration::from_secs(1), &mut random),
        }
    }

    async fn call<T: 'static>(
        &self,
        way: &Rc<Way>,
        work: impl Future<Output = Result<T, Trouble>> + 'static,
    ) -> Result<T, Trouble> {
        let (answer, answered) = oneshot::channel();
        let (fate, way) = (self.fate(), Rc::clone(way));
        let comes = way.comes.get().max(Some(Instant::now() + fate.there));
        way.comes.set(comes);
        spawn_local(async move {
            let turn = way.turn.lock().await;
            sleep_until(comes.expect("it is the larger one")).await;
            let outcome = match fate.arrives {
                true => Some(work.await),
                false => None,
            };
            drop(turn);
            match outcome.filter(|_| fate.is_answered) {
                Some(outcome) => {
                    sleep(fate.back).await;
                    // Nobody may wait for it any more.
                    let _ = answer.send(outcome);
                }
                None => sleep(fate.silence).await,
            }
        });
        let unreachable = |_| Err(Trouble::Unreachable("no answer has come".into()));
        answered.await.unwrap_or_else(unreachable)
    }
}

pub(super) fn up_to(most: Duration, random: &mut fastrand::Rng) -> Duration {
    most.mul_f64(random.f64())
}

/// Passes on what the engine reports, if it is not lost.
async fn report(
    memory: Rc<Memory>,
    faults: Faults,
    random: Rc<RefCell<fastrand::Rng>>,
    to: mpsc::UnboundedSender<News>,
) {
    while !to.is_closed() {
        let news = memory.news().await;
        let (number, delay) = {
            let mut random = random.borrow_mut();
            (random.u32(..100), up_to(faults.delay, &mut random))
        };
        // Some of those that are lost are missed.
        let news = match number {
            _ if number >= faults.reports_lost => news,
            _ if number % 4 == 0 => News::Missed,
            _ => continue,
        };
        let to = to.clone();
        spawn_local(async move {
            sleep(delay).await;
            // The keeper may have ended.
            let _ = to.send(news);
        });
    }
}

impl Engine for Net {
    type Range = Span;

    async fn open(&self) -> Result<(), Trouble> {
        Ok(())
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        let (memory, request) = (Rc::clone(&self.memory), *request);
        let work = async move { memory.acquire(&request).await };
        self.call(&self.calls, work).await
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        let memory = Rc::clone(&self.memory);
        let work = async move { memory.renew(id, ttl).await };
        self.call(&self.renewals, work).await
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        let memory = Rc::clone(&self.memory);
        let work = async move { memory.release(id).await };
        self.call(&self.calls, work).await
    }

    async fn news(&self) -> News {
        match self.news.lock().await.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }
}
