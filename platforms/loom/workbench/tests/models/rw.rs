//! BRAVO as published.

use spanlock::rw::{FutexRwLock, WritersFirst};
use spanlock_testkit_loom::rw::*;
use spanlock_testkit_loom::{locks, models};
use spanlock_workbench_loom::PaperBravo;

locks! {
    bravo: PaperBravo<FutexRwLock<WritersFirst>> = PaperBravo::over(FutexRwLock::new());
}

models! {
    a_reader_and_a_writer: 3 on bravo;
    a_try_does_not_wait: 3 on bravo;
    two_writers_and_a_reader: 2 on bravo;
    a_fast_reader_and_a_writer: 3 on bravo;
    two_writers_after_a_reader: 3 on bravo;
    two_readers_and_a_writer: 2 on bravo;
    a_fast_reader_a_writer_and_another_reader: 2 on bravo;
    readers_are_inside_together: 2 on bravo;
}
