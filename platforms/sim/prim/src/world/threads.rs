//! The life of virtual threads: start, sleep, wake, join and end.

use super::memory::{Buffer, drain};
use super::{Event, State, Time, Virtual, World, is_direct, is_running, suspend, turn, with, work};
use crate::clock::Duration;
use crate::futex::Woken;
use crate::local::Values;
use crate::run::{self, Fuzz};
use corosensei::Yielder;
use std::panic::Location;
use std::ptr;

pub(crate) fn enter_system() {
    if !is_direct() {
        work(with(World::system));
        turn();
    }
}

/// Puts the running thread to sleep in the futex queue of an address.
#[track_caller]
pub(crate) fn sleep(address: usize, deadline: Option<Duration>) -> Woken {
    if !is_running() {
        std::thread::yield_now();
        return Woken::Recheck;
    }
    let at = Location::caller();
    if is_direct() {
        // The thread unwinds, so no other thread can run and wake it.
        with(|world| {
            let panic = world.panic.take().unwrap_or_default();
            world.fatal = Some(format!("{panic}, and waits while it unwinds, at {at}"));
        });
    }
    with(|world| {
        world.note("sleeps", Some(address), None, Some(at));
        let me = world.running;
        world.sleepers.entry(address).or_default().push(me);
        world.pause_thread(State::Sleeping(address));
        let thread = world.current_mut();
        thread.sleeps += 1;
        let (time, sleeps) = (thread.time, thread.sleeps);
        if let Some(deadline) = deadline {
            let cycles = world.setup.machine.cycles_of(deadline).max(time);
            world.at(cycles, Event::Deadline(me, sleeps));
        }
    });
    suspend();
    with(|world| {
        let woken = world.current().woken;
        let what = match woken {
            Woken::Recheck => "wakes up",
            Woken::TimedOut => "times out",
        };
        world.note(what, Some(address), None, None);
        woken
    })
}

/// Wakes the first threads in the queue of an address, at most `at_most`. Returns whether there were any.
#[track_caller]
pub(crate) fn wake(address: usize, at_most: usize) -> bool {
    if !is_running() {
        return false;
    }
    let at = Location::caller();
    // The kernel takes the lock of the queue, which is a fence.
    drain();
    enter_system();
    with(|world| {
        world.note("wakes", Some(address), None, Some(at));
        let time = world.current().time;
        let wake = world.setup.machine.cycles.wake;
        let mut woken = world.sleepers.remove(&address).unwrap_or_default();
        let left = woken.split_off(at_most.min(woken.len()));
        if !left.is_empty() {
            world.sleepers.insert(address, left);
        }
        let any = !woken.is_empty();
        for sleeper in woken {
            world.threads[sleeper].woken = Woken::Recheck;
            world.resume_at(sleeper, time + wake);
        }
        any
    })
}

/// Starts a new virtual thread and returns its number.
pub(crate) fn spawn(work: Box<dyn FnOnce()>) -> usize {
    let thread = run::coroutine(work);
    with(|world| {
        let number = world.threads.len();
        let place = number % world.places.len();
        let core = world.places[place];
        let elder = world.places[..place].iter().filter(|&&at| at == core);
        let context = usize::from(core) + elder.count() * world.active.len();
        let parent = world
            .threads
            .get(world.running)
            .map_or(0, |parent| parent.time);
        let start = parent + world.setup.machine.cycles.wake;
        world.threads.push(Virtual {
            time: start,
            locals: Values::default(),
            index: None,
            hooks: Vec::new(),
            core,
            context,
            lost: 0,
            state: State::Ready,
            mark: String::new(),
            yielder: ptr::null(),
            sleeps: 0,
            woken: Woken::Recheck,
            granted: 0,
            buffer: Buffer::default(),
        });
        world.active[usize::from(core)] += 1;
        world.newborn.push(thread);
        world.at(start, Event::Resume(number));
        number
    })
}

/// Waits for the end of a thread.
pub(crate) fn join(thread: usize) {
    drain();
    turn();
    let is_done = with(|world| {
        let is_done = world.threads[thread].state == State::Done;
        if !is_done {
            world.pause_thread(State::Joining(thread));
        }
        is_done
    });
    if !is_done {
        suspend();
    }
}

pub(crate) fn started(yielder: &Yielder<(), ()>) {
    with(|world| world.current_mut().yielder = yielder);
}

pub(crate) fn finished(panicked: bool) {
    if panicked {
        with(|world| {
            let panic = world.panic.take();
            world.fatal = Some(panic.unwrap_or_else(|| format!("t{} panicked", world.running)));
        });
        return;
    }
    drain();
    with(|world| {
        let me = world.running;
        let time = world.current().time;
        world.pause_thread(State::Done);
        let joiners: Vec<usize> = (0..world.threads.len())
            .filter(|&thread| world.threads[thread].state == State::Joining(me))
            .collect();
        for joiner in joiners {
            world.resume_at(joiner, time);
        }
    });
}

impl World {
    /// The cost of this system call. It is random, from half to one and a half of the machine's number. If it were
    /// constant, threads that give way to each other could repeat the same steps for ever.
    fn system(&mut self) -> u64 {
        let system = self.setup.machine.cycles.system;
        if self.setup.fuzz == Fuzz::default() {
            system / 2 + self.rng.u64(..=system)
        } else {
            system
        }
    }

    /// Handles the deadline of a thread's sleep, unless the thread has been woken since.
    pub(super) fn deadline(&mut self, number: usize, sleeps: u64, time: Time) {
        let State::Sleeping(address) = self.threads[number].state else {
            return;
        };
        if self.threads[number].sleeps == sleeps {
            if let Some(sleepers) = self.sleepers.get_mut(&address) {
                sleepers.retain(|&sleeper| sleeper != number);
            }
            self.threads[number].woken = Woken::TimedOut;
            self.resume_at(number, time + self.setup.machine.cycles.wake);
        }
    }
}
