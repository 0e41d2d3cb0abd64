//! The measurements, compiled for each lock.

use crate::among::{self, Case, Waited};
#[cfg(target_os = "linux")]
use crate::blob::{self, Stored};
use crate::many_locks::Many;
use crate::memory::Allocated;
use crate::meter::Meter;
use crate::target::{GivesUp, Readers, Target};
use crate::{many_locks, memory, pairs, processor, soak};
use spanlock::range::raw::Mode;
use spanlock_records::record::{ManyLocks, Memory};
use spanlock_records::trial;
use spanlock_records::trial::run::Schedule;
use spanlock_records::trial::run::{Outcome, Trial};
use spanlock_records::trial::setting::{Resource, Setting, Values};
#[cfg(target_os = "linux")]
use spanlock_workbench::blob::Tried;
use spanlock_workbench::crew::Signal;
use spanlock_workbench::{arr, batch, latency, pattern};
use std::time::Duration;

/// The measurements, each compiled for one lock and run on a fresh one.
pub trait Measure: Sync {
    /// What the lock does with readers.
    fn readers(&self) -> Readers;

    /// Which requests may give up.
    fn gives_up(&self) -> GivesUp;

    /// Runs [`arr`].
    fn arr(&self, values: Values, trial: &Trial<trial::arr::Load>) -> Outcome;

    /// Runs [`batch`].
    fn batch(&self, values: Values, trial: &Trial<trial::batch::Load>) -> Outcome;

    /// Runs [`pattern`].
    fn pattern(&self, values: Values, trial: &Trial<trial::pattern::Load>) -> Outcome;

    /// Runs a round of [`latency`], which `repeat` numbers.
    fn latency(&self, values: Values, trial: &Trial<trial::latency::Load>) -> Outcome;

    /// Runs [`blob`](spanlock_workbench::blob): reads in an area whose ranges the lock gives out.
    ///
    /// # Errors
    /// When the system refuses an alias.
    ///
    /// # Safety
    /// Holders of overlapping ranges exclude each other.
    #[cfg(target_os = "linux")]
    unsafe fn blob(
        &self,
        values: Values,
        trial: &trial::blob::Trial,
        stored: &Stored,
    ) -> blob::Ended;

    /// Runs [`memory`]: what so many holders take.
    fn memory(&self, values: Values, hold: usize, allocated: Allocated<'_>) -> Memory;

    /// Runs [`many_locks`]: what so many locks take that so many threads use once.
    fn many_locks(&self, values: Values, many: Many, allocated: Allocated<'_>) -> ManyLocks;

    /// Makes a lock for [`soak`].
    fn soak(&self, values: Values, plan: soak::Plan) -> Box<dyn soak::Soaked>;

    /// Runs [`pairs`]: how long so many acquisitions and releases take one thread.
    fn uncontended(&self, values: Values, mode: Mode, pairs: u32) -> Duration;

    /// Runs a case of [`among`].
    fn among(&self, values: Values, case: &Case, schedule: Schedule) -> Waited;

    /// Runs [`processor::sleeper`]: processor time of a thread that waits while another holds for so long.
    fn sleeper(&self, values: Values, hold: Duration) -> Option<Duration>;
}

/// How to make a lock.
pub struct Make<F>(pub F);

impl<F> Make<F> {
    fn made<T>(&self, resource: Resource, values: Values) -> T
    where
        F: Fn(&Setting) -> T,
    {
        (self.0)(&Setting { resource, values })
    }
}

impl<T: Target + Send + 'static, F: Fn(&Setting) -> T + Sync> Measure for Make<F> {
    fn readers(&self) -> Readers {
        T::READERS
    }

    fn gives_up(&self) -> GivesUp {
        T::GIVES_UP
    }

    fn arr(&self, values: Values, trial: &Trial<trial::arr::Load>) -> Outcome {
        let lock = self.made(Resource::ARRAY, values);
        arr::run::<Signal>(&lock, trial, &mut Meter::of(trial.events))
    }

    fn batch(&self, values: Values, trial: &Trial<trial::batch::Load>) -> Outcome {
        let lock = self.made(trial.load.resource(), values);
        batch::run::<Signal>(&lock, trial, &mut Meter::of(trial.events))
    }

    fn pattern(&self, values: Values, trial: &Trial<trial::pattern::Load>) -> Outcome {
        let resource = trial.load.pattern.shape().resource();
        let make = || self.made(resource, values);
        pattern::run::<Signal, _>(make, trial, &mut Meter::of(trial.events))
    }

    fn latency(&self, values: Values, trial: &Trial<trial::latency::Load>) -> Outcome {
        let make = || self.made(trial.load.resource(), values);
        latency::run(make, trial)
    }

    #[cfg(target_os = "linux")]
    unsafe fn blob(
        &self,
        values: Values,
        trial: &trial::blob::Trial,
        stored: &Stored,
    ) -> blob::Ended {
        // SAFETY: the caller's.
        let lock = unsafe { Tried::new(self.made(trial::blob::RESOURCE, values)) };
        blob::shared(lock, trial, stored)
    }

    fn memory(&self, values: Values, hold: usize, allocated: Allocated<'_>) -> Memory {
        memory::run(|| self.made(memory::RESOURCE, values), hold, allocated)
    }

    fn many_locks(&self, values: Values, many: Many, allocated: Allocated<'_>) -> ManyLocks {
        many_locks::run(|| self.made(many_locks::RESOURCE, values), many, allocated)
    }

    fn soak(&self, values: Values, plan: soak::Plan) -> Box<dyn soak::Soaked> {
        Box::new(soak::Soaking::new(self.made(soak::RESOURCE, values), plan))
    }

    fn uncontended(&self, values: Values, mode: Mode, count: u32) -> Duration {
        pairs::time(&self.made(Resource::ARRAY, values), mode, count)
    }

    fn among(&self, values: Values, case: &Case, schedule: Schedule) -> Waited {
        let resource = Resource::ARRAY;
        among::run(&self.made(resource, values), resource, case, schedule)
    }

    fn sleeper(&self, values: Values, hold: Duration) -> Option<Duration> {
        processor::sleeper(&self.made(Resource::ARRAY, values), hold)
    }
}
