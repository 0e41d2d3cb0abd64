//! As `names`: numbers, the same in each run of a simulation.

use std::cell::Cell;

thread_local! {
    static LAST: Cell<u128> = const { Cell::new(0) };
}

/// The first one is the next.
pub(crate) fn begin() {
    LAST.set(0);
}

/// A new one.
pub(crate) fn fresh() -> u128 {
    LAST.set(LAST.get() + 1);
    LAST.get()
}
