//! What owners hold that are no threads: against a model, under threads that pass it on, and case by case.

#[path = "../common/mod.rs"]
mod common;

mod anonymous;
mod cases;
mod model;
mod mutexes;
mod passing;
mod reentrant;
mod slices;

use spanlock::range::Span;
use spanlock::range::raw::Mode;
use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

/// The positions fall into cells, which are always held as a whole: single ones at both ends, and the rest.
const CELLS: usize = 24;
const SINGLE: u64 = 19;

/// The positions of a cell.
fn cell(number: usize) -> Span {
    let (number, last) = (number as u64, CELLS as u64 - 1);
    let end = u64::MAX - (last - number);
    let span = match number {
        0..SINGLE => Span::of(number..=number),
        SINGLE => Span::of(number..=end),
        _ => Span::of(end..=end),
    };
    span.expect("a cell has positions")
}

/// Some cells, one after the other.
#[derive(Debug, Clone, Copy)]
struct Cells {
    first: usize,
    last: usize,
}

impl Cells {
    fn span(self) -> Span {
        let (first, last) = (cell(self.first), cell(self.last));
        Span::of(first.start()..=last.last()).expect("it has positions")
    }

    fn each(self) -> impl Iterator<Item = usize> {
        self.first..=self.last
    }
}

/// How each cell is held.
type Map = [Option<Mode>; CELLS];

macro_rules! on_each_lock {
    ($($lock:ident)+) => {$(
        mod $lock {
            use super::common;
            use spanlock::range::RangeLock;

            #[test]
            fn agrees_with_the_model() {
                super::model::agrees(&RangeLock::from_raw(common::$lock()));
            }

            #[test]
            fn threads_pass_holdings_on() {
                super::passing::threads_pass_holdings_on(RangeLock::from_raw(common::$lock()));
            }
        }
    )+};
}

on_each_lock! {
    standard slow_path unfair fair_at_once writers_first
    skip_standard skip skip_unfair
    slots slots_at_once slots_buckets slots_annex slots_unfair slots_fair_at_once
}

macro_rules! on_each_mutex {
    ($($lock:ident)+) => {
        mod of_mutexes {
            $(
                #[test]
                fn $lock() {
                    let lock = spanlock::range::RangeMutex::from_raw(super::common::$lock());
                    super::mutexes::threads_pass_holdings_on(lock);
                }
            )+
        }
    };
}

on_each_mutex! {
    exclusive exclusive_slow_path exclusive_unfair skip_exclusive standard skip slots slots_at_once
}
