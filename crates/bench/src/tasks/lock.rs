//! The locks that tasks and threads may wait for.

use super::{Load, Plan, measure};
use spanlock::range::RangeLock;
use spanlock::range::list::ListRw;
use spanlock::range::raw::RawOwned;
use spanlock::rw::lock_api::RwLock;
use spanlock::rw::{AwaitRwLock, Bravo, ForTasks, FutexRwLock};
use spanlock_records::record::Tasks;
use spanlock_records::trial::setting::named;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A lock of ranges, or one that takes everything for a range.
pub(super) trait Lock: Default + Send + Sync + 'static {
    fn read(&self, range: Range<u64>) -> impl Sized;

    fn write(&self, range: Range<u64>) -> impl Sized;

    fn read_async(&self, range: Range<u64>) -> impl Future<Output: Send> + Send;

    fn write_async(&self, range: Range<u64>) -> impl Future<Output: Send> + Send;
}

impl<L: RawOwned + Default + Send + Sync + 'static> Lock for RangeLock<L> {
    fn read(&self, range: Range<u64>) -> impl Sized {
        self.read(range)
    }

    fn write(&self, range: Range<u64>) -> impl Sized {
        self.write(range)
    }

    fn read_async(&self, range: Range<u64>) -> impl Future<Output: Send> + Send {
        self.read_async(range)
    }

    fn write_async(&self, range: Range<u64>) -> impl Future<Output: Send> + Send {
        self.write_async(range)
    }
}

/// The library's reader-writer lock, for tasks.
type Whole = RwLock<ForTasks<Bravo<FutexRwLock>>, ()>;

impl Lock for Whole {
    fn read(&self, _: Range<u64>) -> impl Sized {
        self.read()
    }

    fn write(&self, _: Range<u64>) -> impl Sized {
        self.write()
    }

    fn read_async(&self, _: Range<u64>) -> impl Future<Output: Send> + Send {
        AwaitRwLock::read_async(self)
    }

    fn write_async(&self, _: Range<u64>) -> impl Future<Output: Send> + Send {
        AwaitRwLock::write_async(self)
    }
}

impl Lock for tokio::sync::RwLock<()> {
    fn read(&self, _: Range<u64>) -> impl Sized {
        self.blocking_read()
    }

    fn write(&self, _: Range<u64>) -> impl Sized {
        self.blocking_write()
    }

    fn read_async(&self, _: Range<u64>) -> impl Future<Output: Send> + Send {
        self.read()
    }

    fn write_async(&self, _: Range<u64>) -> impl Future<Output: Send> + Send {
        self.write()
    }
}

/// Releases what was acquired of a lock of `saa`, which has no guards.
struct Release<'a>(&'a saa::Lock, fn(&saa::Lock) -> bool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let Self(lock, release) = self;
        release(lock);
    }
}

impl Lock for saa::Lock {
    fn read(&self, _: Range<u64>) -> impl Sized {
        self.share_sync();
        Release(self, Self::release_share)
    }

    fn write(&self, _: Range<u64>) -> impl Sized {
        self.lock_sync();
        Release(self, Self::release_lock)
    }

    fn read_async(&self, _: Range<u64>) -> impl Future<Output: Send> + Send {
        async {
            self.share_async().await;
            Release(self, Self::release_share)
        }
    }

    fn write_async(&self, _: Range<u64>) -> impl Future<Output: Send> + Send {
        async {
            self.lock_async().await;
            Release(self, Self::release_lock)
        }
    }
}

/// A lock to be measured.
#[derive(Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    run: fn(&'static str, Load, Plan, u32) -> Tasks,
}

/// All of them. To add one, add a row.
pub static SUBJECTS: [Subject; 5] = [
    subject::<RangeLock>("slots"),
    subject::<RangeLock<ListRw>>("list-rw"),
    subject::<Whole>("rw-lock"),
    subject::<tokio::sync::RwLock<()>>("tokio"),
    subject::<saa::Lock>("saa"),
];

const fn subject<L: Lock>(name: &'static str) -> Subject {
    let run = measure::<L>;
    Subject { name, run }
}

impl Subject {
    /// Measures one round of a load on a fresh lock.
    #[must_use]
    pub fn measure(&self, load: Load, plan: Plan, round: u32) -> Tasks {
        (self.run)(self.name, load, plan, round)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for &'static Subject {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &SUBJECTS, ToString::to_string)
    }
}
