//! All the locks, by name.

use crate::baseline::{Bitmap, HEIGHT, KernelRw, LustreEx, MAX_HEIGHT, Song};
use crate::setting::{BLOCK, Holds, Knob, Resource, Setting, Values};
use crate::target::{Floor, Null, RangeLockCrate, Readers, Target};
use crate::{arr, batch, latency, memory, uncontended, waiting};
use spanlock::range::list::{Fairness, FastPath, ListEx, ListRw};
use spanlock::range::raw::Mode;
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::{RangeLock, RangeMutex};
use std::time::Duration;

/// What a lock claims, and so what the check at the end of a run demands of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// Holders that conflict never meet: no update may be lost.
    Promised,
    /// Nobody is kept out: updates get lost when threads overlap.
    None,
}

/// A lock that can be measured.
#[derive(Clone, Copy)]
pub struct Lock {
    /// What users call it.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What it claims.
    pub exclusion: Exclusion,
    /// How many ranges a thread may hold.
    pub holds: Holds,
    /// The atomic read-modify-writes of an uncontended acquisition and release, found by reading its code.
    pub rmw: &'static str,
    /// What users may choose about it.
    pub knobs: &'static [Knob],
    /// What they chose.
    pub values: Values,
    /// How it is measured.
    pub measure: &'static dyn Measure,
}

impl Lock {
    /// What entries have in common: a lock of ranges, made anew by nobody yet.
    pub const RANGES: Self = Self {
        name: "",
        about: "",
        exclusion: Exclusion::Promised,
        holds: Holds::Many,
        rmw: "2",
        knobs: &[],
        values: Values::NONE,
        measure: &Make(|_| Null),
    };

    /// What entries for the whole resource have in common.
    pub const WHOLE: Self = Self {
        holds: Holds::One,
        ..Self::RANGES
    };

    /// For a resource, with what users chose.
    #[must_use]
    pub fn setting(&self, resource: Resource) -> Setting {
        Setting {
            resource,
            values: self.values,
        }
    }

    /// Why a thread cannot hold several ranges of a resource at a time; `None` if it can.
    #[must_use]
    pub fn holds_one_because(&self, resource: Resource) -> Option<&'static str> {
        self.holds.one_because(&self.setting(resource))
    }
}

/// The measurements, each compiled for one lock and run on a fresh one.
pub trait Measure: Sync {
    /// What the lock does with readers.
    fn readers(&self) -> Readers;

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

impl<T: Target> Measure for Make<T> {
    fn readers(&self) -> Readers {
        T::READERS
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

    fn uncontended(&self, values: Values, mode: Mode, pairs: u32) -> Duration {
        uncontended::time(&self.made(Resource::ARRAY, values), mode, pairs)
    }

    fn sleeper(&self, values: Values, hold: Duration) -> Option<Duration> {
        waiting::sleeper(&self.made(Resource::ARRAY, values), hold)
    }
}

/// The lock that the comparisons below tables are about.
pub const OURS: &str = "list-rw";

/// Those that [`OURS`] is to be compared with.
pub const RIVALS: [&str; 2] = ["kernel-rw", "range-lock"];

/// The knob of locks that are skip lists.
const HEIGHT_KEY: &str = "h";

/// The largest segments, in powers of two, of which no two ranges of a workload share one.
fn segment(setting: &Setting) -> u64 {
    1 << setting.resource.grain.trailing_zeros()
}

/// All of them, in the order of tables.
pub static LOCKS: &[Lock] = &[
    Lock {
        name: OURS,
        about: "readers and writers in a list (P1 §4.2): fair, fast path; the default RangeLock",
        measure: &Make(|_| RangeLock::new()),
        ..Lock::RANGES
    },
    Lock {
        name: "list-rw-nofast",
        about: "list-rw without the fast path of an empty list",
        rmw: "3",
        measure: &Make(|_| RangeLock::from_raw(ListRw::builder().fast_path(FastPath::Off).build())),
        ..Lock::RANGES
    },
    Lock {
        name: "list-rw-unfair",
        about: "list-rw where a request may be overtaken without end",
        measure: &Make(|_| {
            RangeLock::from_raw(ListRw::builder().fairness(Fairness::Unfair).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "list-ex",
        about: "exclusive ranges in a list (P1 §4.1): fair, fast path; the default RangeMutex",
        measure: &Make(|_| RangeMutex::new()),
        ..Lock::RANGES
    },
    Lock {
        name: "list-ex-nofast",
        about: "list-ex without the fast path of an empty list",
        rmw: "3",
        measure: &Make(|_| {
            RangeMutex::from_raw(ListEx::builder().fast_path(FastPath::Off).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "srl-array",
        about: "a reader-writer word for each segment (P3 §IV): fair, never waits with full hands",
        rmw: "2 a segment",
        measure: &Make(|setting| {
            let array = SrlArray::builder().segment(segment(setting));
            RangeLock::from_raw(array.length(setting.units()).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "srl-tree",
        about: "srl-array with its words in a radix tree of fan-out 16, made on demand (P3 §IV)",
        rmw: "2 a segment",
        measure: &Make(|setting| {
            let segments = setting.units().div_ceil(segment(setting));
            let depth = (1..16).find(|&depth| 16_u64.pow(depth) >= segments);
            let tree = SrlTree::builder().segment(segment(setting)).fan_out(16);
            RangeLock::from_raw(tree.depth(depth.unwrap_or(16)).build())
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "kernel-rw",
        about: "readers and writers in an interval tree under a spin lock, first come first served (P1 §3)",
        measure: &Make(|_| RangeLock::from_raw(KernelRw::new())),
        ..Lock::RANGES
    },
    Lock {
        name: "lustre-ex",
        about: "kernel-rw for exclusive ranges only (P1 §3)",
        measure: &Make(|_| RangeMutex::from_raw(LustreEx::new())),
        ..Lock::RANGES
    },
    Lock {
        name: "song",
        about: "exclusive ranges in a skip list under a spin lock (Song; P4 §2.1.2): when hundreds are held, by few \
                threads; all meet at the spin lock",
        knobs: &[Knob {
            key: HEIGHT_KEY,
            about: "levels of the skip list",
            allowed: 1..=MAX_HEIGHT as u64,
        }],
        measure: &Make(|setting| {
            let height = setting.values.get(HEIGHT_KEY);
            RangeMutex::from_raw(Song::new(height.map_or(HEIGHT, |height| height as usize)))
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "bitmap",
        about: "a bit per block, by compare-exchange (P4 §4.4.1): when ranges are few blocks; one operation per 64 \
                blocks, and memory for all",
        holds: Holds::OnePerBlock,
        knobs: &[Knob {
            key: BLOCK,
            about: "positions that conflict as one; unless told, as exact as the workload's ranges",
            allowed: 1..=u64::MAX,
        }],
        measure: &Make(|setting| {
            RangeMutex::from_raw(Bitmap::new(setting.units(), setting.block()))
        }),
        ..Lock::RANGES
    },
    Lock {
        name: "std-rwlock",
        about: "std::sync::RwLock over the whole resource",
        measure: &Make(|_| std::sync::RwLock::new(())),
        ..Lock::WHOLE
    },
    Lock {
        name: "parking-lot",
        about: "parking_lot::RwLock over the whole resource",
        measure: &Make(|_| parking_lot::RwLock::new(())),
        ..Lock::WHOLE
    },
    Lock {
        name: "range-lock",
        about: "the crate range-lock: exclusive, a mutex over a B-tree; tries, spins, then yields",
        rmw: "4",
        measure: &Make(|setting| RangeLockCrate::new(setting.units())),
        ..Lock::RANGES
    },
    Lock {
        name: "null",
        about: "no lock: the ceiling. Loses updates when threads overlap, and is not held to the check",
        exclusion: Exclusion::None,
        rmw: "0",
        measure: &Make(|_| Null),
        ..Lock::RANGES
    },
];

/// What no lock can do better than, for [`uncontended`] only.
pub static FLOORS: &[Lock] = &[
    Lock {
        name: "floor",
        about: "one compare-exchange and one store on a private line",
        rmw: "1",
        measure: &Make(|_| Floor::<0>::default()),
        ..Lock::WHOLE
    },
    Lock {
        name: "floor-2rmw",
        about: "two compare-exchanges on a private line",
        measure: &Make(|_| Floor::<1>::default()),
        ..Lock::WHOLE
    },
];

/// The lock of that name.
pub fn find(name: &str) -> Option<&'static Lock> {
    LOCKS.iter().chain(FLOORS).find(|lock| lock.name == name)
}

/// What the lock of that name claims. One that is not known is taken at its word.
pub(crate) fn exclusion(name: &str) -> Exclusion {
    find(name).map_or(Exclusion::Promised, |lock| lock.exclusion)
}

/// The lock of a text `name` or `name:key=value:…`, among those lists.
///
/// What is made up here lives as long as the program, which reads its arguments once.
///
/// # Errors
/// What was expected instead.
pub fn parse(text: &str, among: &[&'static [Lock]]) -> Result<&'static Lock, String> {
    let (name, chosen) = match text.split_once(':') {
        Some((name, chosen)) => (name, Some(chosen)),
        None => (text, None),
    };
    let all = || among.iter().copied().flatten();
    let lock = all().find(|lock| lock.name == name).ok_or_else(|| {
        let names: Vec<_> = all().map(|lock| lock.name).collect();
        format!("expected one of {}", names.join(", "))
    })?;
    let Some(chosen) = chosen else {
        return Ok(lock);
    };
    let values = Values::parse(name, lock.knobs, chosen)?;
    let named = Lock {
        name: text.to_owned().leak(),
        values,
        ..*lock
    };
    Ok(Box::leak(Box::new(named)))
}

#[cfg(test)]
mod tests {
    use super::{FLOORS, LOCKS, OURS, RIVALS, find, parse};
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_found() {
        let all = || LOCKS.iter().chain(FLOORS);
        let names: HashSet<_> = all().map(|lock| lock.name).collect();
        assert_eq!(names.len(), all().count());
        for name in RIVALS.iter().chain([&OURS]) {
            assert!(find(name).is_some_and(|lock| lock.name == *name), "{name}");
        }
    }

    #[test]
    fn parameters_make_a_lock_of_their_own_name() {
        let song = parse("song:h=4", &[LOCKS]).unwrap();
        assert_eq!((song.name, song.values.get("h")), ("song:h=4", Some(4)));
        assert_eq!(parse("song", &[LOCKS]).unwrap().values.get("h"), None);
        for (wrong, expected) in [
            ("song:h=99", "h=1..=16"),
            ("song:", "h=1..=16"),
            ("bitmap:h=4", "block=1.."),
            ("null:h=4", "takes no parameters"),
            ("sung:h=4", "expected one of list-rw"),
            ("floor", "expected one of list-rw"),
        ] {
            let error = parse(wrong, &[LOCKS]).err().unwrap();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }
}
