//! Whether readers give way to writers.

use std::fmt;

/// Whom a lock lets in first.
pub trait Preference: fmt::Debug {
    /// Whether readers who come while a writer waits wait as well.
    const GIVE_WAY: GiveWay;
}

/// Whether a reader who comes while a writer waits waits as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveWay {
    /// It does: writers are not starved. A thread that reads twice may wait for a writer that waits for it.
    ToWaitingWriters,
    /// It does not: a thread may read while it reads. Readers who keep coming starve writers.
    ToHoldersOnly,
}

/// Readers who come hold back while a writer waits; readers who wait go in when a writer leaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct WritersFirst;

impl Preference for WritersFirst {
    const GIVE_WAY: GiveWay = GiveWay::ToWaitingWriters;
}

/// Readers go in whenever no writer is inside.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadersFirst;

impl Preference for ReadersFirst {
    const GIVE_WAY: GiveWay = GiveWay::ToHoldersOnly;
}
