//! The life of threads: how they begin and end, and sleep, and wait for each other.

use super::memory::{Buffer, drain};
use super::{Event, State, Time, Virtual, World, enter_system, is_running, suspend, turn, with};
use crate::clock::Duration;
use crate::futex::Woken;
use crate::local::Values;
use crate::run;
use corosensei::Yielder;
use std::panic::Location;
use std::ptr;

/// Sleeps in the queue of an address.
#[track_caller]
pub(crate) fn sleep(address: usize, deadline: Option<Duration>) -> Woken {
    if !is_running() {
        std::thread::yield_now();
        return Woken::LookAgain;
    }
    let at = Location::caller();
    if std::thread::panicking() {
        // Others cannot run meanwhile.
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
            Woken::LookAgain => "wakes up",
            Woken::TimedOut => "times out",
        };
        world.note(what, Some(address), None, None);
        woken
    })
}

/// Wakes the first in the queue of an address, at most so many.
#[track_caller]
pub(crate) fn wake(address: usize, at_most: usize) {
    if !is_running() {
        return;
    }
    let at = Location::caller();
    // In the kernel's queue lock, which is a fence.
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
        for sleeper in woken {
            world.threads[sleeper].woken = Woken::LookAgain;
            world.resume_at(sleeper, time + wake);
        }
    });
}

/// A new virtual thread; its number.
pub(crate) fn spawn(work: impl FnOnce() + 'static) -> usize {
    let thread = run::coroutine(work);
    with(|world| {
        let number = world.threads.len();
        let core = world.places[number % world.places.len()];
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
            state: State::Ready,
            yielder: ptr::null(),
            sleeps: 0,
            woken: Woken::LookAgain,
            granted: 0,
            buffer: Buffer::default(),
        });
        world.active[usize::from(core)] += 1;
        world.newborn.push(thread);
        world.at(start, Event::Resume(number));
        number
    })
}

/// Waits for a thread's end.
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
    /// A sleeper's time is up, unless it sleeps no more.
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
