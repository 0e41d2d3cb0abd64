//! A task takes steps of its request (`machine.rs`) in each poll, until it is granted, gives up, or has to wait.
//!
//! A poll leaves the request's place in the queue and a [`TaskProgress`], which is plain data. Any thread may go on
//! with them. A poll does not spin, as the holder may have to run on this very thread.

use super::WaitQueue;
use super::acquisition::{Acquisition, Refused};
use super::entry::Sleeper;
use super::machine::Step;
use super::pursued::Pursued;
use super::tasks::Found;
use super::waiter::{Pursuit, Waiter};
use crate::observe::Outcome;
use crate::range::owner::{ListedTask, Owner};
use crate::wait::WakerId;
use std::task::{Poll, Waker, ready};

/// How often a poll tries while others are faster each time.
const ROUNDS: u32 = 4;

/// What a request of a task keeps from poll to poll. It is empty as long as it has not met anybody: most requests are
/// granted in their first poll, and a future is moved about before that.
#[derive(Debug, Default)]
pub(in crate::range) struct TaskProgress(Option<Box<Progress>>);

/// How far a request has come.
#[derive(Debug, Default)]
struct Progress {
    pursuit: Pursuit,
    /// The last waker that the queue was given: the clone, since what it was cloned from may be gone and another one be
    /// in its place.
    waker: Option<WakerId>,
    /// Where its owner lists it.
    listed: Option<ListedTask>,
    /// How many locks, one inside the other, count it while it waits.
    limits: u8,
}

impl TaskProgress {
    /// Whether the request has not met anybody yet. Then it is not in the queue.
    #[inline]
    pub(in crate::range) fn is_new(&self) -> bool {
        self.0.is_none()
    }

    fn pursuit(&self) -> Pursuit {
        self.0
            .as_ref()
            .map_or_else(Pursuit::default, |progress| progress.pursuit)
    }

    fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }

    /// Keeps what is known so far, if that may be needed: foreign code may panic.
    fn note(&mut self, pursuit: Pursuit) {
        if self.0.is_some() || pursuit.id.is_some() {
            self.progress().pursuit = pursuit;
        }
    }

    /// A waker for the queue. That is foreign code.
    fn clone_of(&mut self, waker: &Waker) -> Waker {
        let fresh = waker.clone();
        self.progress().waker = Some(WakerId::of(&fresh));
        fresh
    }

    /// Whether that waker is the last one that the queue was given.
    fn has_given(&self, waker: &Waker) -> bool {
        let given = self.0.as_ref().and_then(|progress| progress.waker);
        given == Some(WakerId::of(waker))
    }

    /// Whether the lock that is asked, which limits what is asked for, counts it already. Then the one inside is next.
    pub(in crate::range) fn leave_limit(&mut self) -> bool {
        let progress = self.0.as_mut().filter(|progress| progress.limits > 0);
        progress.map(|progress| progress.limits -= 1).is_some()
    }

    /// The lock that was asked counts it while it waits.
    pub(in crate::range) fn enter_limit(&mut self) {
        self.progress().limits += 1;
    }

    /// Ends a listing with the owner.
    fn unlist(&mut self, owner: &Owner) {
        let progress = self.0.as_mut();
        owner.unlist(progress.and_then(|progress| progress.listed.take()));
    }
}

/// Who waits for a request of an owner.
pub(in crate::range) enum Runner<'k> {
    /// The running thread, until it is over.
    Thread,
    /// A task, which the thread polls.
    Task {
        kept: &'k mut TaskProgress,
        waker: &'k Waker,
    },
}

impl Runner<'_> {
    /// Whether the request is tried before all is made ready that a wait needs.
    #[inline]
    pub(in crate::range) fn tries_first(&self) -> bool {
        match self {
            Self::Thread => true,
            Self::Task { kept, .. } => kept.is_new(),
        }
    }
}

/// What came of a request for which a thread has waited.
pub(in crate::range) fn at_once<T>(outcome: Poll<T>) -> T {
    match outcome {
        Poll::Ready(over) => over,
        Poll::Pending => unreachable!("a thread waits until its request is over"),
    }
}

impl Waiter<'_> {
    /// Goes on until the request is over, or, if it is a task's, has to wait.
    pub(in crate::range) fn run<A: Acquisition>(
        self,
        acquisition: &mut A,
        blocker: Option<A::Blocker>,
        runner: Runner<'_>,
    ) -> Poll<Result<A::Token, Refused>> {
        match runner {
            Runner::Thread => Poll::Ready(self.acquire(acquisition, blocker)),
            Runner::Task { kept, waker } => {
                drop(blocker);
                self.poll(acquisition, kept, waker)
            }
        }
    }

    /// Turns it into a task's request.
    fn of_task(self, kept: &TaskProgress, waker: &Waker) -> Self {
        let sleeper = Sleeper::Task {
            waker: WakerId::of(waker),
            deadline: self.wait.deadline(),
        };
        let pursuit = kept.pursuit();
        Self {
            pursuit,
            sleeper,
            ..self
        }
    }

    /// Tries until the request is granted, gives up, or has to wait.
    fn poll<A: Acquisition>(
        self,
        acquisition: &mut A,
        kept: &mut TaskProgress,
        waker: &Waker,
    ) -> Poll<Result<A::Token, Refused>> {
        let mut task = self.of_task(kept, waker);
        let pursued = Pursued(&mut task);
        let outcome = ready!(pursued.0.go_on(acquisition, kept, waker));
        std::mem::forget(pursued);
        kept.note(Pursuit::default());
        if let Some(owner) = task.owner {
            kept.unlist(owner);
        }
        Poll::Ready(task.end(acquisition, outcome))
    }

    /// Takes steps, up to what came of the poll.
    fn go_on<A: Acquisition>(
        &mut self,
        acquisition: &mut A,
        kept: &mut TaskProgress,
        waker: &Waker,
    ) -> Poll<Result<A::Token, Refused>> {
        if self.sleeps_on(kept, waker) {
            return self.pend(kept, waker);
        }
        self.refused()?;
        for round in 0..ROUNDS {
            // First: to clone a waker and to compare keys is to run foreign code, which may panic.
            kept.note(self.pursuit);
            if round > 0 && self.waker.is_none() {
                self.waker = Some(kept.clone_of(waker));
            }
            match self.step(acquisition, None)? {
                Step::Granted(token) => return Poll::Ready(Ok(token)),
                Step::Again => {}
                Step::Asleep(_) => return self.pend(kept, waker),
            }
        }
        // A poll is short. Nobody holds the range for long, or somebody would have been in the way.
        kept.progress().pursuit = self.pursuit;
        waker.wake_by_ref();
        Poll::Pending
    }

    /// Whether the request was not woken. Then this is the waker to wake.
    fn sleeps_on(&mut self, kept: &mut TaskProgress, waker: &Waker) -> bool {
        let Some(id) = self.pursuit.id else {
            return false;
        };
        // The timer has used up the waker of a request that is out of time, which may be a little early.
        let has_it = kept.has_given(waker) && self.wait.deadline().is_none();
        // Foreign code: not under the mutex.
        let fresh = (!has_it).then(|| kept.clone_of(waker));
        let found = self
            .queue
            .with_queue(|queue, wakeups| queue.resume(id, fresh, wakeups));
        match found {
            Found::Asleep => true,
            Found::Woken { reserved } => {
                self.pursuit.reserved = reserved;
                false
            }
        }
    }

    /// Leaves the request asleep, unless it may not wait.
    fn pend<T>(&mut self, kept: &mut TaskProgress, waker: &Waker) -> Poll<Result<T, Refused>> {
        // First: what follows is foreign code, which may panic.
        kept.progress().pursuit = self.pursuit;
        self.observe();
        kept.progress().pursuit = self.pursuit;
        if self.wait.is_over() {
            return Poll::Ready(Err(Refused::OutOfTime));
        }
        match self.owner {
            Some(owner) if !owner.list_task(&mut kept.progress().listed, waker) => {
                Poll::Ready(Err(Refused::Cancelled))
            }
            _ => Poll::Pending,
        }
    }
}

impl WaitQueue {
    /// A request is given up that was polled, and is not over.
    pub(in crate::range) fn forget(&self, kept: &mut TaskProgress, owner: &Owner) {
        let Some(progress) = kept.0.take() else {
            return;
        };
        let Progress {
            pursuit, listed, ..
        } = *progress;
        if let Some(id) = pursuit.id {
            let observed = self.with_queue(|queue, wakeups| {
                let observed = queue.observed(id, pursuit.observed);
                queue.cancelled(id, wakeups);
                observed
            });
            if let Some(observed) = observed {
                observed.end(Outcome::Dropped);
            }
        }
        owner.unlist(listed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Attempt, Holder, HolderId, Patience, Standing};
    use super::{Acquisition, Runner, TaskProgress, WaitQueue, Waiter};
    use crate::deadlock::Deadlocks;
    use crate::range::inspect::{Request, SelfDeadlock};
    use crate::range::raw::{Mode, Wait};
    use crate::range::span::Span;
    use crate::range::thread;
    use prim::atomic::{AtomicUsize, Ordering};
    use prim::clock::{Duration, Instant};
    use prim::sync::Arc;
    use prim::timer::Due;
    use std::panic::Location;
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn request() -> Request {
        Request::new(Span::ALL, Mode::Exclusive, 1)
    }

    /// A range, and whether somebody has it.
    struct IsTaken(bool);

    impl Acquisition for IsTaken {
        type Token = ();
        type Blocker = ();

        fn attempt(&mut self) -> Attempt<(), ()> {
            match self.0 {
                true => Attempt::Blocked(()),
                false => Attempt::Granted(()),
            }
        }

        fn look(&self, (): &()) -> Standing {
            match self.0 {
                true => Standing::Stays,
                false => Standing::Gone,
            }
        }

        fn deadlock_with(&self, (): &()) -> Option<SelfDeadlock> {
            None
        }

        fn mark(&self, (): &()) -> Option<Holder> {
            let request = request();
            self.0.then_some(Holder {
                id: 1,
                request,
                at: None,
            })
        }

        fn held(&self) -> Vec<Request> {
            Vec::new()
        }

        fn adopt(&self, (): &mut (), _: &Request) -> HolderId {
            1
        }
    }

    /// Where there is no timer the queue rings at once.
    #[test]
    fn a_task_that_is_called_before_its_time_is_called_again() {
        let queue = WaitQueue::new(Patience::ENDLESS, Deadlocks::OFF);
        let deadline = Instant::now() + Duration::from_secs(1000);
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let woken = || count.0.load(Ordering::Relaxed);
        let mut kept = TaskProgress::default();
        let mut is_pending = |is_taken| {
            thread::with_record(|record| {
                let (wait, patience) = (Wait::Until(deadline), Patience::ENDLESS);
                let at = Location::caller();
                let waiter = Waiter::new(&queue, record, request(), wait, patience, at);
                let (kept, waker) = (&mut kept, &waker);
                let runner = Runner::Task { kept, waker };
                let polled = waiter.run(&mut IsTaken(is_taken), None, runner);
                polled.is_pending()
            })
        };
        assert!(is_pending(true));
        let shared = queue.queue.get().expect("a request sleeps");
        Arc::clone(shared).due(deadline);
        assert_eq!(woken(), 1);
        assert!(is_pending(true));
        queue.with_queue(|queue, wakeups| queue.holders_left([1], wakeups));
        assert_eq!(woken(), 2);
        assert!(!is_pending(false));
    }
}
