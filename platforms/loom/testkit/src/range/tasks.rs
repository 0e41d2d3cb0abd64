//! Tasks: requests that are polled, woken and dropped, beside threads. The timer calls when the model says so.

use super::owners::{Held, Lock, by};
use super::*;
use prim::atomic::{AtomicU32, Ordering};
use prim::{futex, timer};
use spanlock::range::{LockBy, Owner};
use std::pin::Pin;
use std::slice;
use std::task::{Context, Poll, Wake, Waker};

/// What a waker wakes: counts how often, and lets a thread sleep until then.
struct Signal {
    count: AtomicU32,
    /// Done first by who wakes.
    code: Box<dyn Fn()>,
}

// SAFETY: a model runs on one host thread.
unsafe impl Send for Signal {}
// SAFETY: the same.
unsafe impl Sync for Signal {}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        (self.code)();
        self.count.fetch_add(1, Ordering::Release);
        futex::wake_all(&self.count);
    }
}

impl Signal {
    fn new() -> Arc<Self> {
        Self::with(|| {})
    }

    fn with(code: impl Fn() + 'static) -> Arc<Self> {
        let (count, code) = (AtomicU32::new(0), Box::new(code));
        Arc::new(Self { count, code })
    }

    /// Sleeps until it was woken.
    fn until_woken(&self) {
        while self.count.load(Ordering::Acquire) == 0 {
            futex::wait(&self.count, 0, None);
        }
    }
}

/// A request of a task.
struct Task<L: Owned> {
    world: Arc<World<L>>,
    request: LockBy<Lock<L>>,
}

impl<L: Owned> Task<L> {
    fn new(world: &Arc<World<L>>, range: Range<u64>, mode: Mode) -> Self {
        Self::of(&Owner::new(), world, range, mode)
    }

    fn of(owner: &Owner, world: &Arc<World<L>>, range: Range<u64>, mode: Mode) -> Self {
        Self {
            world: Arc::clone(world),
            request: by(world, owner).lock_async(range, mode),
        }
    }

    fn poll(&mut self, signal: &Arc<Signal>) -> Poll<Result<Held<L>, Refusal>> {
        self.poll_with(&Waker::from(Arc::clone(signal)))
    }

    fn poll_with(&mut self, waker: &Waker) -> Poll<Result<Held<L>, Refusal>> {
        let polled = Pin::new(&mut self.request).poll(&mut Context::from_waker(waker));
        polled.map_ok(|holding| Held {
            world: Arc::clone(&self.world),
            holding,
        })
    }

    /// Polls it once, and finds that it has to wait.
    fn is_pending(&mut self, signal: &Arc<Signal>) {
        assert!(self.poll(signal).is_pending());
    }

    /// Polls it when it was woken, until it is over.
    fn finish(mut self) -> Result<Held<L>, Refusal> {
        finish(|waker| self.poll_with(waker))
    }

    fn done(self) {
        self.finish().expect("nobody cancels it").done();
    }
}

/// A task writes a range and releases it.
pub fn task_write<L: Owned>(range: Range<u64>) -> Act<L> {
    act(|world| Task::new(world, range, Mode::Exclusive).done())
}

/// A task reads a range and releases it.
pub fn task_read<L: Owned>(range: Range<u64>) -> Act<L> {
    act(|world| Task::new(world, range, Mode::Shared).done())
}

/// A task beside a thread.
pub fn a_task_and_a_thread<L: Owned>(world: &Arc<World<L>>) {
    world.meet([task_write(0..2), write(1..3)]);
    world.is_free();
}

/// A task waits. The thread that has polled it asks for other ranges meanwhile, and another thread looks who waits.
pub fn a_task_waits_while_its_thread_goes_on<L: Owned>(world: &Arc<World<L>>) {
    let polls = act(|world: &Arc<World<L>>| {
        let mut task = Task::new(world, 1..3, Mode::Exclusive);
        task.is_pending(&Signal::new());
        world.write(4..5).done();
        world.write(5..6).done();
        task.done();
    });
    let held = world.write(0..2);
    let crew = world.start([polls]);
    world.until_asleep(1);
    held.done();
    crew.join();
}

/// A task beside a thread that reads.
pub fn a_task_and_a_reader<L: Owned>(world: &Arc<World<L>>) {
    world.meet([task_write(0..2), read(1..3)]);
    world.is_free();
}

/// A task that reads beside a thread.
pub fn a_reading_task_and_a_thread<L: Owned>(world: &Arc<World<L>>) {
    world.meet([task_read(0..2), write(1..3)]);
    world.is_free();
}

/// A task beside a task that reads.
pub fn a_task_and_a_reading_task<L: Owned>(world: &Arc<World<L>>) {
    world.meet([task_write(0..2), task_read(1..3)]);
    world.is_free();
}

/// A task that waits behind a holder, as a thread does, and is polled by another thread than before.
pub fn a_task_and_a_thread_behind_a_writer<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..2);
    let mut task = Task::new(world, 0..1, Mode::Exclusive);
    task.is_pending(&Signal::new());
    let others = world.start([act(|_| task.done()), write(0..2)]);
    mine.done();
    others.join();
    world.is_free();
}

fn dropped_beside_a_release<L: Owned>(world: &Arc<World<L>>, mode: Mode, behind: Act<L>) {
    let mine = world.write(0..1);
    let mut task = Task::new(world, 0..2, mode);
    task.is_pending(&Signal::new());
    let other = world.start([behind]);
    world.until_asleep(2);
    let drops = world.start([act(|_| drop(task))]);
    mine.done();
    drops.join();
    other.join();
    world.is_free();
}

/// A writing task that waits is dropped while its range is released. Whoever waits behind it goes on.
pub fn a_writing_task_is_dropped<L: Owned>(world: &Arc<World<L>>) {
    dropped_beside_a_release(world, Mode::Exclusive, write(0..1));
}

/// A reading task that waits is dropped while its range is released. Whoever waits behind it goes on.
pub fn a_reading_task_is_dropped<L: Owned>(world: &Arc<World<L>>) {
    dropped_beside_a_release(world, Mode::Shared, write(0..1));
}

/// A writing task that waits is dropped while its range is released. A reading task behind it goes on.
pub fn a_writing_task_is_dropped_before_a_task<L: Owned>(world: &Arc<World<L>>) {
    dropped_beside_a_release(world, Mode::Exclusive, task_read(0..1));
}

/// A reading task that waits is dropped while its range is released. A writing task behind it goes on.
pub fn a_reading_task_is_dropped_before_a_task<L: Owned>(world: &Arc<World<L>>) {
    dropped_beside_a_release(world, Mode::Shared, task_write(0..1));
}

fn woken_and_dropped<L: Owned>(world: &Arc<World<L>>, mode: Mode, behind: Act<L>) {
    let mine = world.write(0..1);
    let mut task = Task::new(world, 0..1, mode);
    task.is_pending(&Signal::new());
    let other = world.start([behind]);
    mine.done();
    drop(task);
    other.join();
    world.is_free();
}

/// A writing task is woken, and dropped without a poll, while a thread comes to read.
pub fn a_woken_task_is_dropped_before_a_reader<L: Owned>(world: &Arc<World<L>>) {
    woken_and_dropped(world, Mode::Exclusive, read(0..1));
}

/// A reading task is woken, and dropped without a poll, while a thread comes to write.
pub fn a_woken_reading_task_is_dropped_before_a_writer<L: Owned>(world: &Arc<World<L>>) {
    woken_and_dropped(world, Mode::Shared, write(0..1));
}

/// A reading task is woken, and dropped without a poll, while a task comes to write.
pub fn a_woken_reading_task_is_dropped_before_a_task<L: Owned>(world: &Arc<World<L>>) {
    woken_and_dropped(world, Mode::Shared, task_write(0..1));
}

/// A task is woken, and dropped without a poll. The task behind it goes on.
pub fn a_woken_task_is_dropped_before_another<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let mut first = Task::new(world, 0..1, Mode::Exclusive);
    first.is_pending(&Signal::new());
    let mut second = Task::new(world, 0..1, Mode::Exclusive);
    second.is_pending(&Signal::new());
    let second = world.start([act(|_| second.done())]);
    mine.done();
    drop(first);
    second.join();
    world.is_free();
}

fn polled_with_another_waker<L: Owned>(world: &Arc<World<L>>, mode: Mode) {
    let mine = world.write(0..1);
    let mut task = Task::new(world, 0..1, mode);
    task.is_pending(&Signal::new());
    let polls = world.start([act(|_| task.done())]);
    mine.done();
    polls.join();
    world.is_free();
}

/// A task is polled again with another waker while its range is released. The new waker is woken.
pub fn a_task_is_polled_with_another_waker<L: Owned>(world: &Arc<World<L>>) {
    polled_with_another_waker(world, Mode::Exclusive);
}

/// A reading task is polled again with another waker while its range is released. The new waker is woken.
pub fn a_reading_task_is_polled_with_another_waker<L: Owned>(world: &Arc<World<L>>) {
    polled_with_another_waker(world, Mode::Shared);
}

/// A task is woken and never polled. A thread behind it goes on when the turn of the task ends.
pub fn a_woken_task_is_never_polled<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let mut task = Task::new(world, 0..1, Mode::Exclusive);
    task.is_pending(&Signal::new());
    let other = world.start([write(0..1)]);
    world.until_asleep(2);
    mine.done();
    assert!(timer::fire(), "the thread sleeps behind the task");
    other.join();
    drop(task);
    world.is_free();
}

/// The same, where two tasks are never polled, and a third one is.
pub fn two_woken_tasks_are_never_polled<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let dead = [(); 2].map(|()| {
        let mut task = Task::new(world, 0..1, Mode::Exclusive);
        task.is_pending(&Signal::new());
        task
    });
    let mut last = Task::new(world, 0..1, Mode::Exclusive);
    last.is_pending(&Signal::new());
    let last = world.start([act(|_| last.done())]);
    mine.done();
    while timer::fire() {}
    last.join();
    drop(dead);
    world.is_free();
}

/// The turn of a task ends while the task is polled, and a thread waits behind it.
pub fn a_turn_ends_beside_a_poll<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let mut task = Task::new(world, 0..1, Mode::Exclusive);
    task.is_pending(&Signal::new());
    let other = world.start([write(0..1)]);
    world.until_asleep(2);
    mine.done();
    let polls = world.start([act(|_| task.done())]);
    timer::fire();
    polls.join();
    other.join();
    world.is_free();
}

/// The turn of a task ends while the task is dropped, and a thread waits behind it.
pub fn a_turn_ends_beside_a_drop<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let mut task = Task::new(world, 0..1, Mode::Exclusive);
    task.is_pending(&Signal::new());
    let other = world.start([write(0..1)]);
    world.until_asleep(2);
    mine.done();
    let drops = world.start([act(|_| drop(task))]);
    timer::fire();
    drops.join();
    other.join();
    world.is_free();
}

/// A task that is woken, and has a reservation, is never polled. Others need not give way when its turn has ended.
pub fn a_reservation_ends_with_the_turn<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.read(0..1);
    let mut task = Task::new(world, 0..1, Mode::Exclusive);
    task.is_pending(&Signal::new());
    mine.done();
    is_refused(0..1)(world);
    assert!(timer::fire(), "its turn is limited");
    // The hint may say that there is a reservation.
    world.write(0..1).done();
    world.is_free();
    drop(task);
}

/// A task gives way to a reservation, which waits for who waits for the task. It goes on when the turn ends.
pub fn a_holder_awaits_a_task_that_gives_way<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let wide = world.start([write(0..2)]);
    world.until_asleep(1);
    let mut task = Task::new(world, 1..2, Mode::Exclusive);
    task.is_pending(&Signal::new());
    let gives_way = world.start([act(|_| task.done())]);
    assert!(timer::fire(), "it gives way for a limited time");
    gives_way.join();
    mine.done();
    wide.join();
    world.is_free();
}

/// Two requests of one task. The first is woken, and the task awaits the second one.
pub fn a_task_awaits_its_second_request<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let signal = Signal::new();
    let [mut first, mut second] = [(); 2].map(|()| Task::new(world, 0..1, Mode::Exclusive));
    first.is_pending(&signal);
    second.is_pending(&signal);
    mine.done();
    signal.until_woken();
    match second.poll(&signal) {
        Poll::Ready(outcome) => outcome.expect("nobody cancels it").done(),
        Poll::Pending => panic!("it waits for the first request"),
    }
    drop(first);
    world.is_free();
}

/// A thread goes back to sleep, and wakes a task whose waker asks for a range.
pub fn a_waker_asks_for_a_range<L: Owned>(world: &Arc<World<L>>) {
    let low = world.write(0..2);
    let wide = world.start([write(0..6)]);
    world.until_asleep(1);
    let again = Arc::clone(world);
    let signal = Signal::with(move || try_write(7..8)(&again));
    let mut narrow = Task::new(world, 0..1, Mode::Exclusive);
    narrow.is_pending(&signal);
    let high = world.write_within(5..6, Wait::Never);
    drop(low);
    signal.until_woken();
    drop(high);
    narrow.done();
    wide.join();
    world.is_free();
}

/// A task waits for what is held until its owner is cancelled, and a thread behind it goes on.
pub fn a_waiting_task_is_cancelled<L: Owned>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let owner = Owner::new();
    let task = Task::of(&owner, world, 0..2, Mode::Exclusive);
    let waits = world.start([act(|_: &Arc<World<L>>| {
        assert_eq!(task.finish().err(), Some(Refusal::Cancelled));
    })]);
    owner.cancel();
    // Joined while the range is held.
    waits.join();
    mine.done();
    world.is_free();
}

/// A task locks again what its owner holds, beside a writer of some of it.
pub fn a_task_locks_again_beside_a_writer<L: Owned>(world: &Arc<World<L>>) {
    let task = act(|world: &Arc<World<L>>| {
        let owner = Owner::new();
        let mut mine = by(world, &owner).reentrant();
        for (range, mode) in [(0..2, Mode::Shared), (1..2, Mode::Exclusive)] {
            let mut asks = Box::pin(mine.lock_async(range, mode));
            finish(|waker| asks.as_mut().poll(&mut Context::from_waker(waker)))
                .expect("nobody cancels it");
        }
        world.touch(slice::from_ref(&(0..1)), Mode::Shared);
        world.touch(slice::from_ref(&(1..2)), Mode::Exclusive);
        mine.unlock(1..2, Mode::Exclusive);
        world.touch(slice::from_ref(&(0..2)), Mode::Shared);
    });
    world.meet([task, write(1..3)]);
    world.is_free();
}

/// A task writes ranges that it locks by one call, beside a thread that wants them.
pub fn a_task_locks_many_beside_a_writer<L: Owned>(world: &Arc<World<L>>) {
    let task = act(|world: &Arc<World<L>>| {
        let ranges = [2..3, 0..1];
        let mut asks = Box::pin(by(world, &Owner::new()).write_many_async(ranges.clone()));
        let held = finish(|waker| asks.as_mut().poll(&mut Context::from_waker(waker)));
        world.touch(&ranges, Mode::Exclusive);
        drop(held);
    });
    world.meet([task, write_many(&[0..1, 2..3])]);
    world.is_free();
}

/// Polls whenever it was woken, until that is ready.
pub fn finish<T>(mut poll: impl FnMut(&Waker) -> Poll<T>) -> T {
    loop {
        let signal = Signal::new();
        match poll(&Waker::from(Arc::clone(&signal))) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => signal.until_woken(),
        }
    }
}
