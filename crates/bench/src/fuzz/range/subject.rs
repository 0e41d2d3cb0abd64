//! The range locks of the common table, each in one shape.

use super::run;
use crate::fuzz::Lock;
use spanlock_records::trial::lock::{Described, Overtaking, Role};
use spanlock_records::trial::setting::{Resource, Setting, Values};
use spanlock_sim::range::keys::KeyRangeLock;
use spanlock_sim::range::list::FastPath;
use spanlock_sim::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock_sim::range::{RangeLock, RangeMutex, Span};
use spanlock_workbench_sim::locks::{self, Maker};
use std::ops::{Deref, RangeInclusive};
use std::time::Duration;

/// A range lock, with readers or without.
pub(super) trait Subject: Send + Sync + 'static {
    type Raw: RawRangeMutex;
    /// Whether readers share.
    const SHARES: bool;

    /// The raw lock.
    fn raw_lock(&self) -> &Self::Raw;

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<Token<Self>>;

    /// # Safety
    /// As for the lock's own.
    unsafe fn downgrade(&self, token: Token<Self>) -> Token<Self>;

    /// Calls `f` while several spans are held; not, if that takes longer than it may.
    fn hold_many<R>(&self, wanted: Many<'_>, f: impl FnOnce() -> R) -> Option<R>;
}

pub(super) type Token<S> = <<S as Subject>::Raw as RawRangeMutex>::Token;

/// Several spans to be held at a time, and how long that may take.
#[derive(Clone, Copy)]
pub(super) struct Many<'a> {
    pub(super) spans: &'a [Span],
    pub(super) mode: Mode,
    pub(super) timeout: Option<Duration>,
}

impl<'a> Many<'a> {
    fn ranges(self) -> impl Iterator<Item = RangeInclusive<u64>> + 'a {
        self.spans.iter().map(|span| span.start()..=span.last())
    }
}

macro_rules! over {
    ($Raw:ty, shares: $shares:literal) => {
        type Raw = $Raw;
        const SHARES: bool = $shares;

        fn raw_lock(&self) -> &$Raw {
            self.raw()
        }
    };
}

impl<L: RawRangeLock + Send + Sync + 'static> Subject for RangeLock<L> {
    over!(L, shares: true);

    fn lock(&self, mode: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        match mode {
            Mode::Shared => self.raw().lock_shared(Ask::new(span, wait)),
            Mode::Exclusive => self.raw().lock_exclusive(Ask::new(span, wait)),
        }
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        // SAFETY: the caller's promise.
        unsafe { self.raw().downgrade(token) }
    }

    fn hold_many<R>(&self, wanted: Many<'_>, f: impl FnOnce() -> R) -> Option<R> {
        let ranges = wanted.ranges();
        Some(match (wanted.mode, wanted.timeout) {
            (Mode::Shared, None) => held(self.read_many(ranges), f),
            (Mode::Shared, Some(timeout)) => held(self.try_read_many_for(ranges, timeout)?, f),
            (Mode::Exclusive, None) => held(self.write_many(ranges), f),
            (Mode::Exclusive, Some(timeout)) => held(self.try_write_many_for(ranges, timeout)?, f),
        })
    }
}

impl<L: RawRangeMutex + Send + Sync + 'static> Subject for RangeMutex<L> {
    over!(L, shares: false);

    fn lock(&self, _: Mode, span: Span, wait: Wait) -> Option<L::Token> {
        self.raw().lock_exclusive(Ask::new(span, wait))
    }

    unsafe fn downgrade(&self, token: L::Token) -> L::Token {
        token
    }

    fn hold_many<R>(&self, wanted: Many<'_>, f: impl FnOnce() -> R) -> Option<R> {
        let ranges = wanted.ranges();
        Some(match wanted.timeout {
            None => held(self.lock_many(ranges), f),
            Some(timeout) => held(self.try_lock_many_for(ranges, timeout)?, f),
        })
    }
}

/// Calls `f`, then drops the guards; or the other way round, if it panics.
fn held<G, R>(guards: G, f: impl FnOnce() -> R) -> R {
    let _guards = guards;
    f()
}

/// A lock on lines of its own.
#[repr(align(128))]
pub(super) struct Lines<T>(T);

impl<T> Lines<T> {
    pub(super) fn new(lock: T) -> Self {
        Self(lock)
    }
}

impl<T> Deref for Lines<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// All rows, in the order of the table; then the locks over keys.
pub(super) fn rows() -> Vec<Lock> {
    let mut rows = Rows(Vec::new());
    locks::all(&mut rows);
    rows.add_keys("keys", KeyRangeLock::new);
    // Every range enters the index, though cases hold few.
    rows.add_keys("keys-slow-path", || {
        let builder = KeyRangeLock::builder().fast_path(FastPath::Off);
        builder.levels(4, 0).build()
    });
    rows.0
}

struct Rows(Vec<Lock>);

/// The resource that a lock is made for. Cases use its first few positions.
const SETTING: Setting = Setting {
    resource: Resource::ARRAY,
    values: Values::NONE,
};

impl Rows {
    fn add<S: Subject>(
        &mut self,
        described: Described,
        make: impl Fn() -> S + Copy + Send + Sync + 'static,
    ) {
        let Described {
            name,
            role,
            overtaking,
            ..
        } = described;
        let lock = Lock::new(name, role, move |case| run(make, overtaking, case));
        self.0.push(lock);
    }

    /// Over keys that are numbers.
    fn add_keys(&mut self, name: &'static str, make: fn() -> KeyRangeLock<u64>) {
        let described = Described {
            name,
            role: Role::Configuration,
            overtaking: Overtaking::Bounded,
            ..Described::default()
        };
        self.add(described, move || RangeLock::from_raw(make()));
    }
}

impl locks::Table for Rows {
    fn shared<L: locks::Shared>(&mut self, described: Described, make: Maker<L>) {
        self.add(described, move || RangeLock::from_raw(make(&SETTING)));
    }

    fn exclusive<L: locks::Exclusive>(&mut self, described: Described, make: Maker<L>) {
        self.add(described, move || RangeMutex::from_raw(make(&SETTING)));
    }
}
