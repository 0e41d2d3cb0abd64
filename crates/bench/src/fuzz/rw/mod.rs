//! The work on reader-writer locks: random requests, and then what all threads do together.

mod subject;

use crate::fuzz::crew::{Work, Worker};
use crate::fuzz::{Case, Lock, Run, holder, no_conflict};
use prim_sim::clock::{Duration, Instant};
use prim_sim::{cost, mark, thread};
use spanlock_records::trial::lock::Readers;
use spanlock_sim::range::raw::Mode;
use spanlock_sim::rw::Bias;
use spanlock_testkit::exclusion::{Holder, Place};
use spanlock_workbench_sim::rw::guarded::Guarded;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use subject::{Held, Row, Subject};

/// All that are fuzzed: the locks of the common table as users have them, and under BRAVO as published.
pub(crate) fn locks() -> Vec<Lock> {
    let rows = subject::fuzzed();
    rows.map(|row| Lock::new(row.name, row.role, move |case| run(row, case)))
        .collect()
}

/// Runs a case on a few locks of a kind, biased from birth in most cases: otherwise few would ever be.
fn run(row: Row, case: &Case) -> Run {
    let machine = case.setup.machine.clone();
    case.run(move |rng| {
        let biases = [Bias::EAGER, Bias::EAGER, Bias::STANDARD];
        let bias = rng.choice(biases).expect("three");
        Resource {
            locks: (0..rng.usize(1..=3))
                .map(|_| Biased::new(row.make(&machine, bias)))
                .collect(),
            readers: row.readers,
        }
    })
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
}

/// How long a request waits.
#[derive(Debug, Clone, Copy)]
enum Patience {
    None,
    Until(Instant),
    Endless,
}

impl Work for Resource {
    fn operate(worker: &mut Worker<'_, Self>) {
        match worker.rng.u32(..16) {
            0..=8 => worker.hold(0, 1),
            9..=10 => worker.hold(0, 3),
            11..=12 => worker.ask(),
            13 if worker.rng.bool() => worker.upgrade(),
            13 => worker.downgrade(),
            14 if worker.resource().readers == Readers::Recur => worker.read_again(),
            14 => worker.hold(0, 1),
            _ => worker.delegate(),
        }
    }

    fn act_in_concert(worker: &mut Worker<'_, Self>, number: usize) {
        worker.gather();
        if number == 0 {
            worker.find_all_free();
        }
        let readers = worker.resource().readers;
        if readers != Readers::Exclude {
            worker.gather();
            worker.gather_inside();
            worker.gather_behind_a_writer(number);
        }
        if readers == Readers::Recur {
            worker.gather();
            worker.read_before_a_writer(number);
        }
    }
}

impl<'a> Worker<'a, Resource> {
    fn any(&mut self, from: usize) -> usize {
        self.rng.usize(from..self.resource().locks.len())
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
        if depth == 0 || from >= self.resource().locks.len() {
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
        let lock = &self.resource().locks[at].lock;
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

    /// Any lock, for one thing and another afterwards.
    fn any_for(&mut self, first: &str, then: &str) -> (usize, &'a Resource) {
        let at = self.any(0);
        mark(format!("asks to {first} lock {at}, and to {then} it then"));
        (at, self.resource())
    }

    /// Is inside for a while in one mode, before it goes on in the other.
    fn pass(&mut self, at: usize, mode: Mode, then: &str) {
        self.enter(at, mode);
        self.stay(at, mode);
        mark(format!("{then} lock {at}"));
        self.leave(at, mode);
    }

    /// Goes on as a reader, if the lock can do that.
    fn downgrade(&mut self) {
        let (at, resource) = self.any_for("write", "share");
        let held = resource.locks[at].lock.write_and_read(&mut || {
            self.pass(at, Mode::Exclusive, "shares");
            no_conflict(resource.locks[at].place.enter(Holder::Reader));
        });
        if let Some(held) = held {
            self.stay(at, Mode::Shared);
            self.release(at, Mode::Shared, held);
        }
    }

    /// Reads, and goes on as a writer, if the lock can do that.
    fn upgrade(&mut self) {
        let (at, resource) = self.any_for("read", "write");
        let held = resource.locks[at].lock.read_and_write(&mut || {
            self.pass(at, Mode::Shared, "asks to write");
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

    /// All locks are free, and their data have all that was written.
    fn find_all_free(&mut self) {
        // Until all stores are visible.
        cost::work(1_000_000);
        for (at, biased) in self.resource().locks.iter().enumerate() {
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
        let resource = self.resource();
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
                no_conflict(resource.locks[0].place.enter(Holder::Reader));
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
        let resource = self.resource();
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
        no_conflict(self.resource().locks[at].place.enter(holder(mode)));
    }

    fn leave(&self, at: usize, mode: Mode) {
        no_conflict(self.resource().locks[at].place.leave(holder(mode)));
    }

    fn release(&self, at: usize, mode: Mode, held: Box<dyn Held + '_>) {
        self.leave(at, mode);
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
        let Biased { data, wrote, .. } = &self.resource().locks[at];
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
