//! The bias for locks whose releases name neither what they release nor which: the lock of `crates/interpose`, with
//! our own in the place of glibc's.

use super::{
    Guarded, reader_and_writer, readers_share, tries, two_readers_and_a_writer,
    two_writers_and_a_reader,
};
use lock_api::{GuardSend, RawRwLock};
use prim::model;
use spanlock_loom::range::raw::Wait;
use spanlock_loom::rw::visible::Seat;
use spanlock_loom::rw::{Bias, BiasState, Entry, FutexRwLock, ReadersFirst, Tuning};

const EAGER: Tuning = Tuning {
    bias: Bias::Eager,
    bound: 0,
};

/// What a writer that meets a bias does first.
#[derive(Clone, Copy)]
enum First {
    /// It waits for the readers in the table: whoever reads twice does not wait for it.
    Drain,
    /// It acquires the underlying lock: nobody overtakes it.
    Acquire,
}

struct Untold {
    bias: BiasState,
    under: FutexRwLock<ReadersFirst>,
    first: First,
}

impl Untold {
    fn new(first: First) -> Self {
        Self {
            bias: BiasState::biased(),
            under: FutexRwLock::new(),
            first,
        }
    }

    fn leave_under(&self) {
        // SAFETY: some reader's hold of the underlying lock is owed.
        unsafe { self.under.unlock_shared(GuardSend::new()) };
    }

    fn read(&self, acquire: impl Fn() -> bool) -> bool {
        match self.bias.enter_anonymously(Seat::here, &EAGER) {
            Entry::Entered => return true,
            Entry::Owing => self.leave_under(),
            Entry::Refused => {}
        }
        let acquired = acquire();
        if acquired {
            self.bias.offer(&EAGER);
        }
        acquired
    }

    fn write(&self, wait: Wait, acquire: impl Fn() -> bool) -> bool {
        if self.bias.is_clear() {
            let acquired = match self.first {
                First::Drain => acquire(),
                First::Acquire => self.under.try_lock_exclusive().is_some(),
            };
            if acquired {
                if self.bias.is_clear() {
                    return true;
                }
                self.leave_exclusive();
            }
        }
        let mut arrival = self.bias.arrive();
        let granted = match self.first {
            First::Drain => arrival.drain(wait) && acquire(),
            First::Acquire => {
                acquire() && {
                    let drained = arrival.drain(wait);
                    if !drained {
                        self.leave_exclusive();
                    }
                    drained
                }
            }
        };
        if granted {
            arrival.enter(&EAGER);
        }
        granted
    }

    fn leave_exclusive(&self) {
        // SAFETY: called by the holder.
        unsafe { self.under.unlock_exclusive(GuardSend::new()) };
    }
}

// SAFETY: what the models check.
unsafe impl RawRwLock for Untold {
    const INIT: Self = panic!("not in a constant");

    type SharedGuard = ();
    type ExclusiveGuard = ();

    fn lock_shared(&self) {
        self.read(|| {
            self.under.lock_shared();
            true
        });
    }

    fn try_lock_shared(&self) -> Option<()> {
        self.read(|| self.under.try_lock_shared().is_some())
            .then_some(())
    }

    unsafe fn unlock_shared(&self, (): ()) {
        // SAFETY: no reader here has a token.
        if !unsafe { self.bias.leave_anonymously(Seat::here) } {
            self.leave_under();
        }
    }

    fn lock_exclusive(&self) {
        self.write(Wait::Forever, || {
            self.under.lock_exclusive();
            true
        });
    }

    fn try_lock_exclusive(&self) -> Option<()> {
        self.write(Wait::Never, || self.under.try_lock_exclusive().is_some())
            .then_some(())
    }

    unsafe fn unlock_exclusive(&self, (): ()) {
        self.leave_exclusive();
    }

    fn is_locked(&self) -> bool {
        self.under.is_locked() || self.bias.is_read()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.under.is_locked_exclusive()
    }
}

fn both(bound: usize, scenario: fn(Untold)) {
    for first in [First::Drain, First::Acquire] {
        model(Some(bound), move || scenario(Untold::new(first)));
    }
}

#[test]
fn a_reader_and_a_writer() {
    both(3, reader_and_writer);
}

#[test]
fn readers_are_inside_together() {
    both(3, readers_share);
}

#[test]
fn a_try_does_not_wait() {
    both(3, tries);
}

#[test]
fn readers_and_a_writer() {
    both(1, two_readers_and_a_writer);
}

#[test]
fn writers_and_a_reader() {
    both(2, two_writers_and_a_reader);
}

/// A read lock is released by a thread that did not acquire it, while a writer waits for that.
#[test]
fn released_by_another_thread() {
    both(2, |lock| {
        let guarded = Guarded::new(lock);
        let reading = guarded.read();
        reading.look();
        std::mem::forget(reading);
        let writer = guarded.spawn(|guarded| guarded.write().done());
        // SAFETY: the hold above, which nobody else releases.
        let other = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        writer.join().unwrap();
        other.join().unwrap();
    });
}

/// A reader by the underlying lock leaves by the publication of one that a writer turns away, which owes it that.
#[test]
fn released_by_the_publication_of_one_turned_away() {
    both(2, |lock| {
        let guarded = Guarded::new(lock);
        guarded.write().done(); // Takes the bias off.
        let mine = guarded.read(); // Sets it, and holds the underlying lock.
        let writer = guarded.spawn(|guarded| guarded.write().done());
        let turned_away = guarded.spawn(|guarded| guarded.read().done());
        mine.done();
        writer.join().unwrap();
        turned_away.join().unwrap();
    });
}

/// A thread reads twice while a writer waits for it, where writers wait for the table first.
#[test]
fn reading_twice_while_a_writer_waits() {
    model(Some(3), || {
        let guarded = Guarded::new(Untold::new(First::Drain));
        let once = guarded.read();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        once.done();
        writer.join().unwrap();
    });
}
