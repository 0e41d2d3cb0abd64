//! Random work on reader-writer locks, and what all threads do in concert afterwards.

use super::oracle::{Meeting, Place};
use super::{Case, Run};
use crate::sim::loads::guarded::Guarded;
use crate::sim::rw::{Held, Lock, Make, Readers, Subject};
use fastrand::Rng;
use prim_sim::clock::{Duration, Instant};
use prim_sim::{cost, mark, thread};
use spanlock_sim::range::raw::Mode;
use spanlock_sim::rw::Bias;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Runs a case on a few locks of a kind, biased from birth in most cases: else few would ever be.
pub(in crate::sim) fn run(lock: &'static Lock, case: &Case) -> Run {
    let machine = case.setup.machine.clone();
    case.run(
        move |rng, threads| {
            let biases = [Bias::Eager, Bias::Eager, Bias::Adaptive];
            let how = Make::on(&machine).with(rng.choice(biases).expect("three"));
            Resource {
                locks: (0..rng.usize(1..=3))
                    .map(|_| Biased::new((lock.make)(how)))
                    .collect(),
                readers: lock.readers,
                meetings: Default::default(),
                threads,
            }
        },
        |resource, hand| {
            let mut worker = Worker {
                resource,
                rng: hand.rng,
                met: 0,
            };
            for _ in 0..hand.operations {
                worker.operate();
            }
            worker.act_in_concert(hand.number);
        },
    )
}

struct Biased {
    lock: Box<dyn Subject>,
    place: Place,
    data: Guarded,
    /// Of the host: how often the data were written.
    wrote: AtomicU64,
}

impl Biased {
    fn new(lock: Box<dyn Subject>) -> Self {
        Self {
            lock,
            place: Place::default(),
            data: Guarded::default(),
            wrote: AtomicU64::new(0),
        }
    }
}

struct Resource {
    locks: Vec<Biased>,
    readers: Readers,
    meetings: [Meeting; 8],
    threads: usize,
}

/// How long a request waits.
#[derive(Debug, Clone, Copy)]
enum Patience {
    None,
    Until(Instant),
    Endless,
}

struct Worker<'a> {
    resource: &'a Arc<Resource>,
    rng: Rng,
    /// How many meetings it has been at.
    met: usize,
}

impl<'a> Worker<'a> {
    fn operate(&mut self) {
        match self.rng.u32(..16) {
            0..=8 => self.hold(0, 1),
            9..=10 => self.hold(0, 3),
            11..=12 => self.ask(),
            13 if self.rng.bool() => self.upgrade(),
            13 => self.downgrade(),
            14 if self.resource.readers == Readers::Recur => self.read_again(),
            14 => self.hold(0, 1),
            _ => self.delegate(),
        }
        let pause = self.rng.u64(..2000);
        cost::work(pause);
    }

    fn any(&mut self, from: usize) -> usize {
        self.rng.usize(from..self.resource.locks.len())
    }

    fn mode(&mut self) -> Mode {
        // Readers come thrice as often, or none would meet.
        match self.rng.u32(..4) {
            0 => Mode::Exclusive,
            _ => Mode::Shared,
        }
    }

    /// Holds up to so many locks at a time, each after those before it: so no two threads wait for each other.
    fn hold(&mut self, from: usize, depth: u32) {
        if depth == 0 || from >= self.resource.locks.len() {
            return;
        }
        let (at, mode) = (self.any(from), self.mode());
        let held = self
            .acquire(at, mode, Patience::Endless)
            .expect("waits forever");
        self.stay(at, mode);
        self.hold(at + 1, depth - 1);
        self.release(at, mode, held);
    }

    /// Asks for a lock, not at any price.
    fn ask(&mut self) {
        let (at, mode) = (self.any(0), self.mode());
        let lock = &self.resource.locks[at].lock;
        let patience = if lock.is_timed() && self.rng.bool() {
            let time = Duration::from_nanos(self.rng.u64(..100_000));
            Patience::Until(Instant::now() + time)
        } else {
            Patience::None
        };
        match self.acquire(at, mode, patience) {
            Some(held) => {
                self.stay(at, mode);
                self.release(at, mode, held);
            }
            None => mark(format!("gives up lock {at}")),
        }
    }

    /// Goes on as a reader, if the lock can do that.
    fn downgrade(&mut self) {
        let at = self.any(0);
        let resource = self.resource;
        mark(format!("asks to write lock {at}, and to share it then"));
        let held = resource.locks[at].lock.write_and_read(&mut || {
            self.enter(at, Mode::Exclusive);
            self.stay(at, Mode::Exclusive);
            mark(format!("shares lock {at}"));
            resource.locks[at].place.leave(Mode::Exclusive);
            resource.locks[at].place.enter(Mode::Shared);
        });
        if let Some(held) = held {
            self.stay(at, Mode::Shared);
            self.release(at, Mode::Shared, held);
        }
    }

    /// Reads, and goes on as a writer, if the lock can do that.
    fn upgrade(&mut self) {
        let at = self.any(0);
        let resource = self.resource;
        mark(format!("asks to read lock {at}, and to write it then"));
        let held = resource.locks[at].lock.read_and_write(&mut || {
            self.enter(at, Mode::Shared);
            self.stay(at, Mode::Shared);
            mark(format!("asks to write lock {at}"));
            resource.locks[at].place.leave(Mode::Shared);
        });
        if let Some(held) = held {
            self.enter(at, Mode::Exclusive);
            self.stay(at, Mode::Exclusive);
            self.release(at, Mode::Exclusive, held);
        }
    }

    /// Reads while it reads.
    fn read_again(&mut self) {
        let at = self.any(0);
        let read = |worker: &mut Self| -> Box<dyn Held + 'a> {
            let held = worker.acquire(at, Mode::Shared, Patience::Endless);
            worker.stay(at, Mode::Shared);
            held.expect("waits forever")
        };
        let (once, again) = (read(self), read(self));
        self.release(at, Mode::Shared, once);
        self.release(at, Mode::Shared, again);
    }

    /// Has a thread of its own do something, which exits while others work.
    fn delegate(&mut self) {
        mark("has a new thread work, and waits for it");
        let resource = Arc::clone(self.resource);
        let rng = self.rng.fork();
        let other = thread::spawn(move || {
            let mut worker = Worker {
                resource: &resource,
                rng,
                met: 0,
            };
            worker.operate();
        });
        let _ = other.join();
    }

    /// What all threads do together once nobody holds or wants anything.
    fn act_in_concert(&mut self, number: usize) {
        self.gather();
        if number == 0 {
            self.find_all_free();
        }
        if self.resource.readers != Readers::Exclude {
            self.gather();
            self.gather_inside();
            self.gather_behind_a_writer(number);
        }
        if self.resource.readers == Readers::Recur {
            self.gather();
            self.read_before_a_writer(number);
        }
    }

    fn gather(&mut self) {
        self.resource.meetings[self.met].await_all(self.resource.threads);
        self.met += 1;
    }

    /// What everybody has left is free, and has all that was written.
    fn find_all_free(&mut self) {
        // Until all stores are visible.
        cost::work(1_000_000);
        for (at, biased) in self.resource.locks.iter().enumerate() {
            let free = "everybody has left the lock, and a try fails";
            for mode in [Mode::Shared, Mode::Exclusive, Mode::Shared] {
                let held = self.acquire(at, mode, Patience::None).expect(free);
                self.release(at, mode, held);
            }
            let wrote = biased.wrote.load(Relaxed);
            assert_eq!(biased.data.lost(wrote), 0, "updates are lost");
        }
    }

    /// All read until all do.
    fn gather_inside(&mut self) {
        let held = self
            .acquire(0, Mode::Shared, Patience::Endless)
            .expect("waits forever");
        self.gather();
        self.release(0, Mode::Shared, held);
    }

    /// One writes until all others wait, then shares: they are let in while it still is.
    fn gather_behind_a_writer(&mut self, number: usize) {
        let resource = self.resource;
        let lock = &resource.locks[0].lock;
        let shared = (number == 0).then(|| {
            lock.write_and_read(&mut || {
                self.gather();
                // Others come, and sleep.
                cost::work(3_000_000);
                thread::yield_now();
                mark("shares lock 0");
            })
        });
        match shared.flatten() {
            Some(held) => {
                resource.locks[0].place.enter(Mode::Shared);
                self.gather();
                self.release(0, Mode::Shared, held);
            }
            None => {
                self.gather();
                self.gather_inside();
            }
        }
    }

    /// One reads again while another waits to write.
    fn read_before_a_writer(&mut self, number: usize) {
        match number {
            0 => {
                let once = self.acquire(0, Mode::Shared, Patience::Endless);
                self.gather();
                cost::work(1_000_000);
                let again = self.acquire(0, Mode::Shared, Patience::Endless);
                for held in [once, again] {
                    self.release(0, Mode::Shared, held.expect("waits forever"));
                }
            }
            1 => {
                self.gather();
                let held = self.acquire(0, Mode::Exclusive, Patience::Endless);
                self.release(0, Mode::Exclusive, held.expect("waits forever"));
            }
            _ => self.gather(),
        }
    }

    fn acquire(&self, at: usize, mode: Mode, patience: Patience) -> Option<Box<dyn Held + 'a>> {
        let resource: &'a Resource = self.resource;
        let lock = &resource.locks[at].lock;
        mark(format!("asks to {} lock {at}", told(mode)));
        let held = match (mode, patience) {
            (Mode::Shared, Patience::Endless) => Some(lock.read()),
            (Mode::Shared, Patience::None) => lock.try_read(),
            (Mode::Shared, Patience::Until(deadline)) => lock.read_until(deadline),
            (Mode::Exclusive, Patience::Endless) => Some(lock.write()),
            (Mode::Exclusive, Patience::None) => lock.try_write(),
            (Mode::Exclusive, Patience::Until(deadline)) => lock.write_until(deadline),
        }?;
        self.enter(at, mode);
        Some(held)
    }

    fn enter(&self, at: usize, mode: Mode) {
        mark(format!("is to {} lock {at}", told(mode)));
        self.resource.locks[at].place.enter(mode);
    }

    fn release(&self, at: usize, mode: Mode, held: Box<dyn Held + '_>) {
        self.resource.locks[at].place.leave(mode);
        mark(format!("releases lock {at}"));
        drop(held);
    }

    /// For a while, in which others run; now and then so long that those who wait go to sleep.
    fn stay(&mut self, at: usize, mode: Mode) {
        let longest = if self.rng.u32(..8) == 0 {
            100_000
        } else {
            3000
        };
        let stay = self.rng.u64(..longest);
        let Biased { data, wrote, .. } = &self.resource.locks[at];
        let work = || {
            cost::work(stay);
            thread::yield_now();
        };
        match mode {
            Mode::Shared => assert_eq!(data.read(work), 0, "half of a write is seen"),
            Mode::Exclusive => {
                data.write(work);
                wrote.fetch_add(1, Relaxed);
            }
        }
    }
}

fn told(mode: Mode) -> &'static str {
    match mode {
        Mode::Shared => "read",
        Mode::Exclusive => "write",
    }
}
