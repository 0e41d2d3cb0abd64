//! Who holds which `fcntl` locks. Whether a lock can be granted is decided by a range lock for each file.
//!
//! POSIX locks belong to an owner, a process as a rule. A new lock replaces what its owner has of the range, in parts
//! if need be: a conversion of what an [`Owner`] holds.

use spanlock::range::list::ListRw;
use spanlock::range::raw::Mode;
use spanlock::range::{Holding, Owner, RangeLock, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// Who has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// What the kernel calls the owner.
    pub(crate) owner: u64,
    /// The open file that the lock was set through.
    pub(crate) handle: u64,
    /// The process, to tell others.
    pub(crate) pid: u32,
}

/// A lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) span: Span,
    pub(crate) mode: Mode,
    pub(crate) holder: Holder,
}

impl Lock {
    fn conflicts(&self, other: &Self) -> bool {
        self.holder.owner != other.holder.owner
            && self.mode.conflicts(other.mode)
            && self.span.overlaps(other.span)
    }
}

/// The locks of all files.
#[derive(Default)]
pub(crate) struct Locks {
    files: HashMap<u64, FileLocks>,
}

/// The locks of one file.
#[derive(Default)]
struct FileLocks {
    lock: Arc<RangeLock<ListRw>>,
    /// Who came first is first, as in the kernel: of several locks in the way, programs are told the first one.
    owners: Vec<Owned>,
}

impl FileLocks {
    fn of(&mut self, holder: Holder) -> &mut Owned {
        let known = |owned: &Owned| owned.holder.owner == holder.owner;
        let at = self.owners.iter().position(known).unwrap_or_else(|| {
            let holding = self.lock.by_arc(&Owner::new()).nothing();
            self.owners.push(Owned { holder, holding });
            self.owners.len() - 1
        });
        &mut self.owners[at]
    }
}

/// What an owner has of a file.
struct Owned {
    /// Who set the last lock.
    holder: Holder,
    holding: Holding<Arc<RangeLock<ListRw>>>,
}

impl Owned {
    /// Its locks, in order. Neighbours of one mode are one lock.
    fn locks(&self) -> Vec<Lock> {
        let holder = self.holder;
        let mut locks: Vec<Lock> = Vec::new();
        for (span, mode) in self.holding.pieces() {
            match locks.last_mut() {
                Some(last) if last.mode == mode && last.span.joined(span).is_some() => {
                    last.span = last.span.joined(span).expect("just seen");
                }
                _ => locks.push(Lock { span, mode, holder }),
            }
        }
        locks
    }
}

impl Locks {
    /// Sets a lock, in place of what its owner has of the range. If others are in the way, changes nothing and says
    /// false.
    pub(crate) fn set(&mut self, file: u64, lock: Lock) -> bool {
        let owned = self.files.entry(file).or_default().of(lock.holder);
        let granted = owned.holding.try_convert(lock.span, lock.mode).is_ok();
        if granted {
            owned.holder = lock.holder;
        }
        self.forget_what_is_empty(file);
        granted
    }

    /// Removes what an owner has of a range. Whether there was anything.
    pub(crate) fn clear(&mut self, file: u64, owner: u64, span: Span) -> bool {
        self.release(file, span, |holder| holder.owner == owner)
    }

    /// Removes all locks of a file that were set through a handle. Whether there were any.
    pub(crate) fn clear_handle(&mut self, file: u64, handle: u64) -> bool {
        self.release(file, Span::ALL, |holder| holder.handle == handle)
    }

    fn release(&mut self, file: u64, span: Span, whose: impl Fn(&Holder) -> bool) -> bool {
        let mut released = false;
        let owners = self.files.get_mut(&file).map(|locks| &mut locks.owners);
        let owners = owners.into_iter().flatten();
        for owned in owners.filter(|owned| whose(&owned.holder)) {
            released |= owned.holding.pieces().any(|(held, _)| held.overlaps(span));
            owned.holding.release(span);
        }
        self.forget_what_is_empty(file);
        released
    }

    /// The locks that are in the way of another one: those of an owner in their order in the file, and first those of
    /// the owner that has had locks of the file for longest.
    pub(crate) fn in_the_way(&self, file: u64, lock: &Lock) -> Vec<Lock> {
        let owners = self.files.get(&file).map(|locks| &locks.owners);
        let held = owners.into_iter().flatten().flat_map(Owned::locks);
        held.filter(|held| held.conflicts(lock)).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let owners = self.files.values().flat_map(|locks| &locks.owners);
        owners.map(|owned| owned.locks().len()).sum()
    }

    fn forget_what_is_empty(&mut self, file: u64) {
        if let Some(locks) = self.files.get_mut(&file) {
            locks.owners.retain(|owned| !owned.holding.is_empty());
            if locks.owners.is_empty() {
                self.files.remove(&file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POSITIONS: u64 = 12;

    /// What each owner has of each position.
    type Model = HashMap<(u64, u64), Mode>;

    fn lock(owner: u64, start: u64, last: u64, mode: Mode) -> Lock {
        let span = Span::of(start..=last).expect("not empty");
        let (handle, pid) = (owner * 10, 0);
        Lock {
            span,
            mode,
            holder: Holder { owner, handle, pid },
        }
    }

    fn is_free(model: &Model, lock: &Lock) -> bool {
        let blocks = |((owner, at), mode): (&(u64, u64), &Mode)| {
            *owner != lock.holder.owner
                && (lock.span.start()..=lock.span.last()).contains(at)
                && mode.conflicts(lock.mode)
        };
        !model.iter().any(blocks)
    }

    /// What the table says, position by position.
    fn seen(locks: &Locks) -> Model {
        let mut model = Model::new();
        let owners = locks.files.values().flat_map(|file| &file.owners);
        for held in owners.flat_map(Owned::locks) {
            for at in held.span.start()..=held.span.last() {
                assert!(model.insert((held.holder.owner, at), held.mode).is_none());
            }
        }
        model
    }

    proptest! {
        #[test]
        fn random_locks_are_as_in_a_model(
            steps in proptest::collection::vec((0..4_u64, 0..POSITIONS, 0..POSITIONS, 0..4_u8), 1..60)
        ) {
            let (mut locks, mut model) = (Locks::default(), Model::new());
            for (owner, a, b, what) in steps {
                let mode = if what == 0 { Mode::Shared } else { Mode::Exclusive };
                let lock = lock(owner, a.min(b), a.max(b), mode);
                let positions = lock.span.start()..=lock.span.last();
                match what {
                    0 | 1 => {
                        let free = is_free(&model, &lock);
                        prop_assert_eq!(locks.in_the_way(7, &lock).is_empty(), free);
                        prop_assert_eq!(locks.set(7, lock), free);
                        if free {
                            model.extend(positions.map(|at| ((owner, at), mode)));
                        }
                    }
                    2 => {
                        locks.clear(7, owner, lock.span);
                        model.retain(|(other, at), _| *other != owner || !positions.contains(at));
                    }
                    _ => {
                        locks.clear_handle(7, owner * 10);
                        model.retain(|(other, _), _| *other != owner);
                    }
                }
                prop_assert_eq!(&seen(&locks), &model);
                prop_assert_eq!(locks.files.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn neighbours_become_one_lock() {
        let mut locks = Locks::default();
        assert!(locks.set(1, lock(1, 0, 4, Mode::Exclusive)));
        assert!(locks.set(1, lock(1, 5, 9, Mode::Exclusive)));
        assert!(locks.set(1, lock(1, 20, u64::MAX, Mode::Shared)));
        assert_eq!(locks.count(), 2);
        let found = locks.in_the_way(1, &lock(2, 9, 30, Mode::Exclusive));
        assert_eq!(found[0].span, Span::of(0..10).expect("not empty"));
        assert_eq!(found[1].span, Span::of(20..).expect("not empty"));
        assert!(locks.set(2, lock(1, 0, 9, Mode::Exclusive)), "another file");
    }
}
