//! The bias against writers, and the table: who is seen, who waits, who is woken.

use super::Guarded;
use lock_api::RawRwLock;
use prim::model;
use spanlock_loom::rw::{
    Bias, Bravo, Counted, FutexRwLock, Policy, ReadersFirst, Tuning, WritersFirst,
};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Biased<P = Tuning> = Bravo<FutexRwLock<WritersFirst>, P>;

const EAGER: Tuning = Tuning {
    bias: Bias::Eager,
    bound: 0,
};

fn biased() -> Biased {
    Bravo::with_policy(FutexRwLock::new(), EAGER)
}

/// A lock whose bias was revoked.
fn revoked() -> Arc<Guarded<Biased>> {
    let guarded = Guarded::new(biased());
    guarded.write().done();
    guarded
}

models!(biased(); two: Some(4), three: Some(2));

/// A thread that has read before has a seat, and reads as most do: the reader and the writer of
/// `a_reader_and_a_writer`.
#[test]
fn a_seated_reader_and_a_writer() {
    model(Some(4), || {
        let guarded = Guarded::new(biased());
        guarded.read().done();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        writer.join().unwrap();
    });
}

/// The same, and the bias comes back meanwhile: what the writer did comes with it.
#[test]
fn a_seated_reader_a_writer_and_another_reader() {
    model(Some(2), || {
        let guarded = Guarded::new(biased());
        guarded.read().done();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        let setter = guarded.spawn(|guarded| guarded.read().done());
        guarded.read().done();
        writer.join().unwrap();
        setter.join().unwrap();
    });
}

/// A lock that is never biased asks no writer to arrive.
#[test]
fn without_a_bias() {
    let off = Tuning {
        bias: Bias::Off,
        ..EAGER
    };
    let make = move || Biased::with_policy(FutexRwLock::new(), off);
    model(Some(3), move || super::two_writers_and_a_reader(make()));
    model(Some(3), move || super::tries(make()));
}

/// A token goes to another thread, which releases it while a writer waits for that.
#[test]
fn released_by_another_thread() {
    model(Some(2), || {
        let guarded = Guarded::new(biased());
        let reading = guarded.read();
        reading.look();
        let token = reading.into_token();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        // SAFETY: this lock's token.
        let other = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(token) });
        writer.join().unwrap();
        other.join().unwrap();
        guarded.write().done();
    });
}

/// A reader that came by the underlying lock sets the bias while a writer arrives.
#[test]
fn a_slow_reader_sets_the_bias_against_a_writer() {
    model(Some(3), || {
        let guarded = revoked();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        guarded.read().done();
        writer.join().unwrap();
    });
}

/// What a writer did reaches a fast reader by way of the slow reader that set the bias.
#[test]
fn a_bias_brings_what_writers_did() {
    model(Some(2), || {
        let guarded = revoked();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        let setter = guarded.spawn(|guarded| guarded.read().done());
        guarded.read().done();
        writer.join().unwrap();
        setter.join().unwrap();
    });
}

/// A write that gives up while it revokes leaves the bias as it was.
#[test]
fn a_writer_gives_up_while_it_revokes() {
    model(Some(3), || {
        let counted = Counted::new(EAGER);
        let guarded = Guarded::new(Biased::with_policy(FutexRwLock::new(), counted));
        let mine = guarded.read();
        let hasty = guarded.spawn(|guarded| guarded.write_soon().is_some());
        assert!(!hasty.join().unwrap());
        assert!(guarded.try_write().is_none());
        guarded.read().done();
        mine.done();
        assert_eq!(guarded.lock.policy().counts().fast_reads, 2);
    });
}

#[test]
fn a_writer_gives_up_beside_another() {
    model(Some(2), || {
        let guarded = Guarded::new(biased());
        let mine = guarded.read();
        let hasty = guarded.spawn(|guarded| {
            if let Some(writing) = guarded.write_soon() {
                writing.done();
            }
        });
        let patient = guarded.spawn(|guarded| guarded.write().done());
        mine.done();
        hasty.join().unwrap();
        patient.join().unwrap();
    });
}

/// A thread that reads by the table reads again while a writer waits for it, whatever the underlying lock prefers.
#[test]
fn reading_twice_while_a_writer_revokes() {
    model(Some(3), || {
        let guarded = Guarded::new(biased());
        let mine = guarded.read();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        mine.done();
        writer.join().unwrap();
    });
}

/// A thread that reads by an underlying lock that lets it read again does so, biased or not.
#[test]
fn reading_twice_keeps_the_underlying_promise() {
    model(Some(3), || {
        let lock = FutexRwLock::<ReadersFirst>::new();
        let guarded = Guarded::new(Bravo::with_policy(lock, EAGER));
        guarded.write().done();
        let mine = guarded.read();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        mine.done();
        writer.join().unwrap();
    });
}

/// A reader that comes while a writer revokes gets in: it may be the one that the reader inside waits for.
#[test]
fn readers_get_in_while_a_writer_revokes() {
    model(Some(2), || {
        let guarded = Guarded::new(biased());
        let mine = guarded.read();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        let reader = guarded.spawn(|guarded| guarded.read().done());
        reader.join().unwrap();
        mine.done();
        writer.join().unwrap();
    });
}

/// A writer sleeps until its reader leaves the slot, not until the next one does, though that one is awaited as well.
#[test]
fn a_writer_does_not_wait_for_the_next_in_the_slot() {
    model(Some(4), || {
        let (first, second) = (Guarded::new(biased()), Guarded::new(biased()));
        let mine = first.read();
        let writer = first.spawn(|first| first.write().done());
        let other = second.spawn(|second| second.write().done());
        mine.done();
        let mine = second.read();
        writer.join().unwrap();
        mine.done();
        other.join().unwrap();
    });
}

/// A writer finds the slot of its reader taken for another lock already, and that is all it sees of the departure.
#[test]
fn the_next_in_the_slot_tells_what_the_one_before_did() {
    model(Some(3), || {
        let (first, second) = (Guarded::new(biased()), Guarded::new(biased()));
        let mine = first.read();
        let writer = first.spawn(|first| first.write().done());
        mine.done();
        second.read().done();
        writer.join().unwrap();
    });
}

/// The same, where another thread released.
#[test]
fn the_next_in_the_slot_tells_what_another_thread_did() {
    model(Some(3), || {
        let (first, second) = (Guarded::new(biased()), Guarded::new(biased()));
        let token = first.lock.lock_shared();
        let writer = first.spawn(|first| first.write().done());
        let other = first.spawn(|first| {
            let reading = first.reading(token);
            reading.done();
        });
        second.read().done();
        writer.join().unwrap();
        other.join().unwrap();
    });
}

/// Three reads at a time in rows of two slots: the third takes the slow path.
#[test]
fn a_full_row_is_a_detour() {
    model(Some(2), || {
        let locks = [(); 3].map(|()| Guarded::new(biased()));
        let held: Vec<_> = locks.iter().map(|guarded| guarded.read()).collect();
        let writers = locks.each_ref().map(|guarded| {
            guarded.spawn(|guarded| {
                if let Some(writing) = guarded.try_write() {
                    writing.done();
                }
            })
        });
        drop(held);
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

/// What is forgotten is not awaited by the next lock at the same place.
#[test]
fn a_lock_that_is_dropped_forgets_leaked_readers() {
    model(None, || {
        let mut place = Box::new(biased());
        let _leaked = RawRwLock::lock_shared(&*place);
        *place = biased();
        let token = RawRwLock::lock_exclusive(&*place);
        // SAFETY: its own token.
        unsafe { RawRwLock::unlock_exclusive(&*place, token) };
    });
}

/// As eager, once the lock is made: it has no bias from birth.
#[derive(Debug)]
struct Late {
    made: AtomicBool,
}

impl Policy for Late {
    const INIT: Self = panic!("not in a constant");

    fn tuning(&self) -> Tuning {
        let bias = if self.made.swap(true, Ordering::Relaxed) {
            Bias::Eager
        } else {
            Bias::Adaptive
        };
        Tuning { bias, bound: 0 }
    }
}

fn late() -> Biased<Late> {
    let made = AtomicBool::new(false);
    Bravo::with_policy(FutexRwLock::new(), Late { made })
}

/// A lock is moved away from where a guard of it was leaked. The next lock there gets no bias, for its writers would wait
/// for that guard.
#[test]
fn a_lock_where_a_leaked_reader_is_published() {
    model(Some(3), || {
        let mut guarded = Guarded::new(late());
        guarded.read().done();
        let _leaked = guarded.read().into_token();
        let place = &mut Arc::get_mut(&mut guarded).unwrap().lock;
        drop(mem::replace(place, late()));
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        writer.join().unwrap();
        assert!(!guarded.lock.is_locked(), "a hold is left");
    });
}
