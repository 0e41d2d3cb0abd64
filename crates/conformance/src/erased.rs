//! Locks of all types behind one type, so that each scenario is compiled once and not for each lock.

use crate::support::{Exclusive, Shared};
use spanlock::range::Span;
use spanlock::range::inspect::Snapshot;
use spanlock::range::raw::{Ask, Behind, RawRangeLock, RawRangeMutex};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A lock of any type.
pub type AnyMutex = Erased<dyn Mutex>;
/// A lock of any type that has readers.
pub type AnyLock = Erased<dyn Lock>;

/// A lock whose type is not known any more.
pub struct Erased<D: ?Sized>(Box<D>);

impl AnyMutex {
    pub fn new(lock: impl Exclusive) -> Self {
        Self(Box::new(lock))
    }
}

impl AnyLock {
    pub fn new(lock: impl Shared) -> Self {
        Self(Box::new(lock))
    }
}

/// A token of any lock. It holds the lock's own token in place: a token that a test leaks leaks no memory.
#[repr(align(16))]
pub struct Token {
    bytes: [MaybeUninit<u8>; 96],
    /// A lock counts what each thread holds.
    of_this_thread: PhantomData<*mut ()>,
}

impl Token {
    fn of<T>(token: T) -> Self {
        const {
            assert!(size_of::<T>() <= size_of::<Self>() && align_of::<T>() <= align_of::<Self>());
        }
        let mut erased = Self {
            bytes: [MaybeUninit::uninit(); 96],
            of_this_thread: PhantomData,
        };
        // SAFETY: it has room for a `T` and is aligned as one, as was just asserted.
        unsafe { erased.bytes.as_mut_ptr().cast::<T>().write(token) };
        erased
    }

    /// # Safety
    /// It holds a `T`.
    unsafe fn get<T>(&self) -> &T {
        // SAFETY: it holds a `T`, as the caller promises.
        unsafe { &*self.bytes.as_ptr().cast() }
    }

    /// # Safety
    /// It holds a `T`.
    unsafe fn take<T>(self) -> T {
        // SAFETY: it holds a `T`, as the caller promises, and nobody takes it twice.
        unsafe { self.bytes.as_ptr().cast::<T>().read() }
    }
}

/// # Safety
/// The token of the request's `behind`, if there is one, holds a `T`.
unsafe fn ask_of<'a, T>(ask: Ask<'a, Token>) -> Ask<'a, T> {
    let Ask { span, wait, .. } = ask;
    match ask.behind() {
        None => Ask::new(span, wait),
        Some(Behind { token, ranges }) => {
            // SAFETY: the caller promises what the token holds.
            let token = unsafe { token.get() };
            // SAFETY: as for the request that was made.
            unsafe { Ask::after(Behind { token, ranges }, span, wait) }
        }
    }
}

/// What [`RawRangeMutex`] is, for locks whose type is not known any more.
///
/// # Safety
/// As for [`RawRangeMutex`]: tokens are the lock's own.
pub unsafe trait Mutex: Send + Sync {
    #[track_caller]
    fn lock_exclusive(&self, ask: Ask<'_, Token>) -> Option<Token>;

    /// # Safety
    /// As for [`RawRangeMutex::unlock`].
    unsafe fn unlock(&self, token: Token);

    fn granule(&self, span: Span) -> Span;

    fn snapshot(&self) -> Option<Snapshot>;
}

// SAFETY: it hands everything on to a lock that keeps the promise.
unsafe impl<L: Exclusive> Mutex for L {
    fn lock_exclusive(&self, ask: Ask<'_, Token>) -> Option<Token> {
        // SAFETY: this lock granted what lies behind.
        RawRangeMutex::lock_exclusive(self, unsafe { ask_of(ask) }).map(Token::of)
    }

    unsafe fn unlock(&self, token: Token) {
        // SAFETY: this lock granted it, so it holds this lock's kind.
        let token = unsafe { token.take() };
        // SAFETY: this lock granted it on this thread, as the caller promises.
        unsafe { RawRangeMutex::unlock(self, token) };
    }

    fn granule(&self, span: Span) -> Span {
        RawRangeMutex::granule(self, span)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        RawRangeMutex::snapshot(self)
    }
}

/// What [`RawRangeLock`] is, for locks whose type is not known any more.
///
/// # Safety
/// As for [`RawRangeLock`]: tokens are the lock's own.
pub unsafe trait Lock: Mutex {
    #[track_caller]
    fn lock_shared(&self, ask: Ask<'_, Token>) -> Option<Token>;

    /// # Safety
    /// As for [`RawRangeLock::downgrade`].
    unsafe fn downgrade(&self, token: Token) -> Token;
}

// SAFETY: it hands everything on to a lock that keeps the promise.
unsafe impl<L: Shared> Lock for L {
    fn lock_shared(&self, ask: Ask<'_, Token>) -> Option<Token> {
        // SAFETY: this lock granted what lies behind.
        RawRangeLock::lock_shared(self, unsafe { ask_of(ask) }).map(Token::of)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        // SAFETY: this lock granted it, so it holds this lock's kind.
        let token = unsafe { token.take() };
        // SAFETY: this lock granted it on this thread, as the caller promises.
        Token::of(unsafe { RawRangeLock::downgrade(self, token) })
    }
}

// SAFETY: it hands everything on to a lock that keeps the promise.
unsafe impl<D: ?Sized + Mutex> RawRangeMutex for Erased<D> {
    type Token = Token;

    fn lock_exclusive(&self, ask: Ask<'_, Token>) -> Option<Token> {
        self.0.lock_exclusive(ask)
    }

    unsafe fn unlock(&self, token: Token) {
        // SAFETY: as the caller promises.
        unsafe { self.0.unlock(token) };
    }

    fn granule(&self, span: Span) -> Span {
        self.0.granule(span)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.0.snapshot()
    }
}

// SAFETY: it hands everything on to a lock that keeps the promise.
unsafe impl<D: ?Sized + Lock> RawRangeLock for Erased<D> {
    fn lock_shared(&self, ask: Ask<'_, Token>) -> Option<Token> {
        self.0.lock_shared(ask)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        // SAFETY: as the caller promises.
        unsafe { self.0.downgrade(token) }
    }
}
