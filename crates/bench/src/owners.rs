//! What one thread pays for ranges that an owner holds, beside ranges that it holds itself. Nobody else wants the lock.

use crate::pairs::repeat;
use derive_more::Display;
use spanlock::range::list::ListRw;
use spanlock::range::raw::RawOwned;
use spanlock::range::skip::SkipRw;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock};
use std::cell::RefCell;
use std::future::Future;
use std::hint::black_box;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// The range that is locked.
const RANGE: Range<u64> = 0..64;
/// One elsewhere.
const ELSEWHERE: Range<u64> = 4096..4160;
/// The ranges of an owner that holds many.
const MANY: u32 = 100_000;
/// One between them, in the middle.
const BETWEEN: Range<u64> = {
    let start = MANY as u64 / 2 * 128 + 64;
    start..start + 64
};

/// What is timed.
#[derive(Debug, Clone, Copy, Display)]
pub enum Case {
    /// A thread acquires and releases a range.
    #[display("write")]
    Thread,
    /// The same, while an owner holds another range.
    #[display("write beside an owner")]
    Beside,
    /// An owner acquires a range, shared, and releases it.
    #[display("owner's read")]
    Read,
    /// The same, exclusive.
    #[display("owner's write")]
    Write,
    /// As the last, of an owner without a name, as owned guards have it.
    #[display("anonymous owner's write")]
    Anonymous,
    /// As the last, of a task, whose request is ready at once.
    #[display("task's write")]
    Await,
    /// An owner shares what it holds alone, and converts it to have it alone again.
    #[display("owner's conversion")]
    Convert,
    /// An owner acquires many ranges, in no order, and holds them all.
    #[display("one of {MANY} held")]
    Many,
    /// The owner of the many acquires and releases one more among them.
    #[display("one more than {MANY} held")]
    More,
}

/// Those of a lock that finds its place among many ranges one by one.
const FEW: &[Case] = &[
    Case::Beside,
    Case::Read,
    Case::Write,
    Case::Anonymous,
    Case::Await,
    Case::Convert,
];
/// Those of one that searches.
const ALL: &[Case] = &[
    Case::Beside,
    Case::Read,
    Case::Write,
    Case::Anonymous,
    Case::Await,
    Case::Convert,
    Case::Many,
    Case::More,
];
/// Those of the slot lock after its move, of which the rows of threads say nothing.
const MOVED: &[Case] = &[
    Case::Thread,
    Case::Beside,
    Case::Read,
    Case::Write,
    Case::Anonymous,
    Case::Await,
    Case::Convert,
];

/// A lock whose ranges an owner may hold.
pub struct Owned {
    /// Its name in the [registry](crate::registry).
    pub lock: &'static str,
    /// The state it is in, for tables; or nothing.
    pub state: &'static str,
    /// What is timed of it.
    pub cases: &'static [Case],
    time: fn(Case, u32) -> (u32, Duration),
}

/// All of them.
pub static OWNED: [Owned; 4] = [
    Owned {
        lock: "slots",
        state: "",
        cases: ALL,
        time: |case, calls| time(&RangeLock::new(), case, calls),
    },
    Owned {
        lock: "slots",
        state: ", moved",
        cases: MOVED,
        time: |case, calls| {
            let moved = RawSlots::builder().slots_at_once().build();
            time(&RangeLock::from_raw(moved), case, calls)
        },
    },
    Owned {
        lock: "list-rw",
        state: "",
        cases: FEW,
        time: |case, calls| time(&RangeLock::from_raw(ListRw::new()), case, calls),
    },
    Owned {
        lock: "skip-rw",
        state: "",
        cases: ALL,
        time: |case, calls| time(&RangeLock::from_raw(SkipRw::new()), case, calls),
    },
];

impl Owned {
    /// How long so many calls take; or of [`Case::Many`], one for each range. Says how many there were.
    #[must_use]
    pub fn time(&self, case: Case, calls: u32) -> (u32, Duration) {
        (self.time)(case, calls)
    }
}

fn time<L: RawOwned>(lock: &RangeLock<L>, case: Case, pairs: u32) -> (u32, Duration) {
    let owner = Owner::new();
    let by = || black_box(lock).by(black_box(&owner));
    let hold = |range| by().write(range).expect("nobody cancels it");
    let thread = || drop(black_box(lock).write(black_box(RANGE)));
    let took = match case {
        Case::Thread => repeat(pairs, thread),
        Case::Beside => {
            let _elsewhere = hold(ELSEWHERE);
            repeat(pairs, thread)
        }
        Case::Read => repeat(pairs, || drop(by().read(black_box(RANGE)))),
        Case::Write => repeat(pairs, || drop(by().write(black_box(RANGE)))),
        Case::Anonymous => {
            let somebody = Owner::anonymous();
            repeat(pairs, || {
                drop(black_box(lock).by(&somebody).write(black_box(RANGE)))
            })
        }
        Case::Await => repeat(pairs, || {
            let mut context = Context::from_waker(Waker::noop());
            let mut request = black_box(lock).write_async(black_box(RANGE));
            let held = Pin::new(&mut request).poll(&mut context);
            assert!(held.is_ready(), "nobody else wants it");
        }),
        Case::Convert => {
            let held = RefCell::new(hold(RANGE));
            repeat(pairs, || {
                let mut held = held.borrow_mut();
                held.downgrade();
                held.upgrade().expect("nobody shares it");
            })
        }
        Case::Many => {
            let start = Instant::now();
            let held: Vec<_> = places().map(hold).collect();
            let took = start.elapsed();
            drop(held);
            return (MANY, took);
        }
        Case::More => {
            let _held: Vec<_> = places().map(hold).collect();
            repeat(pairs, || drop(by().write(black_box(BETWEEN))))
        }
    };
    (pairs, took)
}

/// Disjoint ranges, each once, in no order.
fn places() -> impl Iterator<Item = Range<u64>> {
    // A prime that does not divide the number, so each place comes once.
    (0..u64::from(MANY)).map(|number| {
        let start = number * 61_803 % u64::from(MANY) * 128;
        start..start + 64
    })
}
