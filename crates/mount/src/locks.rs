//! Who holds which `fcntl` locks. Whether a lock can be granted is decided by a range lock for each file.
//!
//! POSIX locks belong to an owner, a process as a rule. A new lock replaces what its owner has of the range, in parts
//! if need be. A range lock has no such request. So the owner's ranges are released, the new one is tried, and what
//! remains of the old ones is acquired again. One thread does all this, and so nobody gets in between.

use spanlock::range::Span;
use spanlock::range::list::ListRw;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};
use std::collections::HashMap;
use std::marker::PhantomData;

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

impl Locks {
    /// Sets a lock, in place of what its owner has of the range. If others are in the way, changes nothing and says
    /// false.
    pub(crate) fn set(&mut self, file: u64, lock: Lock) -> bool {
        let locks = self.files.entry(file).or_default();
        let granted = locks.set(lock);
        self.drop_if_empty(file);
        granted
    }

    /// Removes what an owner has of a range. Whether there was anything.
    pub(crate) fn clear(&mut self, file: u64, owner: u64, span: Span) -> bool {
        let cleared = self
            .files
            .get_mut(&file)
            .is_some_and(|locks| locks.clear(owner, span));
        self.drop_if_empty(file);
        cleared
    }

    /// Removes all locks of a file that were set through a handle. Whether there were any.
    pub(crate) fn clear_handle(&mut self, file: u64, handle: u64) -> bool {
        let cleared = self.files.get_mut(&file).is_some_and(|locks| {
            let of_handle = |held: &Held| held.lock.holder.handle == handle;
            !locks.take(of_handle).is_empty()
        });
        self.drop_if_empty(file);
        cleared
    }

    /// The locks that are in the way of another one, in their order in the file.
    pub(crate) fn in_the_way(&self, file: u64, lock: &Lock) -> Vec<Lock> {
        let held = self.files.get(&file).map_or(&[][..], |locks| &locks.held);
        let conflicting = held.iter().map(|held| held.lock);
        let mut found: Vec<_> = conflicting.filter(|held| held.conflicts(lock)).collect();
        found.sort_by_key(|lock| lock.span.start());
        found
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.files.values().map(|locks| locks.held.len()).sum()
    }

    fn drop_if_empty(&mut self, file: u64) {
        if self
            .files
            .get(&file)
            .is_some_and(|locks| locks.held.is_empty())
        {
            self.files.remove(&file);
        }
    }
}

/// The locks of one file. It stays on its thread, because range locks count what each thread holds.
struct FileLocks {
    lock: ListRw,
    held: Vec<Held>,
    not_send: PhantomData<*const ()>,
}

/// A lock, and the range lock's proof of it.
struct Held {
    lock: Lock,
    token: <ListRw as RawRangeMutex>::Token,
}

impl Default for FileLocks {
    fn default() -> Self {
        Self {
            lock: ListRw::new(),
            held: Vec::new(),
            not_send: PhantomData,
        }
    }
}

impl FileLocks {
    fn set(&mut self, lock: Lock) -> bool {
        let owner = lock.holder.owner;
        let replaced = self.take(|held| {
            let joins = held.lock.mode == lock.mode && held.lock.span.joined(lock.span).is_some();
            held.lock.holder.owner == owner && (joins || held.lock.span.overlaps(lock.span))
        });
        let same = replaced.iter().filter(|old| old.mode == lock.mode);
        let span = same.fold(lock.span, |span, old| span.joined(old.span).unwrap_or(span));
        let granted = self.acquire(Lock { span, ..lock });
        for old in replaced {
            match granted {
                true if old.mode == lock.mode => {}
                true => self.keep_around(old, lock.span),
                false => self.keep(old),
            }
        }
        granted
    }

    fn clear(&mut self, owner: u64, span: Span) -> bool {
        let cleared =
            self.take(|held| held.lock.holder.owner == owner && held.lock.span.overlaps(span));
        for &old in &cleared {
            self.keep_around(old, span);
        }
        !cleared.is_empty()
    }

    /// Acquires what a lock covers besides a span.
    fn keep_around(&mut self, old: Lock, without: Span) {
        let before = (old.span.start() < without.start())
            .then(|| Span::of(old.span.start()..without.start()))
            .flatten();
        let behind = (without.last() < old.span.last())
            .then(|| Span::of(without.last() + 1..=old.span.last()))
            .flatten();
        for span in [before, behind].into_iter().flatten() {
            self.keep(Lock { span, ..old });
        }
    }

    /// Acquires a part of what was held just before.
    fn keep(&mut self, lock: Lock) {
        assert!(
            self.acquire(lock),
            "nobody else acquires while this thread rearranges"
        );
    }

    fn acquire(&mut self, lock: Lock) -> bool {
        let ask = Ask::new(lock.span, Wait::Never);
        let token = match lock.mode {
            Mode::Shared => self.lock.lock_shared(ask),
            Mode::Exclusive => self.lock.lock_exclusive(ask),
        };
        match token {
            Some(token) => {
                self.held.push(Held { lock, token });
                true
            }
            None => false,
        }
    }

    /// Releases those locks, and returns them.
    fn take(&mut self, which: impl Fn(&Held) -> bool) -> Vec<Lock> {
        let taken = self.held.extract_if(.., |held| which(held));
        let release = |held: Held| {
            // SAFETY: the token came from this lock, on this thread, which `FileLocks` does not leave.
            unsafe { self.lock.unlock(held.token) };
            held.lock
        };
        taken.map(release).collect()
    }
}

impl Drop for FileLocks {
    fn drop(&mut self) {
        self.take(|_| true);
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
        for held in locks.files.values().flat_map(|file| &file.held) {
            for at in held.lock.span.start()..=held.lock.span.last() {
                let owner = held.lock.holder.owner;
                assert!(model.insert((owner, at), held.lock.mode).is_none());
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
