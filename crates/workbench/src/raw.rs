//! A raw range lock of any type: what is built on a range lock is compiled once for all of them, and calls each through
//! a pointer.

use smallbox::{SmallBox, smallbox};
use spanlock::range::Span;
use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{Ask, Behind, Mode, RawRangeLock, RawRangeMutex};
use std::any::Any;

/// A lock on lines of its own.
#[repr(align(128))]
struct Lines<L>(L);

/// A range lock of any type.
pub struct AnyRaw(Box<dyn Dynamic>);

/// A token of any type.
pub type AnyToken = SmallBox<dyn Any, Room>;

/// The room for a token: none is allocated.
type Room = [usize; 4];

impl AnyRaw {
    /// A lock, whatever its type.
    pub fn new(lock: impl RawRangeLock + Send + Sync + 'static) -> Self {
        Self(Box::new(Lines(lock)))
    }

    /// The lock, if it is of that type.
    #[must_use]
    pub fn get<L: 'static>(&self) -> Option<&L> {
        let lock: &Lines<L> = (&*self.0 as &dyn Any).downcast_ref()?;
        Some(&lock.0)
    }
}

/// The raw traits, with tokens of any type.
trait Dynamic: Any + Send + Sync {
    fn lock(&self, mode: Mode, ask: Ask<'_, AnyToken>) -> Option<AnyToken>;

    /// # Safety
    /// As for the lock's own.
    unsafe fn unlock(&self, token: AnyToken);

    /// # Safety
    /// As for the lock's own.
    unsafe fn downgrade(&self, token: AnyToken) -> AnyToken;

    fn granule(&self, span: Span) -> Span;

    fn is_taken(&self, span: Span, mode: Mode) -> bool;

    /// # Safety
    /// As for the lock's own.
    unsafe fn span_of(&self, token: &AnyToken) -> Option<Span>;

    fn snapshot(&self) -> Option<Snapshot>;
}

fn any<T: 'static>(token: T) -> AnyToken {
    const {
        assert!(
            size_of::<T>() <= size_of::<Room>() && align_of::<T>() <= align_of::<Room>(),
            "a token needs more room"
        )
    };
    smallbox!(token)
}

const FOREIGN: &str = "a lock is given its own tokens";

fn own<T: 'static>(token: AnyToken) -> T {
    let Ok(own) = token.downcast::<T>() else {
        panic!("{FOREIGN}")
    };
    own.into_inner()
}

fn own_ref<T: 'static>(token: &AnyToken) -> &T {
    token.downcast_ref::<T>().expect(FOREIGN)
}

impl<L: RawRangeLock + Send + Sync + 'static> Dynamic for Lines<L> {
    fn lock(&self, mode: Mode, ask: Ask<'_, AnyToken>) -> Option<AnyToken> {
        let asked = match ask.behind() {
            None => Ask::new(ask.span, ask.wait),
            Some(Behind { token, ranges }) => {
                let token = own_ref(token);
                // SAFETY: the caller's request says the same of this token.
                unsafe { Ask::after(Behind { token, ranges }, ask.span, ask.wait) }
            }
        };
        let token = match mode {
            Mode::Shared => self.0.lock_shared(asked),
            Mode::Exclusive => self.0.lock_exclusive(asked),
        };
        token.map(any)
    }

    unsafe fn unlock(&self, token: AnyToken) {
        // SAFETY: the caller's promise.
        unsafe { RawRangeMutex::unlock(&self.0, own(token)) };
    }

    unsafe fn downgrade(&self, token: AnyToken) -> AnyToken {
        // SAFETY: the caller's promise.
        any(unsafe { RawRangeLock::downgrade(&self.0, own(token)) })
    }

    fn granule(&self, span: Span) -> Span {
        RawRangeMutex::granule(&self.0, span)
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        RawRangeMutex::is_taken(&self.0, span, mode)
    }

    unsafe fn span_of(&self, token: &AnyToken) -> Option<Span> {
        // SAFETY: the caller's promise.
        unsafe { RawRangeMutex::span_of(&self.0, own_ref(token)) }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        RawRangeMutex::snapshot(&self.0)
    }
}

// SAFETY: every call is passed on to a lock that keeps the trait's promises.
unsafe impl RawRangeMutex for AnyRaw {
    type Token = AnyToken;

    fn lock_exclusive(&self, ask: Ask<'_, AnyToken>) -> Option<AnyToken> {
        self.0.lock(Mode::Exclusive, ask)
    }

    unsafe fn unlock(&self, token: AnyToken) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.0.granule(span)
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        self.0.is_taken(span, mode)
    }

    unsafe fn span_of(&self, token: &AnyToken) -> Option<Span> {
        // SAFETY: the caller's promise.
        unsafe { self.0.span_of(token) }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.0.snapshot()
    }
}

// SAFETY: every call is passed on to a lock that keeps the trait's promises.
unsafe impl RawRangeLock for AnyRaw {
    fn lock_shared(&self, ask: Ask<'_, AnyToken>) -> Option<AnyToken> {
        self.0.lock(Mode::Shared, ask)
    }

    unsafe fn downgrade(&self, token: AnyToken) -> AnyToken {
        // SAFETY: the caller's promise.
        unsafe { self.0.downgrade(token) }
    }
}
