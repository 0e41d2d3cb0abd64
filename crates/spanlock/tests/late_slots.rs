//! Slots of threads that have ended, given to others.

use spanlock::range::raw::{Ask, RawRangeMutex, Wait};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock, Span};
use spanlock_testkit::exact::Exact;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

type Token = <RawSlots as RawRangeMutex>::Token;

static LOCK: LazyLock<RawSlots> = LazyLock::new(|| RawSlots::builder().slots_at_once().build());

fn attempt(range: Range<u64>) -> Option<Token> {
    LOCK.lock_exclusive(Ask::new(
        Span::of(range).expect("it is not empty"),
        Wait::Never,
    ))
}

fn take(range: Range<u64>) -> Token {
    attempt(range).expect("nobody holds it")
}

fn release(token: Token) {
    // SAFETY: each token of these tests comes from the lock and is released once.
    unsafe { LOCK.unlock(token) };
}

/// What a thread releases when its thread-locals are destroyed: after the library's own, since it was made before.
struct Late(RefCell<Option<Token>>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(release);
    }
}

thread_local!(static LATE: Late = const { Late(RefCell::new(None)) });

/// A slot that was free once has a successor in its thread's list of free slots. It is taken again, and released so
/// late that it is nobody's. The thread that makes it its home slot must not inherit the successor, which the next
/// owner of the list takes, too.
#[test]
fn a_slot_that_is_nobodys_has_no_successor() {
    let first = thread::spawn(|| {
        LATE.with(|_| ());
        let (home, again, other) = (take(0..1), take(2..3), take(4..5));
        release(other);
        release(again);
        let again = take(2..3);
        release(home);
        LATE.with(|late| *late.0.borrow_mut() = Some(again));
    });
    first.join().expect("no panic");
    let (told, tells) = channel();
    let (begin, begins) = channel::<()>();
    let (end, ends) = channel::<()>();
    let heir = thread::spawn({
        let told = told.clone();
        move || {
            let home = take(0..1);
            told.send(()).expect("it is awaited");
            begins.recv().expect("it is told");
            let other = take(30..31);
            told.send(()).expect("it is awaited");
            ends.recv().expect("it is told");
            [home, other].into_iter().for_each(release);
        }
    });
    tells.recv().expect("the heir has its home slot");
    let (let_go, goes) = channel::<()>();
    let claimant = thread::spawn(move || {
        let held = [take(10..11), take(20..21)];
        told.send(()).expect("it is awaited");
        goes.recv().expect("it is told");
        held.into_iter().for_each(release);
    });
    tells.recv().expect("the claimant holds its ranges");
    begin.send(()).expect("the heir waits");
    tells.recv().expect("the heir holds both ranges");
    for held in [0..1, 10..11, 20..21, 30..31] {
        assert!(attempt(held.clone()).is_none(), "{held:?} is held");
    }
    end.send(()).expect("the heir waits");
    let_go.send(()).expect("the claimant waits");
    heir.join().expect("no panic");
    claimant.join().expect("no panic");
    release(attempt(0..100).expect("all is released"));
}

/// A range that a thread releases when its thread-locals are destroyed, once it is told to.
struct Told(RefCell<Option<(Token, Receiver<()>)>>);

impl Drop for Told {
    fn drop(&mut self) {
        if let Some((token, told)) = self.0.take() {
            told.recv().expect("it is told");
            release(token);
        }
    }
}

thread_local!(static TOLD: Told = const { Told(RefCell::new(None)) });

/// A thread gets the record of one that is exiting, and its home slot, while that one releases a range there. What the
/// heir holds meanwhile stays held.
#[test]
fn an_heir_beside_a_late_release() {
    for _ in 0..50 {
        let (tell, told) = channel();
        let (exits, exited) = channel();
        let first = thread::spawn(move || {
            TOLD.with(|late| *late.0.borrow_mut() = Some((take(200..201), told)));
            exits.send(()).expect("it is awaited");
        });
        exited.recv().expect("the first thread exits");
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            let heir = scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let held = take(300..301);
                    let stays = thread::scope(|scope| {
                        scope
                            .spawn(|| attempt(300..301).is_none())
                            .join()
                            .expect("no panic")
                    });
                    assert!(stays, "the heir holds it");
                    release(held);
                }
            });
            tell.send(()).expect("the first thread waits");
            first.join().expect("no panic");
            ends.store(true, Ordering::Relaxed);
            heir.join().expect("no panic");
        });
        release(attempt(200..301).expect("all is released"));
    }
}

/// What a thread tries to write when its thread-locals are destroyed, and where it says whether it was refused.
type LateTry = (&'static RawSlots, Sender<bool>);

struct Tries(RefCell<Option<LateTry>>);

impl Drop for Tries {
    fn drop(&mut self) {
        if let Some((lock, refused)) = self.0.take() {
            let ask = Ask::new(Span::of(4..5).expect("it is not empty"), Wait::Never);
            let is_refused = lock.lock_exclusive(ask).is_none();
            refused.send(is_refused).expect("it is awaited");
        }
    }
}

thread_local!(static TRIES: Tries = const { Tries(RefCell::new(None)) });

/// A thread that is exiting borrows a record for each call. What it has met there in its way, in the list or in the
/// annex, it lets go of before it gives the record back: the next thread that has it would walk unseen.
#[test]
fn a_thread_that_exits_is_refused_by_a_node() {
    static IN_LIST: LazyLock<RawSlots> = LazyLock::new(RawSlots::new);
    static IN_ANNEX: LazyLock<RawSlots> =
        LazyLock::new(|| RawSlots::builder().annex_at_once().build());
    for lock in [&*IN_LIST, &*IN_ANNEX] {
        let take = move |range: Range<u64>| {
            let span = Span::of(range).expect("it is not empty");
            lock.lock_exclusive(Ask::new(span, Wait::Never))
                .expect("nobody holds it")
        };
        // SAFETY: the lock granted the token, which is released once.
        let release = move |token| unsafe { lock.unlock(token) };
        let held = [take(0..1), take(4..5)];
        let (refused, is_refused) = channel();
        let exits = thread::spawn(move || {
            TRIES.with(|late| *late.0.borrow_mut() = Some((lock, refused)));
            // The library's thread-locals are made after that, and so destroyed before.
            release(take(8..9));
        });
        exits.join().expect("no panic");
        assert_eq!(is_refused.recv(), Ok(true));
        held.into_iter().for_each(release);
    }
}

/// Asks for an owner's range, which somebody holds in the annex, when the library has given the thread's record back.
struct AsksLate;

impl Drop for AsksLate {
    fn drop(&mut self) {
        let owner = Owner::anonymous();
        let refused = OWNED
            .by(&owner)
            .try_write_for(0..8, Duration::from_millis(1));
        assert!(refused.is_err(), "somebody holds it");
        drop(OWNED.by(&owner).write(20..30).expect("nobody holds it"));
    }
}

static OWNED: LazyLock<RangeLock> =
    LazyLock::new(|| RangeLock::from_raw(RawSlots::builder().slots_at_once().build()));

thread_local!(static ASKS_LATE: AsksLate = const { AsksLate });

#[test]
fn a_thread_that_is_exiting_meets_what_an_owner_has_converted() {
    let owner = Owner::new();
    let mut held = OWNED.by(&owner).write(0..10).expect("nobody holds it");
    held.release(8..10);
    let late = thread::spawn(|| {
        ASKS_LATE.with(|_| ());
        drop(OWNED.write(40..50));
    });
    late.join().expect("no panic");
    drop(held);
}
