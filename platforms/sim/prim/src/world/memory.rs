//! Loads, stores, read-modify-writes and fences: total store order, or something weaker.
//!
//! ```text
//!   store ---> the thread's store buffer ---- drains in order ----> visible to all threads
//!                    |                                                    |
//!   load  <--- own pending store, if any <------ otherwise ----- the visible value
//! ```
//!
//! A store goes into its thread's *store buffer* and becomes *visible* to other threads later, in the order of the
//! buffer. The thread itself sees it at once. Stores of several threads to one word become visible in the order in
//! which they were issued, which is one of the orders that hardware allows.
//!
//! The host's memory always holds the value that was issued last. So a thread that owns a word exclusively may read it,
//! move it and free it, and a store that becomes visible later does not touch the memory. [`Pending`] has the value
//! that other threads see while stores to a word are pending.

use super::line::{Access, Requester};
use super::{Event, State, Time, World, is_direct, turn, wait, with};
use crate::run::Rmw;
use std::collections::VecDeque;
use std::panic::Location;
use std::ptr;

/// A word of the host's memory.
pub trait Cell {
    /// The value of the word.
    fn get(&self) -> u64;
    /// Changes the value.
    fn set(&self, bits: u64);
}

fn address(cell: &impl Cell) -> usize {
    ptr::from_ref(cell).addr()
}

/// A word with pending stores.
pub(super) struct Pending {
    /// The value for threads without a pending store to this word.
    visible: u64,
    /// The pending stores with their threads, in the order of issue.
    stores: VecDeque<(usize, u64)>,
    /// The threads that wait for one of the stores to become visible.
    waiting: Vec<usize>,
}

/// The value that a thread sees in a word.
enum View {
    /// The value in the host's memory.
    Issued,
    /// An older value.
    Older(u64),
}

/// A thread's store buffer.
#[derive(Default)]
pub(super) struct Buffer {
    /// Addresses and values, the oldest first.
    stores: VecDeque<(usize, u64)>,
    /// The number of stores that have left the buffer.
    left: u64,
    /// Whether the oldest store waits for another thread's store to the same word.
    is_blocked: bool,
    /// The threads that wait for a store to leave.
    awaited_by: Vec<usize>,
    /// The time when the store that left last became visible.
    done: Time,
}

/// Gets a line, after waiting in its queue if need be. Returns the cost, which the caller adds to the thread's clock
/// after the effect.
fn obtain(address: usize, access: Access) -> u64 {
    let takes = with(|world| {
        let line = world.line(address);
        let (who, core) = (Requester::Thread(world.running), world.current().core);
        let now = world.current().time;
        world.request(line, who, access, core, now)
    });
    takes.unwrap_or_else(|| {
        wait("a line");
        with(|world| world.current().granted)
    })
}

#[track_caller]
pub(crate) fn load(cell: &impl Cell) -> u64 {
    if is_direct() {
        return seen(cell);
    }
    let at = Location::caller();
    let place = address(cell);
    turn();
    let takes = if with(|world| world.has_own(place)) {
        with(|world| world.setup.machine.cycles.load_hit)
    } else {
        obtain(place, Access::Load)
    };
    let value = seen(cell);
    with(|world| {
        world.note("load", Some(place), Some(value), Some(at));
        world.current_mut().time += takes;
    });
    value
}

/// The value that the running thread sees in a word. It costs no virtual time.
fn seen(cell: &impl Cell) -> u64 {
    match super::peek(|world| world.view(address(cell))) {
        Some(View::Older(value)) => value,
        Some(View::Issued) | None => cell.get(),
    }
}

#[track_caller]
pub(crate) fn store(cell: &impl Cell, value: u64) {
    if is_direct() {
        settle(address(cell));
        cell.set(value);
        return;
    }
    let at = Location::caller();
    turn();
    while with(World::buffer_is_full) {
        wait("room in its store buffer");
    }
    issue(cell, value);
    with(|world| {
        world.note("store", Some(address(cell)), Some(value), Some(at));
        world.current_mut().time += 1;
    });
}

/// Puts a store into the buffer.
fn issue(cell: &impl Cell, value: u64) {
    let before = cell.get();
    with(|world| {
        let me = world.running;
        let pending = world
            .pending
            .entry(address(cell))
            .or_insert_with(|| Pending {
                visible: before,
                stores: VecDeque::new(),
                waiting: Vec::new(),
            });
        pending.stores.push_back((me, value));
        let now = world.current().time;
        let buffer = &mut world.current_mut().buffer;
        buffer.stores.push_back((address(cell), value));
        if buffer.stores.len() == 1 {
            world.drain_at(me, now + 1);
        }
    });
    cell.set(value);
}

/// Makes the newest pending store of a word the visible value, before a thread changes the word without virtual time.
fn settle(address: usize) {
    if super::is_running() {
        with(|world| {
            if let Some(pending) = world.pending.get_mut(&address)
                && let Some((_, newest)) = pending.stores.back()
            {
                pending.visible = *newest;
            }
        });
    }
}

#[track_caller]
pub(crate) fn update(cell: &impl Cell, what: &'static str, f: impl Fn(u64) -> Option<u64>) -> u64 {
    if is_direct() {
        let before = seen(cell);
        settle(address(cell));
        if let Some(after) = f(before) {
            cell.set(after);
        }
        return before;
    }
    let at = Location::caller();
    let place = address(cell);
    let rmw = with(|world| world.setup.rmw);
    turn();
    let takes = match rmw {
        Rmw::Fences => {
            drain();
            turn();
            obtain(place, Access::Rmw)
        }
        Rmw::Buffered => loop {
            // No other thread may change the word between the read-modify-write and the moment it becomes visible.
            if with(|world| world.waits_for_others(place)) {
                wait("a word that another thread changes");
            } else if with(World::buffer_is_full) {
                wait("room in its store buffer");
            } else {
                let takes = obtain(place, Access::Rmw);
                if !with(|world| world.has_others(place)) {
                    break takes;
                }
            }
        },
    };
    let before = seen(cell);
    let after = f(before);
    with(|world| {
        let what = if after.is_none() { "cas fails" } else { what };
        world.note(what, Some(place), Some(after.unwrap_or(before)), Some(at));
    });
    if let Some(after) = after {
        match rmw {
            Rmw::Buffered => issue(cell, after),
            Rmw::Fences => {
                // Stores that other threads have issued already come after this one.
                let is_newest = with(|world| match world.pending.get_mut(&place) {
                    Some(pending) => {
                        pending.visible = after;
                        false
                    }
                    None => true,
                });
                if is_newest {
                    cell.set(after);
                }
                with(|world| world.changed(place, world.current().time + takes));
            }
        }
    }
    with(|world| world.current_mut().time += takes);
    before
}

/// Waits until the running thread's stores are visible.
pub(crate) fn drain() {
    if is_direct() {
        return;
    }
    let me = with(|world| world.running);
    await_stores(me, u64::MAX);
    with(|world| {
        let thread = world.current_mut();
        thread.time = thread.time.max(thread.buffer.done);
    });
}

/// Waits until a thread's store buffer is empty, or until `many` stores have left it since the run began.
fn await_stores(of: usize, many: u64) {
    while with(|world| {
        let me = world.running;
        let buffer = &mut world.threads[of].buffer;
        let waits = !buffer.stores.is_empty() && buffer.left < many;
        if waits {
            buffer.awaited_by.push(me);
        }
        waits
    }) {
        wait("stores to become visible");
    }
}

/// Where the caller is; `None` outside a run, where fences do nothing.
#[track_caller]
fn caller() -> Option<&'static Location<'static>> {
    let at = Location::caller();
    (!is_direct()).then_some(at)
}

/// A full fence of all threads, which interrupts the others.
#[track_caller]
pub(crate) fn fence_everybody() {
    let Some(at) = caller() else { return };
    drain();
    super::enter_system();
    let interrupted: Vec<(usize, u64)> = with(|world| {
        world.note("fences all", None, None, Some(at));
        let (me, lost) = (world.running, world.setup.machine.cycles.interrupted);
        let others = world.threads.iter_mut().enumerate();
        let others = others.filter(|(number, _)| *number != me);
        others
            .map(|(number, thread)| {
                if thread.is_on_core() {
                    thread.lost += lost;
                }
                let buffer = &thread.buffer;
                (number, buffer.left + buffer.stores.len() as u64)
            })
            .collect()
    });
    // From here on each load of another thread is after its interrupt, and sees the earlier stores of this thread.
    for (number, stores) in interrupted {
        await_stores(number, stores);
    }
    super::work(with(|world| world.setup.machine.cycles.interrupt));
}

#[track_caller]
pub(crate) fn fence() {
    let Some(at) = caller() else { return };
    turn();
    drain();
    with(|world| {
        world.note("fence", None, None, Some(at));
        let fence = world.setup.machine.cycles.fence;
        world.current_mut().time += fence;
    });
}

#[track_caller]
pub(crate) fn fence_after_rmw() {
    if super::is_running() && with(|world| world.setup.rmw == Rmw::Buffered) {
        fence();
    }
}

/// A plain access, which has a cost and no effect.
pub(crate) fn touch(address: usize, access: Access) {
    if is_direct() {
        return;
    }
    turn();
    with(|world| {
        let line = world.line(address);
        let (core, now) = (world.current().core, world.current().time);
        let cycles = &world.setup.machine.cycles;
        let (overlap, hit) = (cycles.overlap, cycles.load_hit);
        let takes = world.touch_line(line, access, core, now);
        let takes = if takes > hit {
            (takes / overlap).max(hit)
        } else {
            1
        };
        world.current_mut().time += takes;
    });
}

/// Suspends the running thread until another value of a word becomes visible.
pub(crate) fn watch(address: usize) {
    if is_direct() {
        std::thread::yield_now();
        return;
    }
    with(|world| {
        let me = world.running;
        world.watchers.entry(address).or_default().push(me);
    });
    wait("a word to change");
}

impl World {
    fn view(&self, address: usize) -> View {
        let me = self.running;
        let Some(pending) = self.pending.get(&address) else {
            return View::Issued;
        };
        if pending
            .stores
            .back()
            .is_none_or(|(thread, _)| *thread == me)
        {
            return View::Issued;
        }
        let own = pending
            .stores
            .iter()
            .rev()
            .find(|(thread, _)| *thread == me);
        View::Older(own.map_or(pending.visible, |(_, value)| *value))
    }

    fn has_own(&self, address: usize) -> bool {
        let pending = self.pending.get(&address);
        pending.is_some_and(|pending| pending.stores.iter().any(|(by, _)| *by == self.running))
    }

    fn has_others(&self, address: usize) -> bool {
        let pending = self.pending.get(&address);
        pending.is_some_and(|pending| pending.stores.iter().any(|(by, _)| *by != self.running))
    }

    /// Whether other threads have pending stores to the word, or wait for such stores and so come first. If so, the
    /// running thread is queued, and resumes when a store becomes visible.
    fn waits_for_others(&mut self, address: usize) -> bool {
        let has_others = self.has_others(address);
        let me = self.running;
        match self.pending.get_mut(&address) {
            Some(pending) if has_others || !pending.waiting.is_empty() => {
                pending.waiting.push(me);
                true
            }
            _ => false,
        }
    }

    /// Whether the running thread's store buffer is full. If so, the thread is queued, and resumes when a store leaves
    /// it.
    fn buffer_is_full(&mut self) -> bool {
        let room = self.setup.machine.cycles.stores.max(1);
        let me = self.running;
        let buffer = &mut self.current_mut().buffer;
        let is_full = buffer.stores.len() >= room;
        if is_full {
            buffer.awaited_by.push(me);
        }
        is_full
    }

    /// Lets a thread's oldest store request its line at a time, later by a random delay when fuzzing.
    fn drain_at(&mut self, number: usize, time: Time) {
        let most = self.setup.fuzz.drain;
        let delay = if most > 0 { self.rng.u64(..most) } else { 0 };
        self.at(time + delay, Event::Drain(number));
    }

    pub(super) fn drain_next(&mut self, number: usize, now: Time) {
        let Some(&(address, _)) = self.threads[number].buffer.stores.front() else {
            return;
        };
        let first = self
            .pending
            .get(&address)
            .and_then(|pending| pending.stores.front());
        if first.is_some_and(|(thread, _)| *thread != number) {
            self.threads[number].buffer.is_blocked = true;
            return;
        }
        let line = self.line(address);
        let core = self.threads[number].core;
        let granted = self.request(line, Requester::Store(number), Access::Store, core, now);
        if let Some(takes) = granted {
            self.commit(number, now, takes);
        }
    }

    /// Makes a thread's oldest store visible, at a cost of `takes`.
    pub(super) fn commit(&mut self, number: usize, now: Time, takes: u64) {
        let buffer = &mut self.threads[number].buffer;
        let Some((address, value)) = buffer.stores.pop_front() else {
            return;
        };
        buffer.done = now + takes;
        buffer.left += 1;
        let is_empty = buffer.stores.is_empty();
        let awaited_by = std::mem::take(&mut buffer.awaited_by);
        if !is_empty {
            self.drain_at(number, now + takes);
        }
        for thread in awaited_by {
            self.resume_at(thread, now + takes);
        }
        let (next, waiting) = match self.pending.get_mut(&address) {
            Some(pending) => {
                pending.stores.pop_front();
                pending.visible = value;
                let next = pending.stores.front().map(|(thread, _)| *thread);
                (next, std::mem::take(&mut pending.waiting))
            }
            None => (None, Vec::new()),
        };
        match next {
            None => drop(self.pending.remove(&address)),
            Some(next) => {
                let buffer = &mut self.threads[next].buffer;
                if buffer.is_blocked && buffer.stores.front().is_some_and(|(at, _)| *at == address)
                {
                    buffer.is_blocked = false;
                    self.drain_at(next, now);
                }
            }
        }
        for thread in waiting {
            self.resume_at(thread, now + takes);
        }
        self.changed(address, now + takes);
    }

    /// Resumes the threads that watch a word, after it has changed.
    fn changed(&mut self, address: usize, time: Time) {
        for watcher in self.watchers.remove(&address).unwrap_or_default() {
            debug_assert_eq!(
                self.threads[watcher].state,
                State::Waiting("a word to change")
            );
            self.resume_at(watcher, time);
        }
    }
}
