//! The part of the crate [`generator`](https://docs.rs/generator) that loom uses, for shorter runs of models.
//!
//! Loom makes a coroutine for each thread of each execution. An execution takes some ten microseconds, and most of them
//! went to the kernel and to the unwinder: `generator` maps and unmaps a stack for each coroutine, and ends a coroutine
//! by a panic. Here a stack goes back to a pool of the host thread, and a coroutine ends by returning. Loom explores
//! the same executions.
//!
//! Types are those of loom's one use: a thread is handed its function when it is resumed, and yields nothing.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;
use std::thread;

/// What a resumed thread may be handed: its function.
type Para = Option<Box<dyn FnOnce()>>;

type Suspended = Yielder<Option<Para>, ()>;

/// Bytes of a stack. A page that is never touched costs nothing.
const STACK: usize = 1 << 18;

thread_local! {
    /// The coroutine that runs.
    static CURRENT: Cell<Option<NonNull<Suspended>>> = const { Cell::new(None) };
    /// Stacks of coroutines that have ended.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A coroutine of loom's, as the type names it.
pub struct Generator<'a, A, T> {
    para: Option<A>,
    coroutine: Option<Coroutine<Option<A>, T, ()>>,
    of: PhantomData<&'a ()>,
}

/// Makes coroutines.
#[derive(Debug)]
pub struct Gn;

impl Gn {
    /// A coroutine that has not begun.
    ///
    /// # Panics
    /// When there is no memory for a stack.
    #[expect(clippy::new_ret_no_self, reason = "loom's name for it")]
    pub fn new(body: impl FnOnce() + 'static) -> Generator<'static, Para, ()> {
        let pooled = STACKS.with_borrow_mut(Vec::pop);
        let fresh = || DefaultStack::new(STACK).expect("there is memory for a stack");
        let coroutine = Coroutine::with_stack(pooled.unwrap_or_else(fresh), |yielder, _| {
            CURRENT.set(Some(NonNull::from(yielder)));
            body();
        });
        Generator {
            para: None,
            coroutine: Some(coroutine),
            of: PhantomData,
        }
    }

    /// The same on a stack of at least `words` words.
    ///
    /// # Panics
    /// When stacks of this crate are smaller.
    pub fn new_opt(words: usize, body: impl FnOnce() + 'static) -> Generator<'static, Para, ()> {
        assert!(words <= STACK / size_of::<usize>(), "stacks are smaller");
        Self::new(body)
    }
}

/// What ran before a coroutine was resumed. It runs again when this is dropped, also by a panic of the coroutine.
struct Resumer(Option<NonNull<Suspended>>);

impl Drop for Resumer {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl Generator<'_, Para, ()> {
    /// Hands something over at the next resumption.
    pub fn set_para(&mut self, para: Para) {
        self.para = Some(para);
    }

    /// Runs the coroutine until it yields or ends. Does nothing after its end.
    ///
    /// # Panics
    /// When the coroutine does.
    pub fn resume(&mut self) {
        let Some(coroutine) = &mut self.coroutine else {
            return;
        };
        let resumer = Resumer(CURRENT.take());
        let result = coroutine.resume(self.para.take());
        drop(resumer);
        if let CoroutineResult::Return(()) = result {
            let ended = self.coroutine.take().map(Coroutine::into_stack);
            STACKS.with_borrow_mut(|stacks| stacks.extend(ended));
        }
    }

    /// Whether the coroutine has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.coroutine.is_none()
    }
}

impl<A, T> Drop for Generator<'_, A, T> {
    /// A failed model leaves its threads where they are, as with the original: they cannot unwind while another does.
    fn drop(&mut self) {
        if thread::panicking() {
            mem::forget(self.coroutine.take());
        }
    }
}

/// Suspends the running coroutine. Returns what the resumption hands over.
///
/// # Panics
/// Outside of a coroutine.
#[must_use]
pub fn yield_((): ()) -> Option<Para> {
    let current = CURRENT.get().expect("only a coroutine yields");
    // SAFETY: the pointer was set by the coroutine that runs now, whose yielder lives as long as it does.
    let handed = unsafe { current.as_ref() }.suspend(());
    CURRENT.set(Some(current));
    handed
}

/// Suspends the running coroutine.
///
/// # Panics
/// Outside of a coroutine.
pub fn yield_with((): ()) {
    // What is handed over here, loom hands over for nothing.
    drop(yield_(()));
}

/// Ends the running coroutine, from its outermost function.
#[macro_export]
macro_rules! done {
    () => {
        return
    };
}
