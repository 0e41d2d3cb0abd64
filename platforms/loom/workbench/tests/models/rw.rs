//! BRAVO as published, and the locks of Rust programs.

use spanlock::rw::{FutexRwLock, WritersFirst};
use spanlock_testkit_loom::rw::*;
use spanlock_testkit_loom::{locks, models};
use spanlock_workbench_loom::{PaperBravo, ParkingRwLock, StdRwLock};

locks! {
    bravo: PaperBravo<FutexRwLock<WritersFirst>> = PaperBravo::over(FutexRwLock::new());
    std: StdRwLock = StdRwLock::new();
    parking: ParkingRwLock = ParkingRwLock::new();
}

models! {
    a_reader_and_a_writer: 3 on bravo std parking;
    a_try_does_not_wait: 3 on bravo std parking;
    two_writers_and_a_reader: 2 on bravo std parking;
    two_writers: 3 on std parking;
    three_writers: 2 on std parking;
    a_reader_and_a_writer_behind_a_writer: 2 on std parking;
    a_fast_reader_and_a_writer: 3 on bravo;
    two_writers_after_a_reader: 3 on bravo;
    two_readers_and_a_writer: 2 on bravo parking;
    a_fast_reader_a_writer_and_another_reader: 2 on bravo;
    readers_are_inside_together: 2 on bravo std parking;
}
