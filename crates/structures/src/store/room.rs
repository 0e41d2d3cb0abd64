//! Room in a full store: pages that logs can spare.
//!
//! A log is rewritten when it has become long, and until then it may have a thousandth of the store more than it needs,
//! and a page or two for each group of threads. So the logs of a thousand small files can fill a store. Then a write
//! that finds no room has the logs rewritten that can spare most, and tries again, until it has room or no logs can
//! spare any.

use crate::store::error::{Error, Result};
use crate::store::file::File;
use crate::store::logs::Compacted;
use crate::store::medium::Medium;
use crate::store::open::Shared;
use crate::store::tree::Ino;
use spanlock::range::raw::RawRangeLock;
use std::collections::HashSet;
use std::sync::Arc;

/// Does something that changes nothing where it finds no room. The caller holds no range of any file.
pub(crate) fn with_room<T, M: Medium, L: RawRangeLock>(
    shared: &Arc<Shared<M, L>>,
    what: impl Fn() -> Result<T>,
) -> Result<T> {
    match what() {
        Err(Error::NoSpace) => {}
        done => return done,
    }
    // Who had it before may have made room, and left nothing to spare. So the first step is to try again.
    let _one_at_a_time = shared.making_room.lock();
    loop {
        match what() {
            Err(Error::NoSpace) if make(shared)? => {}
            done => return done,
        }
    }
}

/// Rewrites the logs that can spare most pages, except those that are being rewritten. Whether there were any, and room
/// for it.
#[cold]
fn make<M: Medium, L: RawRangeLock>(shared: &Arc<Shared<M, L>>) -> Result<bool> {
    let mut busy = HashSet::new();
    while let Some(file) = longest(shared, &busy) {
        match file.inode.compact(&shared.core) {
            Ok(Compacted::Shorter) => return Ok(true),
            Ok(Compacted::No) => busy.insert(file.ino()),
            Err(Error::NoSpace) => return Ok(false),
            Err(error) => return Err(error),
        };
    }
    Ok(false)
}

/// The file whose logs can spare most pages, but for those files, open, so that it stays.
fn longest<M: Medium, L: RawRangeLock>(
    shared: &Arc<Shared<M, L>>,
    except: &HashSet<Ino>,
) -> Option<File<M, L>> {
    let mut files = shared.files.lock();
    let file = files
        .iter_mut()
        .filter(|(ino, _)| !except.contains(*ino))
        .map(|(_, file)| (file.inode.spare(), file))
        .filter(|(spare, _)| *spare > 0)
        .max_by_key(|(spare, _)| *spare);
    file.map(|(_, file)| {
        file.handles += 1;
        File {
            shared: Arc::clone(shared),
            inode: Arc::clone(&file.inode),
        }
    })
}
