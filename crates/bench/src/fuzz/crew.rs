//! The threads of a case, and their meetings.

use fastrand::Rng;
use prim_sim::atomic::{AtomicU32, Ordering};
use prim_sim::{cost, futex, mark, thread};
use std::sync::Arc;

/// A resource under a kind of lock, and the work on it.
pub(crate) trait Work: Sized + Send + Sync + 'static {
    /// One random thing.
    fn operate(worker: &mut Worker<'_, Self>);

    /// The work that all threads do together once no request of the random part is left. Threads have numbers from 0.
    fn act_in_concert(worker: &mut Worker<'_, Self>, number: usize);
}

/// Threads and the resource that they share.
pub(crate) struct Crew<R> {
    pub(crate) resource: R,
    meetings: [Meeting; 8],
    pub(crate) threads: usize,
}

impl<R: Work> Crew<R> {
    pub(crate) fn new(resource: R, threads: usize) -> Self {
        Self {
            resource,
            meetings: Default::default(),
            threads,
        }
    }

    /// All that one of the threads does: so many random things, and its part of the work together.
    pub(crate) fn work(self: &Arc<Self>, number: usize, operations: u32, rng: Rng) {
        let mut worker = Worker::new(self, rng);
        for _ in 0..operations {
            worker.operate();
        }
        R::act_in_concert(&mut worker, number);
    }
}

/// A thread of a crew.
pub(crate) struct Worker<'a, R> {
    crew: &'a Arc<Crew<R>>,
    pub(crate) rng: Rng,
    /// How many meetings it has been at.
    met: usize,
}

impl<'a, R: Work> Worker<'a, R> {
    fn new(crew: &'a Arc<Crew<R>>, rng: Rng) -> Self {
        Self { crew, rng, met: 0 }
    }

    pub(crate) fn crew(&self) -> &'a Crew<R> {
        self.crew
    }

    pub(crate) fn resource(&self) -> &'a R {
        &self.crew.resource
    }

    /// One random thing, and a pause.
    fn operate(&mut self) {
        R::operate(self);
        let pause = self.rng.u64(..2000);
        cost::work(pause);
    }

    /// Has a thread of its own do one thing: a thread that exits while others work.
    pub(crate) fn delegate(&mut self) {
        mark("has a new thread work, and waits for it");
        let crew = Arc::clone(self.crew);
        let rng = self.rng.fork();
        let other = thread::spawn(move || Worker::new(&crew, rng).operate());
        let _ = other.join();
    }

    /// Waits until all threads of the crew have come to their next meeting.
    pub(crate) fn gather(&mut self) {
        self.crew.meetings[self.met].await_all(self.crew.threads);
        self.met += 1;
    }
}

/// Where all threads wait for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Meeting(AtomicU32);

impl Meeting {
    /// Returns when so many threads have called this.
    fn await_all(&self, threads: usize) {
        let all = u32::try_from(threads).expect("few");
        self.0.fetch_add(1, Ordering::AcqRel);
        futex::wake_all(&self.0);
        loop {
            let here = self.0.load(Ordering::Acquire);
            if here == all {
                return;
            }
            futex::wait(&self.0, here, None);
        }
    }
}
