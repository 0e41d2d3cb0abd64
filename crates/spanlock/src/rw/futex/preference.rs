//! Whether readers give way to waiting writers.

use std::fmt;

/// Which threads a lock prefers: a type-level choice between [`WritersFirst`] and [`ReadersFirst`].
pub trait Preference: fmt::Debug {
    /// Whether a new reader waits while a writer waits.
    const GIVE_WAY: GiveWay;
}

/// Whether a new reader waits while a writer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveWay {
    /// It does. Readers do not starve writers. A thread that reads twice may wait for a writer that waits for it.
    ToWaitingWriters,
    /// It does not. A thread may read while it reads. Readers that keep coming starve writers.
    ToHoldersOnly,
}

/// New readers wait while a writer waits. Readers that wait are let in when a writer leaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct WritersFirst;

impl Preference for WritersFirst {
    const GIVE_WAY: GiveWay = GiveWay::ToWaitingWriters;
}

/// Readers enter whenever no writer is inside.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadersFirst;

impl Preference for ReadersFirst {
    const GIVE_WAY: GiveWay = GiveWay::ToHoldersOnly;
}
