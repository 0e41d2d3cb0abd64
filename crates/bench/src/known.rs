//! Locks as records have them: with their family and what they claim, so that a reader of a record needs no registry.
//! A new comparison that needs more of a lock adds it here, and to the record.

use crate::micro::Kernel;
use crate::named::Named;
use crate::{registry, rw, sets, sim, space};
use spanlock_judge::record::lock::{Entry, Lock};
use spanlock_trial::lock::{Described, RwDescribed};
use spanlock_trial::set::SetDescribed;

/// A lock that records can name.
pub trait Known: Copy {
    /// As records have it.
    fn known(self) -> Lock;
}

impl Known for &Described {
    fn known(self) -> Lock {
        Lock {
            name: self.name.to_owned(),
            family: self.family.to_owned(),
            exclusion: self.exclusion,
            policy: None,
        }
    }
}

impl Known for &RwDescribed {
    fn known(self) -> Lock {
        let family = self.over.map_or(self.name, |over| over.lock);
        Lock {
            name: self.name.to_owned(),
            family: family.to_owned(),
            exclusion: self.exclusion,
            policy: self.over.map(|over| over.policy.to_owned()),
        }
    }
}

impl Known for &SetDescribed {
    fn known(self) -> Lock {
        Lock::named(self.name)
    }
}

macro_rules! described {
    ($($lock:ty),+) => {$(
        impl Known for &$lock {
            fn known(self) -> Lock {
                (&self.described).known()
            }
        }
    )+};
}

impl Known for &space::Variant {
    fn known(self) -> Lock {
        space::known(self.name())
    }
}

impl Known for &space::Simulated {
    fn known(self) -> Lock {
        space::known(self.name())
    }
}

described!(
    registry::Lock,
    rw::locks::Lock,
    sim::Lock,
    sim::RwLock,
    sets::Stock,
    sets::Simulated
);

impl Known for Kernel {
    fn known(self) -> Lock {
        Lock::named(&self.to_string())
    }
}

/// All range locks, as they are listed.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let entry = |lock: &registry::Lock| Entry {
        lock: lock.name.to_owned(),
        family: lock.family.to_owned(),
        about: lock.about.to_owned(),
        use_when: lock.when.to_owned(),
        avoid_when: lock.avoid.to_owned(),
        cost: format!("{} atomic read-modify-writes, uncontended", lock.rmw),
        memory: lock.memory.to_owned(),
        source: lock.source.to_owned(),
        parameters: lock.params.iter().map(ToString::to_string).collect(),
    };
    registry::LOCKS.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::Known;
    use crate::named::Named;
    use crate::{micro, registry, rw, sets, sim, space, store};
    use spanlock_judge::compare::claims;
    use spanlock_judge::record::Kind;

    #[test]
    fn claims_speak_of_locks_that_there_are() {
        let is_there = |kind: Option<Kind>, lock: &str| match kind {
            Some(Kind::Rw) => rw::locks::find(lock).is_some(),
            Some(Kind::Set) => sets::find(lock).is_ok(),
            Some(Kind::Vm | Kind::VmStat) => space::Variant::find(lock).is_ok(),
            Some(Kind::Store) => store::Subject::find(lock).is_ok(),
            Some(Kind::Micro) => lock.parse::<micro::Kernel>().is_ok(),
            _ => registry::find(lock).is_some(),
        };
        for claim in claims() {
            for lock in claim.locks.iter().chain(&claim.than) {
                assert!(is_there(claim.place.kind(), lock), "{lock}");
            }
        }
    }

    #[test]
    fn forms_that_are_only_simulated_are_of_the_family_of_what_they_are_a_form_of() {
        for lock in sim::Lock::all() {
            let form_of = registry::LOCKS.iter().filter(|measured| {
                let rest = lock.name().strip_prefix(measured.name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            });
            let longest = form_of.max_by_key(|measured| measured.name.len());
            let longest = longest.unwrap_or_else(|| panic!("{} is a form of nothing", lock.name()));
            assert_eq!(lock.known().family, longest.family, "{}", lock.name());
        }
    }
}
