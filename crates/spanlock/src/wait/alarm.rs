//! What a queue knows of the calls that it has asked the timer for.

use prim::clock::Instant;
use prim::thread;

/// The earliest call that a queue has asked the timer for. A forked child has a timer of its own: the calls that its
/// parent has asked for do not come there, and count as none.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Set>);

#[derive(Debug)]
struct Set {
    when: Instant,
    /// In which generation of forked processes it was set.
    forks: u32,
}

impl Alarm {
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// A call is to come by `when`. Returns whether it has to be asked for, as there is none before.
    pub(crate) fn set(&mut self, when: Instant) -> bool {
        let forks = thread::forks();
        let is_set = |set: &Set| set.forks == forks && set.when <= when;
        if self.0.as_ref().is_some_and(is_set) {
            return false;
        }
        self.0 = Some(Set { when, forks });
        true
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// A call has come that was asked for at `at`. `false`: an earlier one has done its work.
    pub(crate) fn rings(&mut self, at: Instant) -> bool {
        let rings = self.0.as_ref().is_some_and(|set| set.when <= at);
        if rings {
            self.0 = None;
        }
        rings
    }
}
