//! The nodes that the kernel knows. It knows a node from the first time that it is told its number until it forgets it,
//! and may ask about it after its last name is gone.

use crate::convert::{errno, id_of};
use crate::departures::{Departures, Nameless};
use fuser::Errno;
use spanlock::rw::RwLock;
use spanlock_structures::store::{Attributes, File, Ino, Kind, Stat, Store};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A node that the kernel knows.
pub(crate) struct Known {
    /// The store's number of it.
    ino: Ino,
    /// How often the kernel was told.
    told: AtomicU64,
    /// Keeps a file as long as the kernel may use it.
    file: Option<File>,
    /// What was known of it when its last name went. Dropped after the file, whose space is then free.
    gone: Mutex<Option<Gone>>,
}

/// A node without a name. Its attributes are here only.
struct Gone {
    stat: Stat,
    _nameless: Nameless,
}

impl Known {
    /// # Errors
    /// When it is no file.
    pub(crate) fn file(&self) -> Result<&File, Errno> {
        self.file.as_ref().ok_or(Errno::EISDIR)
    }

    /// The store's number of it, while it has a name.
    ///
    /// # Errors
    /// When it has none, and the store may have used the number again.
    pub(crate) fn live(&self) -> Result<Ino, Errno> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        match &*gone {
            None => Ok(self.ino),
            Some(_) => Err(Errno::ENOENT),
        }
    }

    /// What is known of it.
    pub(crate) fn stat(&self, store: &Store) -> Result<Stat, Errno> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Gone { stat: last, .. }) = &*gone else {
            return store.stat_of(self.ino).map_err(|error| errno(&error));
        };
        let mut stat = last.clone();
        if let Some(file) = &self.file {
            let now = file.stat().map_err(|error| errno(&error))?;
            (stat.size, stat.pages) = (now.size, now.pages);
            if now.attributes.modified > stat.attributes.changed {
                stat.attributes.modified = now.attributes.modified;
                stat.attributes.changed = now.attributes.modified;
            }
        }
        Ok(stat)
    }

    /// Sets attributes.
    pub(crate) fn set(
        &self,
        store: &Store,
        now: i64,
        set: impl FnOnce(&mut Attributes),
    ) -> Result<(), Errno> {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *gone {
            Some(Gone { stat, .. }) => {
                stat.attributes.changed = now;
                set(&mut stat.attributes);
                Ok(())
            }
            None => {
                let result = store.set_attributes(self.ino, set);
                result.map_err(|error| errno(&error))
            }
        }
    }
}

/// All nodes that the kernel knows, by the numbers that it knows them by.
pub(crate) struct Nodes {
    known: RwLock<HashMap<u64, Arc<Known>>>,
    /// Those without a name.
    pub(crate) departures: Arc<Departures>,
}

impl Nodes {
    /// None, for a server of so many threads.
    pub(crate) fn new(threads: NonZeroUsize) -> Self {
        Self {
            known: RwLock::default(),
            departures: Departures::new(threads),
        }
    }

    /// # Errors
    /// When the kernel does not know it.
    pub(crate) fn get(&self, id: u64) -> Result<Arc<Known>, Errno> {
        let known = self.known.read().get(&id).map(Arc::clone);
        known.ok_or(Errno::ESTALE)
    }

    /// Notes that the kernel is told of a node.
    pub(crate) fn tell(&self, store: &Store, stat: &Stat) -> Result<(), Errno> {
        let id = id_of(stat);
        if let Some(known) = self.known.read().get(&id) {
            // Below the write lock of `forget`, which alone removes it.
            known.told.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let file = match stat.kind {
            Kind::File => Some(store.open_node(stat.ino).map_err(|error| errno(&error))?),
            _ => None,
        };
        let mut known = self.known.write();
        let node = known.entry(id).or_insert_with(|| {
            Arc::new(Known {
                ino: stat.ino,
                told: AtomicU64::new(0),
                file,
                gone: Mutex::new(None),
            })
        });
        node.told.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The kernel forgets a node so many times.
    pub(crate) fn forget(&self, id: u64, times: u64) {
        let mut known = self.known.write();
        let Some(node) = known.get(&id) else {
            return;
        };
        let told = node.told.fetch_sub(times, Ordering::Relaxed);
        let removed = (told <= times).then(|| known.remove(&id));
        drop(known);
        // A file without a name is freed here.
        drop(removed);
    }

    /// A name of this node is being removed. If it is the last, its attributes stay here.
    pub(crate) fn unnamed(&self, stat: &Stat, now: i64) {
        let last = stat.kind == Kind::Directory || stat.links <= 1;
        if let (true, Ok(node)) = (last, self.get(id_of(stat))) {
            let mut stat = stat.clone();
            stat.links = 0;
            stat.attributes.changed = now;
            let gone = Gone {
                stat,
                _nameless: self.departures.nameless(),
            };
            *node.gone.lock().unwrap_or_else(PoisonError::into_inner) = Some(gone);
        }
    }

    /// A program has closed a node.
    pub(crate) fn closed(&self, id: u64) {
        if let Ok(node) = self.get(id)
            && node.live().is_err()
        {
            self.departures.closed();
        }
    }

    /// The kernel is gone.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.known.write());
        drop(all);
    }
}
