//! How a thread reads a record: by an alias, or by a copy of its extents.

use super::lock::{Alone, Timed, took};
use super::stored::{Stored, is_record};
use spanlock_records::trial::run::Outcome;
use spanlock_structures::blob::raw::Ranges;
use spanlock_structures::blob::{AliasArea, AliasCache, AliasGuard, Error, Extent};
use spanlock_workbench::blob::{Payload, RECORD_BYTES, RESOURCE, Read, Reader, Trial, Tried, run};
use spanlock_workbench::crew::Meter;
use std::time::{Duration, Instant};

/// What is in a record's first word.
const WORD: usize = 8;

/// The memory of a thread, to which it copies what it reads.
struct Buffer(Box<[u8]>);

impl Buffer {
    fn new(payload: Payload) -> Self {
        let bytes = match payload {
            Payload::Whole => RECORD_BYTES,
            Payload::Word => WORD,
        };
        Self(vec![0; bytes].into())
    }

    /// Whether it holds a record, and how long it took to see.
    fn check(&self, record: usize) -> (bool, Duration) {
        let begun = Instant::now();
        let is_right = is_record(&self.0, record);
        (is_right, begun.elapsed())
    }
}

/// Reads an alias that `map` makes: times its steps, then checks what was copied.
fn read_alias<'a, R: Ranges + 'a>(
    buffer: &mut Buffer,
    record: usize,
    map: impl FnOnce() -> Result<AliasGuard<'a, R>, Error>,
) -> Result<Read, Error> {
    let begun = Instant::now();
    let alias = map()?;
    let made = Instant::now();
    buffer.0.copy_from_slice(&alias[..buffer.0.len()]);
    let copied = Instant::now();
    drop(alias);
    let aliased = copied.elapsed() + (made - begun);
    let lock = took();
    let (is_right, check) = buffer.check(record);
    Ok(Read {
        is_right,
        took: [lock, aliased.saturating_sub(lock), copied - made, check],
    })
}

/// By aliases in an area that all threads share.
struct Shared<'a, R: Ranges> {
    records: &'a [Vec<Extent>],
    cache: AliasCache<'a, R>,
    buffer: Buffer,
}

impl<R: Ranges> Reader for Shared<'_, R> {
    fn read(&mut self, record: usize) -> Result<Read, Error> {
        let (extents, cache) = (&self.records[record], &mut self.cache);
        read_alias(&mut self.buffer, record, || cache.map(extents))
    }
}

/// Runs a trial on an area whose ranges a lock gives out.
pub(super) fn shared(
    lock: Tried,
    trial: &Trial,
    stored: &Stored,
    meter: &mut dyn Meter,
) -> Result<Outcome, Error> {
    let bytes = usize::try_from(RESOURCE.units).unwrap_or(usize::MAX);
    let area = AliasArea::with_lock(&stored.pool, bytes, Timed(lock))?;
    run(trial, meter, || Shared {
        records: &stored.records,
        cache: AliasCache::new(&area, trial.load.cache),
        buffer: Buffer::new(trial.load.payload),
    })
}

/// By aliases in an area of the thread's own; none, if there are no addresses for it.
struct Own<'a> {
    records: &'a [Vec<Extent>],
    area: Result<AliasArea<Timed<Alone>>, Error>,
    buffer: Buffer,
}

impl Reader for Own<'_> {
    fn read(&mut self, record: usize) -> Result<Read, Error> {
        let area = self.area.as_ref().map_err(|error| *error)?;
        let extents = &self.records[record];
        read_alias(&mut self.buffer, record, || area.map(extents))
    }
}

/// Runs a trial in which each thread has an area.
pub(super) fn own(trial: &Trial, stored: &Stored, meter: &mut dyn Meter) -> Result<Outcome, Error> {
    run(trial, meter, || Own {
        records: &stored.records,
        area: AliasArea::with_lock(&stored.pool, RECORD_BYTES, Timed(Alone::default())),
        buffer: Buffer::new(trial.load.payload),
    })
}

/// Extent by extent.
struct Copied<'a> {
    records: &'a [Vec<Extent>],
    buffer: Buffer,
}

impl Reader for Copied<'_> {
    fn read(&mut self, record: usize) -> Result<Read, Error> {
        let begun = Instant::now();
        let mut rest = &mut self.buffer.0[..];
        for extent in &self.records[record] {
            let bytes = extent.len().min(rest.len());
            let (here, behind) = rest.split_at_mut(bytes);
            here.copy_from_slice(&extent[..bytes]);
            rest = behind;
        }
        let copy = begun.elapsed();
        let (is_right, check) = self.buffer.check(record);
        Ok(Read {
            is_right,
            took: [Duration::ZERO, Duration::ZERO, copy, check],
        })
    }
}

/// Runs a trial without aliases.
pub(super) fn copied(
    trial: &Trial,
    stored: &Stored,
    meter: &mut dyn Meter,
) -> Result<Outcome, Error> {
    run(trial, meter, || Copied {
        records: &stored.records,
        buffer: Buffer::new(trial.load.payload),
    })
}
