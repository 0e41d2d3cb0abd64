//! A file that is served.
//!
//! ```text
//!   enter, or a request with a fence that is new here      any request
//!     lock the span alone                                    lock the span: alone to write, shared to read
//!     check the fence                                        check the fence
//!     journal it, flush           (journal-first)            read or write
//!     raise the marks                                      unlock
//!   unlock
//! ```
//!
//! - **journal-first**: a fence is on the medium before anybody is told that it was entered, and before anything is
//!   written under it. So a request that was refused once is refused after a crash, too.
//! - **checked-inside**: the fence is checked while the span is locked. So what was admitted is over before a later
//!   fence enters.

use crate::journal::{Entered, Journal};
use crate::marks::Marks;
use spanlock::range::RangeLock;
use spanlock_lease::Fence;
use spanlock_structures::store::{self, Error, File, Store};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files are here.
pub(crate) const FOLDER: &str = "/files";

#[derive(Debug)]
pub(crate) struct Served {
    data: File,
    journal: Mutex<Journal>,
    marks: Mutex<Marks>,
    /// What is under way.
    ranges: RangeLock,
}

/// Why nothing was done.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A later fence has entered.
    Late(Fence),
    /// The store could not do it.
    Store(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Served {
    /// Opens a file, or makes it.
    pub(crate) fn open(store: &Store, name: &str) -> store::Result<Self> {
        let (journal, entered) = Journal::open(store, name)?;
        let mut marks = Marks::default();
        for (span, mode, fence) in entered {
            marks.raise(span, mode, fence);
        }
        let path = format!("{FOLDER}/{name}");
        let data = match store.open_file(&path) {
            Err(Error::NotFound) => store.create(&path, 0o600)?,
            other => other?,
        };
        Ok(Self {
            data,
            journal: Mutex::new(journal),
            marks: Mutex::new(marks),
            ranges: RangeLock::new(),
        })
    }

    /// Lets a fence enter a span.
    pub(crate) fn enter(&self, store: &Store, entered: &Entered) -> Result<(), Refused> {
        let &(span, mode, fence) = entered;
        let _alone = self.ranges.write(span.start()..=span.last());
        // (checked-inside)
        lock(&self.marks)
            .admit(span, mode, fence)
            .map_err(Refused::Late)?;
        if lock(&self.marks).have(span, mode, fence) {
            return Ok(());
        }
        let mut journal = lock(&self.journal);
        // (journal-first)
        journal.append(entered)?;
        let mut marks = lock(&self.marks);
        marks.raise(span, mode, fence);
        if journal.is_long(marks.extents()) {
            // Others raise theirs while they have the journal, so none is left out.
            let all: Vec<_> = marks.list().collect();
            drop(marks);
            journal.rewrite(store, &all)?;
        }
        Ok(())
    }

    /// Writes under a fence that has entered, or enters first.
    pub(crate) fn write(
        &self,
        store: &Store,
        entered: &Entered,
        data: &[u8],
    ) -> Result<usize, Refused> {
        let &(span, ..) = entered;
        self.admitted(store, entered, || {
            let _alone = self.ranges.write(span.start()..=span.last());
            self.check(entered)?;
            Ok(self.data.write_at(data, span.start())?)
        })
    }

    /// Reads under a fence that has entered, or enters first: how many bytes there are.
    pub(crate) fn read(
        &self,
        store: &Store,
        entered: &Entered,
        into: &mut [u8],
    ) -> Result<usize, Refused> {
        let &(span, ..) = entered;
        self.admitted(store, entered, || {
            let _shared = self.ranges.read(span.start()..=span.last());
            self.check(entered)?;
            Ok(self.data.read_at(into, span.start())?)
        })
    }

    fn admitted<T>(
        &self,
        store: &Store,
        entered: &Entered,
        act: impl FnOnce() -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let &(span, mode, fence) = entered;
        // Marks only grow, so they have it still while the request is under way.
        if !lock(&self.marks).have(span, mode, fence) {
            self.enter(store, entered)?;
        }
        act()
    }

    /// (checked-inside)
    fn check(&self, &(span, mode, fence): &Entered) -> Result<(), Refused> {
        lock(&self.marks)
            .admit(span, mode, fence)
            .map_err(Refused::Late)
    }

    /// What is written so far outlasts a failure of power.
    pub(crate) fn sync(&self) -> Result<(), Refused> {
        Ok(self.data.sync()?)
    }

    pub(crate) fn size(&self) -> Result<u64, Refused> {
        Ok(self.data.stat()?.size)
    }
}
