//! The bias for locks whose releases name neither what they release nor which: the lock of `crates/interpose`, with
//! our own in the place of glibc's.

use super::{
    Guarded, reader_and_writer, readers_share, tries, two_readers_and_a_writer,
    two_writers_and_a_reader,
};
use lock_api::RawRwLock;
use prim::{model, thread};
use spanlock_loom::range::raw::Wait;
use spanlock_loom::rw::visible::Seat;
use spanlock_loom::rw::{
    Bias, BiasState, FutexRwLock, Preference, ReadersFirst, Tokenless, Tuning, WritersFirst,
};
use std::sync::Arc;

const EAGER: Tuning = Tuning {
    bias: Bias::Eager,
    bound: 0,
};

fn here() -> Seat {
    // SAFETY: used at once.
    unsafe { Seat::here() }
}

struct Lock<P: Preference> {
    bias: BiasState,
    under: FutexRwLock<P>,
}

impl<P: Preference> Lock<P> {
    fn biased() -> Self {
        Self::with(BiasState::biased())
    }

    fn with(bias: BiasState) -> Self {
        Self {
            bias,
            under: FutexRwLock::new(),
        }
    }

    fn parts(&self) -> Tokenless<'_, P, Tuning> {
        Tokenless {
            bias: &self.bias,
            under: &self.under,
            policy: EAGER,
        }
    }

    fn read(&self, wait: Wait) -> bool {
        let parts = self.parts();
        // SAFETY: all leave by `leave_shared`, and the seat is used at once.
        if unsafe { parts.read_fast(here) } {
            return true;
        }
        let entered = wait != Wait::Never && parts.read_at_once() || parts.read_slowly(wait);
        if entered {
            // SAFETY: it has just entered by the underlying lock.
            unsafe { parts.consider_bias() };
            // SAFETY: as above.
            unsafe { parts.go_over(here) };
        }
        entered
    }

    fn write(&self, wait: Wait) -> bool {
        let parts = self.parts();
        parts.write_at_once() || parts.write_contended(wait)
    }

    /// Ends a hold of which it is not known whose it is, as C's function does.
    fn unlock(&self) -> bool {
        let parts = self.parts();
        // SAFETY: models release what is held.
        if !parts.is_biased() && unsafe { parts.leave_slowly() } {
            return true;
        }
        if parts.is_writers() {
            // SAFETY: so the caller is the writer.
            unsafe { parts.leave_exclusive() };
            return true;
        }
        // SAFETY: the seat is used at once.
        unsafe { parts.leave_shared(here) }
    }
}

// SAFETY: what the models check.
unsafe impl<P: Preference> RawRwLock for Lock<P> {
    const INIT: Self = panic!("not in a constant");

    type SharedGuard = ();
    type ExclusiveGuard = ();

    fn lock_shared(&self) {
        assert!(self.read(Wait::Forever));
    }

    fn try_lock_shared(&self) -> Option<()> {
        self.read(Wait::Never).then_some(())
    }

    unsafe fn unlock_shared(&self, (): ()) {
        let parts = self.parts();
        let left = if parts.is_biased() {
            // SAFETY: the seat is used at once.
            unsafe { parts.leave_fast(here) }
        } else {
            // SAFETY: the caller's.
            unsafe { parts.leave_slowly() }
        };
        // SAFETY: as above.
        assert!(left || unsafe { parts.leave_shared(here) }, "nobody reads");
    }

    fn lock_exclusive(&self) {
        assert!(self.write(Wait::Forever));
    }

    fn try_lock_exclusive(&self) -> Option<()> {
        self.write(Wait::Never).then_some(())
    }

    unsafe fn unlock_exclusive(&self, (): ()) {
        // SAFETY: the caller's.
        unsafe { self.parts().leave_exclusive() };
    }

    fn is_locked(&self) -> bool {
        RawRwLock::is_locked(&self.under) || self.bias.is_read()
    }

    fn is_locked_exclusive(&self) -> bool {
        RawRwLock::is_locked_exclusive(&self.under)
    }
}

/// Runs a scenario with either preference.
macro_rules! both {
    ($bound:expr, $scenario:expr) => {
        model(Some($bound), || $scenario(Lock::<ReadersFirst>::biased()));
        model(Some($bound), || $scenario(Lock::<WritersFirst>::biased()));
    };
}

#[test]
fn a_reader_and_a_writer() {
    both!(3, reader_and_writer);
}

#[test]
fn readers_are_inside_together() {
    both!(3, readers_share);
}

#[test]
fn a_try_does_not_wait() {
    both!(3, tries);
}

#[test]
fn readers_and_a_writer() {
    both!(1, two_readers_and_a_writer);
}

#[test]
fn writers_and_a_reader() {
    both!(2, two_writers_and_a_reader);
}

/// A read lock is released by a thread that did not acquire it, while a writer waits for that.
#[test]
fn released_by_another_thread() {
    fn scenario<P: Preference + Send + Sync + 'static>(lock: Lock<P>) {
        let guarded = Guarded::new(lock);
        let reading = guarded.read();
        reading.look();
        std::mem::forget(reading);
        let writer = guarded.spawn(|guarded| guarded.write().done());
        // SAFETY: the hold above, which nobody else releases.
        let other = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        writer.join().unwrap();
        other.join().unwrap();
    }
    both!(2, scenario);
}

/// A release by another thread takes the publication of a reader that a writer turns away, which owes it that.
#[test]
fn released_by_the_publication_of_one_turned_away() {
    fn scenario<P: Preference + Send + Sync + 'static>(lock: Lock<P>) {
        let guarded = Guarded::new(lock);
        guarded.read().done(); // This thread's row is the first that is looked at.
        let holder = guarded.spawn(|guarded| {
            let reading = guarded.read();
            reading.look();
            std::mem::forget(reading);
        });
        holder.join().unwrap();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        // SAFETY: the hold above, which nobody else releases.
        let other = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        guarded.read().done();
        writer.join().unwrap();
        other.join().unwrap();
    }
    both!(2, scenario);
}

/// A release by another thread takes the count of a reader that a writer, who only looks, makes come in vain.
#[test]
fn released_by_the_count_of_one_refused() {
    fn scenario(lock: Lock<ReadersFirst>) {
        let guarded = Guarded::new(lock);
        std::mem::forget(guarded.read());
        let writer = guarded.spawn(|guarded| {
            if RawRwLock::try_lock_exclusive(&guarded.lock.under).is_some() {
                // SAFETY: by this thread, just now.
                unsafe { guarded.lock.parts().leave_exclusive() };
            }
        });
        // SAFETY: the hold above, which nobody else releases.
        let other = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        if guarded.lock.parts().read_at_once() {
            // SAFETY: this hold.
            unsafe { guarded.lock.unlock_shared(()) };
        }
        writer.join().unwrap();
        other.join().unwrap();
        guarded.try_write().expect("nobody is there").done();
    }
    model(Some(4), || scenario(Lock::biased()));
}

/// Two threads release what others acquired: one looks through the table while a reader comes behind its back and the
/// other takes what was before it.
#[test]
fn two_released_by_other_threads() {
    fn scenario(lock: Lock<ReadersFirst>) {
        let guarded = Guarded::new(lock);
        // Its row is the first that is looked at, if it comes first; then its last publication comes behind the back.
        let other = guarded.spawn(|guarded| {
            guarded.read().done();
            std::mem::forget(guarded.read());
        });
        std::mem::forget(guarded.read());
        // SAFETY: the hold above.
        let stranger = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        other.join().unwrap();
        // SAFETY: the other's hold, by what is in this thread's row.
        unsafe { guarded.lock.unlock_shared(()) };
        stranger.join().unwrap();
        guarded.try_write().expect("nobody is there").done();
    }
    model(Some(2), || scenario(Lock::biased()));
}

/// A reader that shares its row, and so departs by a compare-exchange.
#[test]
fn a_reader_of_many_and_a_writer() {
    fn scenario<P: Preference + Send + Sync + 'static>(lock: Lock<P>) {
        let guarded = Guarded::new(lock);
        guarded.read().done();
        for _ in 0..2 {
            let one = guarded.spawn(|guarded| guarded.read().done());
            one.join().unwrap();
        }
        let reader = guarded.spawn(|guarded| guarded.read().done());
        guarded.write().done();
        reader.join().unwrap();
    }
    both!(3, scenario);
}

/// A reader that is counted is found to be released by the time it leaves, for another thread took it for one in the
/// table; and the lock that counted it is a writer's, who waits for that one.
#[test]
fn a_reader_that_leaves_is_not_the_writer_who_waits_for_it() {
    model(Some(1), || {
        let guarded = Guarded::new(Lock::<WritersFirst>::with(BiasState::new()));
        assert!(guarded.lock.parts().read_slowly(Wait::Never));
        let all = Arc::clone(&guarded);
        let writer = thread::spawn(move || {
            let _not_the_readers_row = here();
            let reader = all.spawn(|guarded| assert!(guarded.lock.read(Wait::Forever)));
            reader.join().unwrap();
            // SAFETY: that reader's hold.
            unsafe { all.lock.unlock_shared(()) };
            all.write().done();
        });
        while !RawRwLock::is_locked_exclusive(&guarded.lock) {
            thread::yield_now();
        }
        assert!(guarded.lock.unlock(), "nobody reads");
        writer.join().unwrap();
    });
}

/// Once a reader is released, by whomever, a writer gets in who may end the lock's life: nobody touches it any more.
#[test]
fn a_lock_ends_when_its_last_reader_is_released() {
    fn scenario<P: Preference + Send + Sync + 'static>(lock: Lock<P>) {
        let guarded = Guarded::new(lock);
        assert!(guarded.lock.read(Wait::Forever));
        let writer = guarded.spawn(|guarded| {
            guarded.write().done();
            // SAFETY: nobody holds it or wants it.
            unsafe { guarded.lock.bias.reset() };
        });
        // SAFETY: the hold above.
        let other = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        writer.join().unwrap();
        other.join().unwrap();
        assert!(guarded.lock.bias.is_clear(), "touched after its end");
    }
    both!(2, scenario);
}

/// A writer releases as C does, and takes nobody else's share for its own.
#[test]
fn a_writer_leaves_beside_a_reader_in_vain() {
    fn scenario<P: Preference + Send + Sync + 'static>(lock: Lock<P>) {
        let guarded = Guarded::new(lock);
        assert!(guarded.lock.write(Wait::Forever));
        let reader = guarded.spawn(|guarded| guarded.read().done());
        assert!(guarded.lock.unlock(), "nobody writes");
        reader.join().unwrap();
        guarded.try_write().expect("nobody is there").done();
    }
    both!(3, scenario);
}

/// Who releases what is not held learns that, and nothing else happens.
#[test]
fn nothing_to_release() {
    model(Some(2), || {
        let guarded = Guarded::new(Lock::<ReadersFirst>::biased());
        let reader = guarded.spawn(|guarded| guarded.read().done());
        reader.join().unwrap();
        // SAFETY: the seat is used at once.
        assert!(!unsafe { guarded.lock.parts().leave_shared(here) });
        guarded.write().done();
        // SAFETY: as above.
        assert!(!unsafe { guarded.lock.parts().leave_shared(here) });
    });
}

/// A thread reads twice while a writer waits for it, where writers wait for the table first.
#[test]
fn reading_twice_while_a_writer_waits() {
    model(Some(3), || {
        let guarded = Guarded::new(Lock::<ReadersFirst>::biased());
        let once = guarded.read();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        once.done();
        writer.join().unwrap();
    });
}

/// A thread releases its own hold while a stranger, the first there is, releases another's, and finds that one's first.
#[test]
fn a_stranger_comes_while_a_reader_leaves() {
    fn scenario<P: Preference + Send + Sync + 'static>(lock: Lock<P>) {
        let guarded = Guarded::new(lock);
        let mine = guarded.read();
        let holder = guarded.spawn(|guarded| {
            let reading = guarded.read();
            reading.look();
            std::mem::forget(reading);
        });
        holder.join().unwrap();
        // SAFETY: the hold above, which nobody else releases.
        let stranger = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(()) });
        mine.done();
        stranger.join().unwrap();
        guarded.try_write().expect("nobody is there").done();
    }
    both!(3, scenario);
}
