//! The threads of a soak.

use super::{Fault, Plan, RESOURCE, Several, Slots, Soaked, Tally, Watch};
use crate::target::{GivesUp, Readers, Target};
use fastrand::Rng;
use spanlock::range::raw::Mode;
use spanlock_records::record::Meeting;
use spanlock_workbench::crew;
use std::iter;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The most ranges that a thread holds at once.
const MOST: usize = 4;

/// How often the watchdog checks.
const CHECKS: Duration = Duration::from_millis(5);

/// A lock that is soaked.
///
/// Its threads are not scoped: one that is stuck must not keep the program from saying so.
pub struct Soaking<T> {
    plan: Plan,
    lock: Arc<Site<T>>,
    /// The sum of what all threads so far added to the slots.
    raised: u64,
}

struct Site<T> {
    lock: T,
    slots: Slots,
}

/// The threads of one round.
struct Team {
    stop: AtomicBool,
    fault: Mutex<Option<Fault>>,
    /// A number of each thread, which it raises as it makes progress.
    beats: Box<[AtomicU64]>,
}

impl Team {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The first fault is the one to report.
    fn report(&self, fault: Fault) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
        self.stop();
    }

    fn beats(&self) -> impl Iterator<Item = u64> {
        self.beats.iter().map(|beat| beat.load(Ordering::Relaxed))
    }
}

impl<T: Target + Send + 'static> Soaking<T> {
    /// Of this lock.
    pub fn new(lock: T, plan: Plan) -> Self {
        let slots = Slots::new(RESOURCE);
        Self {
            plan,
            lock: Arc::new(Site { lock, slots }),
            raised: 0,
        }
    }

    /// Runs `work` on so many threads until they return or, after `time`, are asked to.
    fn team<W: Send + 'static>(
        &self,
        threads: usize,
        time: Duration,
        work: impl Fn(&Site<T>, &Team, usize) -> W + Clone + Send + 'static,
    ) -> Result<Vec<W>, Fault> {
        let team = Arc::new(Team {
            stop: AtomicBool::new(false),
            fault: Mutex::new(None),
            beats: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        });
        let crew: Vec<JoinHandle<W>> = (0..threads)
            .map(|thread| {
                let (site, team, work) = (Arc::clone(&self.lock), Arc::clone(&team), work.clone());
                thread::spawn(move || {
                    let done = work(&site, &team, thread);
                    team.beats[thread].store(Watch::DONE, Ordering::Relaxed);
                    done
                })
            })
            .collect();
        let begin = Instant::now();
        let mut watch = Watch::new(threads, self.plan.stall, begin);
        while !crew.iter().all(JoinHandle::is_finished) {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                team.stop();
            }
            if let Some((thread, time)) = watch.stuck(team.beats(), Instant::now()) {
                team.stop();
                return Err(Fault::Stuck {
                    thread,
                    time,
                    snapshot: self.lock.lock.snapshot(),
                });
            }
            thread::sleep(if left.is_zero() {
                CHECKS
            } else {
                left.min(CHECKS)
            });
        }
        let joined = crew.into_iter().map(|worker| {
            let done = worker.join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let done = joined.collect();
        let fault = team
            .fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        fault.map_or(Ok(done), Err)
    }

    /// Two threads hold something and wait for each other meanwhile.
    fn meet(&self, meeting: Meeting) -> Result<(), Fault> {
        let inside = Arc::new(AtomicUsize::new(0));
        let met = self.team(2, Duration::MAX, move |site, team, thread| {
            let wait = || {
                inside.fetch_add(1, Ordering::Relaxed);
                while inside.load(Ordering::Relaxed) < 2 && team.goes_on() {
                    thread::yield_now();
                }
            };
            let at = thread as u64;
            match meeting {
                Meeting::Neighbours => {
                    let _held = site.lock.write(at..at + 1);
                    wait();
                }
                Meeting::Readers => {
                    let _held = site.lock.read(0..RESOURCE.units);
                    wait();
                }
            }
        });
        match met {
            Err(Fault::Stuck { .. }) => Err(Fault::Apart(meeting)),
            met => met.map(drop),
        }
    }
}

impl<T: Target + Send + 'static> Soaked for Soaking<T> {
    fn meetings(&self) -> Vec<Meeting> {
        let neighbours = !matches!(self.plan.several, Several::Never(_));
        let readers = T::READERS == Readers::Share;
        let meet = |can: bool, meeting| can.then_some(meeting);
        let all = [
            meet(neighbours, Meeting::Neighbours),
            meet(readers, Meeting::Readers),
        ];
        all.into_iter().flatten().collect()
    }

    fn round(&mut self, number: u32, time: Duration) -> Result<Tally, Fault> {
        for meeting in self.meetings() {
            self.meet(meeting)?;
        }
        let plan = self.plan;
        let done = self.team(plan.threads, time, move |site, team, thread| {
            let rng = crew::rng(plan.seed, number, thread);
            let mut worker = Worker {
                site,
                plan,
                thread,
                rng,
                tally: Tally::default(),
                raised: 0,
            };
            while team.goes_on() {
                team.beats[thread].fetch_add(1, Ordering::Relaxed);
                if let Err(fault) = worker.step() {
                    team.report(fault);
                }
            }
            (worker.tally, worker.raised)
        })?;
        let mut all = Tally::default();
        for (tally, raised) in done {
            all.acquired += tally.acquired;
            all.gave_up += tally.gave_up;
            all.most_held = all.most_held.max(tally.most_held);
            all.longest_wait = all.longest_wait.max(tally.longest_wait);
            self.raised += raised;
        }
        match self.lock.slots.total() {
            found if found == self.raised => Ok(all),
            found => Err(Fault::Met(format!(
                "units hold {found} where {} was added",
                self.raised
            ))),
        }
    }
}

struct Worker<'a, T: Target> {
    site: &'a Site<T>,
    plan: Plan,
    thread: usize,
    rng: Rng,
    tally: Tally,
    /// The sum of what it added to the slots.
    raised: u64,
}

/// A range that is held until this is dropped.
struct Held<'a, T: Target + 'a> {
    thread: usize,
    slots: &'a Slots,
    range: Range<u64>,
    mode: Mode,
    _guard: Guard<'a, T>,
}

/// Kept only to be dropped.
enum Guard<'a, T: Target + 'a> {
    Read(T::Read<'a>),
    Write(T::Write<'a>),
}

impl<T: Target> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.slots.leave(self.thread, &self.range, self.mode);
    }
}

impl<'a, T: Target> Worker<'a, T> {
    /// Holds one range or several for a moment, or gives up.
    fn step(&mut self) -> Result<(), Fault> {
        let mut held: Vec<Held<'a, T>> = Vec::with_capacity(MOST);
        for (number, range) in self.ranges().into_iter().enumerate() {
            let only_try = number > 0 && self.plan.several == Several::Trying;
            let limit = if only_try {
                Some(Duration::ZERO)
            } else {
                self.limit()
            };
            let Some(one) = self.acquire(range, limit) else {
                self.tally.gave_up += 1;
                break;
            };
            let slots = &self.site.slots;
            slots.enter(self.thread, &one.range, one.mode)?;
            held.push(one);
        }
        self.tally.acquired += held.len() as u64;
        self.tally.most_held = self.tally.most_held.max(held.len());
        let meanwhile = self.rng.u8(..8);
        let linger = || match meanwhile {
            0 => thread::yield_now(),
            n => (1..n).for_each(|_| std::hint::spin_loop()),
        };
        for one in &held {
            self.site.slots.read(&one.range)?;
            if one.mode == Mode::Exclusive {
                self.site.slots.write(&one.range, linger);
                self.raised += 2 * (one.range.end - one.range.start);
            } else {
                linger();
            }
        }
        while !held.is_empty() {
            drop(held.swap_remove(self.rng.usize(..held.len())));
        }
        Ok(())
    }

    fn acquire(&mut self, range: Range<u64>, limit: Option<Duration>) -> Option<Held<'a, T>> {
        let lock = &self.site.lock;
        let mode = match T::READERS {
            Readers::Share if self.rng.bool() => Mode::Shared,
            Readers::Share | Readers::Exclude => Mode::Exclusive,
        };
        let units = range.clone();
        let begin = Instant::now();
        let guard = match (mode, limit) {
            (Mode::Shared, None) => Guard::Read(lock.read(units)),
            (Mode::Exclusive, None) => Guard::Write(lock.write(units)),
            (Mode::Shared, Some(limit)) => Guard::Read(lock.read_within(units, limit)?),
            (Mode::Exclusive, Some(limit)) => Guard::Write(lock.write_within(units, limit)?),
        };
        self.tally.longest_wait = self.tally.longest_wait.max(begin.elapsed());
        Some(Held {
            thread: self.thread,
            slots: &self.site.slots,
            range,
            mode,
            _guard: guard,
        })
    }

    /// How long the next request waits, of what the lock can do; `None` for as long as it takes.
    fn limit(&mut self) -> Option<Duration> {
        match (self.rng.u8(..4), T::GIVES_UP) {
            (0, GivesUp::AtOnce | GivesUp::InTime) => Some(Duration::ZERO),
            (1, GivesUp::InTime) => Some(Duration::from_micros(self.rng.u64(1..200))),
            _ => None,
        }
    }

    /// One range or several, in ascending order and disjoint.
    fn ranges(&mut self) -> Vec<Range<u64>> {
        let several = !matches!(self.plan.several, Several::Never(_));
        let most = match self.rng.u8(..4) {
            0 if several => MOST,
            _ => 1,
        };
        let start = self.rng.u64(..RESOURCE.units);
        let first = self.range(start);
        let next = |before: &Range<u64>| {
            let start = before.end + self.rng.u64(..16);
            (start < RESOURCE.units).then(|| self.range(start))
        };
        iter::successors(Some(first), next).take(most).collect()
    }

    /// Mostly narrow, now and then wide, seldom to the end.
    fn range(&mut self, start: u64) -> Range<u64> {
        let most = RESOURCE.units - start;
        let units = match self.rng.u8(..64) {
            0 => most,
            1..4 => self.rng.u64(1..=most),
            _ => self.rng.u64(1..=8).min(most),
        };
        start..start + units
    }
}
