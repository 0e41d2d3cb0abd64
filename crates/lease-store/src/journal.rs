//! The fences of a file, on the medium: what was entered, in order.

use spanlock_lease::{Fence, Mode, Span};
use spanlock_structures::store::{Error, File, Result, Store};

/// Journals are here, under the names of their files.
pub(crate) const FOLDER: &str = "/fences";
/// New journals that are not complete.
const FRESH: &str = "/fences.new";

/// A record: first and last position, the fence's counter and epoch, the mode.
const RECORD: usize = 32;

/// A journal up to this length is not rewritten.
const SHORT: u64 = 1024;

/// What was entered.
pub(crate) type Entered = (Span, Mode, Fence);

/// Writes records.
#[derive(Debug)]
pub(crate) struct Journal {
    name: String,
    file: File,
    records: u64,
}

/// Makes the folders of journals, and forgets those that were not complete.
pub(crate) fn prepare(store: &Store) -> Result<()> {
    for folder in [FOLDER, FRESH] {
        match store.mkdir(folder, 0o700) {
            Ok(()) | Err(Error::Exists) => {}
            Err(error) => return Err(error),
        }
    }
    for entry in store.readdir(FRESH)? {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        store.unlink(format!("{FRESH}/{name}"))?;
    }
    Ok(())
}

impl Journal {
    /// Opens the journal of a file, or makes it: its records.
    pub(crate) fn open(store: &Store, name: &str) -> Result<(Self, Vec<Entered>)> {
        let path = format!("{FOLDER}/{name}");
        let file = match store.open_file(&path) {
            Err(Error::NotFound) => store.create(&path, 0o600)?,
            other => other?,
        };
        let size = file.stat()?.size;
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| Error::TooLarge)?];
        let read = file.read_at(&mut bytes, 0)?;
        let (records, rest) = bytes[..read].as_chunks::<RECORD>();
        let decoded: Option<Vec<_>> = records.iter().map(decoded).collect();
        let Some(entered) = decoded.filter(|_| rest.is_empty()) else {
            let why =
                format!("the fences of {name} cannot be read: {path} of the store is damaged");
            return Err(Error::Io(std::io::Error::other(why)));
        };
        let journal = Self {
            name: name.to_owned(),
            file,
            records: entered.len() as u64,
        };
        Ok((journal, entered))
    }

    /// Writes what was entered: it is on the medium when this returns.
    pub(crate) fn append(&mut self, entered: &Entered) -> Result<()> {
        self.file
            .write_at(&encoded(entered), self.records * RECORD as u64)?;
        self.file.sync()?;
        self.records += 1;
        Ok(())
    }

    /// Whether a new one would be at most half as long. An extent needs one record or two.
    pub(crate) fn is_long(&self, extents: usize) -> bool {
        self.records > SHORT.max(4 * extents as u64)
    }

    /// Begins a new journal with these records, which replaces the old one. A store that has no room for it keeps the
    /// old one.
    pub(crate) fn rewrite(&mut self, store: &Store, all: &[Entered]) -> Result<()> {
        let fresh = format!("{FRESH}/{}", self.name);
        match self.replace(store, &fresh, all) {
            Err(Error::NoSpace) => match store.unlink(&fresh) {
                Ok(()) | Err(Error::NotFound) => Ok(()),
                other => other,
            },
            other => other,
        }
    }

    fn replace(&mut self, store: &Store, fresh: &str, all: &[Entered]) -> Result<()> {
        let file = store.create(fresh, 0o600)?;
        let bytes: Vec<u8> = all.iter().flat_map(encoded).collect();
        file.write_at(&bytes, 0)?;
        file.sync()?;
        store.rename(fresh, format!("{FOLDER}/{}", self.name))?;
        (self.file, self.records) = (file, all.len() as u64);
        store.sync()
    }
}

fn encoded((span, mode, fence): &Entered) -> [u8; RECORD] {
    let mode = match mode {
        Mode::Shared => 0_u32,
        Mode::Exclusive => 1,
    };
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&span.start().to_le_bytes());
    record[8..16].copy_from_slice(&span.last().to_le_bytes());
    record[16..24].copy_from_slice(&fence.counter.to_le_bytes());
    record[24..28].copy_from_slice(&fence.epoch.to_le_bytes());
    record[28..].copy_from_slice(&mode.to_le_bytes());
    record
}

fn decoded(record: &[u8; RECORD]) -> Option<Entered> {
    let long = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let short = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let mode = match short(28) {
        0 => Mode::Shared,
        1 => Mode::Exclusive,
        _ => return None,
    };
    let fence = Fence {
        epoch: short(24),
        counter: long(16),
    };
    Some((Span::inclusive(long(0), long(8))?, mode, fence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanlock_structures::store::{Geometry, Mapped, Options, PAGE, make};

    /// Records in the same place, as of leases that follow each other.
    fn entered(counter: u64) -> Entered {
        let fence = Fence { epoch: 1, counter };
        let span = Span::inclusive(0, 9).expect("it is not empty");
        (span, Mode::Exclusive, fence)
    }

    #[test]
    fn a_full_store_keeps_the_old_journal() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let medium = Mapped::create(&path, 1 << 20).expect("room");
        make(&medium, &Geometry::default()).expect("it fits");
        let (store, _) = Store::open(medium, Options::default()).expect("a store");
        prepare(&store).expect("room");
        let (mut journal, _) = Journal::open(&store, "a").expect("room");
        journal.append(&entered(1)).expect("room");
        let data = store.create("/data", 0o600).expect("room");
        let mut pages = (0..).map(|page| data.write_at(&[7; PAGE], page * PAGE as u64));
        let full = pages.find_map(std::result::Result::err);
        assert!(matches!(full, Some(Error::NoSpace)), "{full:?}");
        let all = [entered(2)];
        // Twice, since the first might leave something in the way of the second.
        journal.rewrite(&store, &all).expect("the old one is there");
        journal.rewrite(&store, &all).expect("the old one is there");
        let (_, found) = Journal::open(&store, "a").expect("it is whole");
        assert_eq!(found, [entered(1)]);
        data.truncate(0).expect("the reserve");
        journal.rewrite(&store, &all).expect("room");
        journal.append(&entered(3)).expect("room");
        let (_, found) = Journal::open(&store, "a").expect("it is whole");
        assert_eq!(found, [entered(2), entered(3)]);
    }
}
