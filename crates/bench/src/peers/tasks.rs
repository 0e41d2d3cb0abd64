//! Slots, whose ranges tasks await: each thread runs one task at a time, and sleeps while it is pending. So
//! workloads of threads show what tasks pay, without an executor's own costs.

use pollster::FutureExt;
use spanlock::range::raw::Mode;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Holding, Owner, RangeLock};
use spanlock_workbench::target::{Readers, Target};
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The lock, in slots from the start: it does not move there for tasks alone.
#[derive(Debug)]
pub struct ByTasks(RangeLock);

impl Default for ByTasks {
    fn default() -> Self {
        let slots = RawSlots::builder().slots_at_once();
        Self(RangeLock::from_raw(slots.build()))
    }
}

/// A task at its first poll is nobody else.
static SOMEBODY: Owner = Owner::anonymous();

/// What a task holds. A waker is made only for one that waits: executors make one for each task, not for each poll.
fn held<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(held) => held,
        Poll::Pending => future.block_on(),
    }
}

impl Target for ByTasks {
    const READERS: Readers = Readers::Share;
    type Read<'a> = Holding<&'a RangeLock>;
    type Write<'a> = Holding<&'a RangeLock>;

    fn read(&self, range: Range<u64>) -> Self::Read<'_> {
        held(self.0.read_async(range))
    }

    fn write(&self, range: Range<u64>) -> Self::Write<'_> {
        held(self.0.write_async(range))
    }

    fn try_write(&self, range: Range<u64>) -> Option<Self::Write<'_>> {
        self.0.by(&SOMEBODY).try_lock(range, Mode::Exclusive).ok()
    }
}
