//! The measurements, compiled for each lock.

use crate::setting::{Resource, Setting, Values};
use crate::target::{GivesUp, Readers, Target};
use crate::{arr, batch, latency, memory, soak, uncontended, waiting};
use spanlock::range::raw::Mode;
use std::time::Duration;

/// The measurements, each compiled for one lock and run on a fresh one.
pub trait Measure: Sync {
    /// What the lock does with readers.
    fn readers(&self) -> Readers;

    /// Which requests may give up.
    fn gives_up(&self) -> GivesUp;

    /// Runs [`arr`].
    fn arr(&self, values: Values, trial: &arr::Trial) -> arr::Outcome;

    /// Runs [`batch`].
    fn batch(&self, values: Values, trial: &batch::Trial) -> batch::Outcome;

    /// Runs a round of [`latency`].
    fn latency(&self, values: Values, trial: &latency::Trial, round: u32) -> latency::Outcome;

    /// Runs [`memory`]: what so many holders take.
    fn memory(
        &self,
        values: Values,
        hold: usize,
        allocated: memory::Allocated<'_>,
    ) -> memory::Outcome;

    /// Makes a lock for [`soak`].
    fn soak(&self, values: Values, plan: soak::Plan) -> Box<dyn soak::Soaked>;

    /// Runs [`uncontended`]: how long so many acquisitions and releases take one thread.
    fn uncontended(&self, values: Values, mode: Mode, pairs: u32) -> Duration;

    /// Runs [`waiting::sleeper`]: processor time of a thread that waits while another holds for so long.
    fn sleeper(&self, values: Values, hold: Duration) -> Option<Duration>;
}

/// How to make a lock.
pub struct Make<T>(pub fn(&Setting) -> T);

impl<T> Make<T> {
    fn made(&self, resource: Resource, values: Values) -> T {
        (self.0)(&Setting { resource, values })
    }
}

impl<T: Target + Send + 'static> Measure for Make<T> {
    fn readers(&self) -> Readers {
        T::READERS
    }

    fn gives_up(&self) -> GivesUp {
        T::GIVES_UP
    }

    fn arr(&self, values: Values, trial: &arr::Trial) -> arr::Outcome {
        arr::run(&self.made(Resource::ARRAY, values), trial)
    }

    fn batch(&self, values: Values, trial: &batch::Trial) -> batch::Outcome {
        batch::run(&self.made(trial.resource(), values), trial)
    }

    fn latency(&self, values: Values, trial: &latency::Trial, round: u32) -> latency::Outcome {
        let make = || self.made(trial.resource(), values);
        latency::run(&make(), &make(), trial, round)
    }

    fn memory(
        &self,
        values: Values,
        hold: usize,
        allocated: memory::Allocated<'_>,
    ) -> memory::Outcome {
        memory::run(|| self.made(memory::RESOURCE, values), hold, allocated)
    }

    fn soak(&self, values: Values, plan: soak::Plan) -> Box<dyn soak::Soaked> {
        Box::new(soak::Soaking::new(self.made(soak::RESOURCE, values), plan))
    }

    fn uncontended(&self, values: Values, mode: Mode, pairs: u32) -> Duration {
        uncontended::time(&self.made(Resource::ARRAY, values), mode, pairs)
    }

    fn sleeper(&self, values: Values, hold: Duration) -> Option<Duration> {
        waiting::sleeper(&self.made(Resource::ARRAY, values), hold)
    }
}
