//! The bias for locks whose releases name neither what they release nor which: the lock of `crates/interpose`, with
//! our own in the place of glibc's.

use super::EAGER;
use lock_api::RawRwLock;
use prim::{Model, thread};
use spanlock_loom::range::raw::Wait;
use spanlock_loom::rw::pthread::table::ReaderRow;
use spanlock_loom::rw::pthread::{AnonymousUnlock, BiasState};
use spanlock_loom::rw::{Bias, FutexRwLock, Preference, ReadersFirst, WritersFirst};
use spanlock_testkit_loom::rw::*;
use spanlock_testkit_loom::{locks, models};
use std::sync::Arc;

fn here() -> ReaderRow {
    // SAFETY: the row is used at once, by the thread whose row it is.
    unsafe { ReaderRow::here() }
}

/// A lock as `crates/interpose` makes it.
pub struct Pthread<P: Preference> {
    bias: BiasState,
    under: FutexRwLock<P>,
}

impl<P: Preference> Pthread<P> {
    fn biased() -> Self {
        Self::with(BiasState::new(EAGER))
    }

    fn with(bias: BiasState) -> Self {
        Self {
            bias,
            under: FutexRwLock::new(),
        }
    }

    fn parts(&self) -> AnonymousUnlock<'_, P, Bias> {
        AnonymousUnlock {
            bias: &self.bias,
            under: &self.under,
            policy: EAGER,
        }
    }

    fn read(&self, wait: Wait) -> bool {
        let parts = self.parts();
        // SAFETY: every hold ends by `leave_shared`, and the row is used at once.
        if unsafe { parts.read_fast(here) } {
            return true;
        }
        // SAFETY: as above.
        if unsafe { parts.read_by_any_grade(here) } {
            return true;
        }
        let entered = wait != Wait::Never && parts.read_at_once() || parts.read_slowly(wait);
        if entered {
            // SAFETY: the thread has just entered by the underlying lock.
            unsafe { parts.maybe_set_bias(None) };
            // SAFETY: the thread still has the hold by which it entered.
            unsafe { parts.move_to_table(here) };
        }
        entered
    }

    fn write(&self, wait: Wait) -> bool {
        let parts = self.parts();
        parts.write_at_once() || parts.write_contended(wait)
    }

    /// Ends a hold without knowing whose it is, as C's function does.
    fn unlock(&self) -> bool {
        let parts = self.parts();
        // SAFETY: models release what is held.
        if !parts.is_biased() && unsafe { parts.leave_slowly() } {
            return true;
        }
        // SAFETY: there is a writer, and models release what the caller holds: the caller is the writer.
        if parts.is_writers() && unsafe { parts.leave_exclusive() } {
            return true;
        }
        // SAFETY: the row is used at once.
        unsafe { parts.leave_shared(here) }
    }
}

// SAFETY: that readers and writers exclude each other is what the models check.
unsafe impl<P: Preference> RawRwLock for Pthread<P> {
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
            // SAFETY: the row is used at once.
            unsafe { parts.leave_fast(here) }
        } else {
            // SAFETY: the caller gives up a shared hold.
            unsafe { parts.leave_slowly() }
        };
        // SAFETY: the shared hold was not given up yet, and the row is used at once.
        assert!(left || unsafe { parts.leave_shared(here) }, "nobody reads");
    }

    fn lock_exclusive(&self) {
        assert!(self.write(Wait::Forever));
    }

    fn try_lock_exclusive(&self) -> Option<()> {
        self.write(Wait::Never).then_some(())
    }

    unsafe fn unlock_exclusive(&self, (): ()) {
        // SAFETY: the caller gives up the exclusive hold.
        assert!(unsafe { self.parts().leave_exclusive() });
    }

    fn is_locked(&self) -> bool {
        RawRwLock::is_locked(&self.under) || self.bias.is_read()
    }

    fn is_locked_exclusive(&self) -> bool {
        RawRwLock::is_locked_exclusive(&self.under)
    }
}

/// What a lock prefers, known to all threads.
trait Prefers: Preference + Send + Sync + 'static {}
impl<P: Preference + Send + Sync + 'static> Prefers for P {}

type Shared<P> = Arc<World<Pthread<P>>>;

locks! {
    pub pthread: Pthread<ReadersFirst> = Pthread::biased();
    pub pthread_writers_first: Pthread<WritersFirst> = Pthread::biased();
    pthread_without_bias: Pthread<WritersFirst> = Pthread::with(BiasState::new(Bias::STANDARD));
}

/// Reads, and leaves the hold for another thread to release.
fn read_and_stay<P: Prefers>(world: &Shared<P>) {
    let reading = world.read();
    reading.get();
    reading.into_token();
}

/// Releases a hold of another thread.
fn release<P: Prefers>(world: &Shared<P>) {
    drop(world.reading(()));
}

/// A release by another thread takes the publication of a reader that a writer turns away, which owes it that.
fn released_by_the_publication_of_a_refused_reader<P: Prefers>(world: &Shared<P>) {
    read(world); // This thread's row is the first that is searched.
    world.run([read_and_stay]);
    let others = world.start([write, release]);
    read(world);
    others.join();
}

/// A release by another thread takes the count of a reader. A writer that only checks the lock makes that reader back
/// out.
fn released_by_the_count_of_one_refused(world: &Shared<ReadersFirst>) {
    world.read().into_token();
    let check: Act<Pthread<ReadersFirst>> = |world| {
        if RawRwLock::try_lock_exclusive(&world.lock.under).is_some() {
            // SAFETY: this thread has just locked it.
            assert!(unsafe { world.lock.parts().leave_exclusive() });
        }
    };
    let others = world.start([check, release]);
    if world.lock.parts().read_at_once() {
        release(world);
    }
    others.join();
    world.is_free();
}

/// Two threads release what others acquired. One searches the table while a reader comes behind its back and the other
/// takes what was before it.
fn two_released_by_other_threads(world: &Shared<ReadersFirst>) {
    // The row of this thread is the first that is searched, if it comes first. Then its last publication comes behind
    // the back of the search.
    let reader: Act<Pthread<ReadersFirst>> = |world| {
        read(world);
        world.read().into_token();
    };
    let other = world.start([reader]);
    world.read().into_token();
    let foreign = world.start([release]);
    other.join();
    release(world); // The other's hold, by what is in this thread's row.
    foreign.join();
    world.is_free();
}

/// A reader that shares its row, and so departs by a compare-exchange.
fn a_reader_of_many_and_a_writer<P: Prefers>(world: &Shared<P>) {
    read(world);
    world.run([read]);
    world.run([read]);
    world.meet([read, write]);
}

/// A reader that is counted is found to be released by the time it leaves, for another thread took it for one in the
/// table. The lock that counted it is a writer's, which waits for that one.
fn a_reader_that_leaves_is_not_the_writer_that_waits_for_it(world: &Shared<WritersFirst>) {
    assert!(world.lock.parts().read_slowly(Wait::Never));
    let writer = world.start([|world| {
        let _not_the_readers_row = here();
        world.run([|world| assert!(world.lock.read(Wait::Forever))]);
        release(world);
        write(world);
    }]);
    while !world.lock.is_locked_exclusive() {
        thread::yield_now();
    }
    assert!(world.lock.unlock(), "nobody reads");
    writer.join();
}

/// A release finds a writer that only checks the lock, and no bias any more once that writer has ended it: meanwhile a
/// reader that was counted has taken the caller's hold out of the table. The caller is not the writer.
fn a_reader_that_leaves_is_not_the_writer_that_was_there(world: &Shared<ReadersFirst>) {
    world.read().into_token();
    let leave: Act<Pthread<ReadersFirst>> = |world| assert!(world.lock.unlock(), "nobody reads");
    let reader = world.start([leave]);
    if RawRwLock::try_lock_exclusive(&world.lock.under).is_some() {
        // SAFETY: this thread has just locked it.
        assert!(unsafe { world.lock.parts().leave_exclusive() });
    }
    assert!(world.lock.parts().read_slowly(Wait::Forever));
    release(world);
    write(world);
    reader.join();
    world.is_free();
}

/// Once a reader is released, by any thread, a writer gets in which may end the lock's life. No thread touches it any
/// more.
fn a_lock_ends_when_its_last_reader_is_released<P: Prefers>(world: &Shared<P>) {
    assert!(world.lock.read(Wait::Forever));
    let end: Act<Pthread<P>> = |world| {
        write(world);
        // SAFETY: no thread holds the lock or wants it.
        unsafe { world.lock.bias.reset() };
    };
    world.run([end, release]);
    assert!(!world.lock.bias.is_open(), "touched after its end");
    read(world);
    assert!(world.lock.bias.is_open(), "an arrival is left");
}

/// A writer releases as C does, and takes no reader's count for its own.
fn a_writer_leaves_beside_a_reader_that_backs_out<P: Prefers>(world: &Shared<P>) {
    assert!(world.lock.write(Wait::Forever));
    let reader = world.start([read]);
    assert!(world.lock.unlock(), "nobody writes");
    reader.join();
    world.is_free();
}

/// A release of what is not held reports that, and does nothing else.
fn nothing_to_release(world: &Shared<ReadersFirst>) {
    // SAFETY: the row is used at once.
    let leave_shared = || unsafe { world.lock.parts().leave_shared(here) };
    world.run([read]);
    assert!(!leave_shared());
    write(world);
    assert!(!leave_shared());
}

/// A thread releases its own hold while another thread, the first foreign one there is, releases a second hold and
/// finds the first.
fn a_foreign_release_comes_while_a_reader_leaves<P: Prefers>(world: &Shared<P>) {
    let mine = world.read();
    world.run([read_and_stay]);
    let foreign = world.start([release]);
    mine.done();
    foreign.join();
    world.is_free();
}

/// A reader makes the bias free while a writer arrives, which goes by the grade that it finds. Readers of a free bias
/// are not met by the fence of a writer that found a fenced one.
#[test]
fn a_bias_becomes_free_beside_a_writer() {
    let model = Model::new(prim::one_more_in_mutants(2)).barrier_apart();
    model.check(|| {
        let world = World::new(pthread());
        world.run([write, read]); // The bias comes back, and is fenced.
        let writer = world.start([write]);
        world.lock.parts().free_if_old();
        read(&world);
        writer.join();
    });
}

models! {
    released_by_the_publication_of_a_refused_reader: 2 on pthread pthread_writers_first;
    released_by_the_count_of_one_refused: 4 on pthread;
    two_released_by_other_threads: 2 on pthread;
    a_reader_of_many_and_a_writer: 3 on pthread pthread_writers_first;
    a_reader_that_leaves_is_not_the_writer_that_waits_for_it: 1 on pthread_without_bias;
    a_reader_that_leaves_is_not_the_writer_that_was_there: 2 on pthread;
    a_lock_ends_when_its_last_reader_is_released: 2 on pthread pthread_writers_first;
    a_writer_leaves_beside_a_reader_that_backs_out: 3 on pthread pthread_writers_first;
    nothing_to_release: 2 on pthread;
    a_foreign_release_comes_while_a_reader_leaves: 3 on pthread pthread_writers_first;
}
