//! The records: made once, and read by all runs.

use spanlock_structures::blob::{Draft, Error, Extent, Pool};
use spanlock_workbench::blob::{EXTENTS, PAGE_BYTES, RECORD_BYTES};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a word.
const WORD: usize = 8;

/// Records in a pool, each in nine extents.
pub(super) struct Stored {
    pub(super) pool: Pool,
    pub(super) records: Vec<Vec<Extent>>,
}

impl Stored {
    /// So many records: those of the last run, if they were as many.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(super) fn of(count: usize) -> Result<Arc<Self>, Error> {
        static LAST: Mutex<Option<Arc<Stored>>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(stored) if stored.records.len() == count => Ok(Arc::clone(stored)),
            _ => {
                // First the memory of others is given back.
                *last = None;
                let stored = Arc::new(Self::new(count)?);
                *last = Some(Arc::clone(&stored));
                Ok(stored)
            }
        }
    }

    fn new(count: usize) -> Result<Self, Error> {
        let pool = Pool::new(count * RECORD_BYTES)?;
        // All records' extents of one size lie together, so that those of one record do not.
        let mut drafts: Vec<Vec<Draft>> = (0..count).map(|_| Vec::new()).collect();
        for pages in EXTENTS {
            for draft in &mut drafts {
                draft.push(pool.allocate(pages * PAGE_BYTES)?);
            }
        }
        let write = |(record, mut drafts): (usize, Vec<Draft>)| {
            let mut words = (0..).map(|at| word(record, at));
            for draft in &mut drafts {
                for (bytes, word) in draft.chunks_exact_mut(WORD).zip(&mut words) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
            }
            drafts.into_iter().map(Draft::seal).collect()
        };
        let records = drafts.into_iter().enumerate().map(write).collect();
        Ok(Self { pool, records })
    }
}

/// A word of a record: no other word of any record is the same.
fn word(record: usize, at: u64) -> u64 {
    ((record as u64 + 1) << 32) + at
}

/// Whether these are the first bytes of a record.
pub(super) fn is_record(bytes: &[u8], record: usize) -> bool {
    let (words, rest) = bytes.as_chunks::<WORD>();
    // No early end: the loop is the same work for every record.
    let differing = (0..).zip(words).fold(0, |differing, (at, bytes)| {
        differing | (u64::from_le_bytes(*bytes) ^ word(record, at))
    });
    differing == 0 && rest.is_empty()
}
