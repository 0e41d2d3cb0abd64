//! A thread's nodes: the nodes ready for use, the nodes unlinked since, and a batch in its grace period.
//!
//! Only the owning thread accesses a pool. A node is in exactly one place: in a pool, in a list, or with a thread that
//! is about to put it into one of these.

use super::{Epoch, Grace};
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};

/// A node that pools can hold.
pub(crate) trait Recycled {
    /// How many of them a thread keeps ready (the paper's N).
    fn ready() -> usize;

    /// A node for the pool to own.
    fn allocate() -> Box<Self>;

    /// Where the pool keeps its link while the node is in the pool.
    fn pooled(&self) -> &Cell<*mut Self>;
}

/// A thread's nodes.
pub(crate) struct Pool<T: Recycled> {
    /// Ready for use.
    active: Stack<T>,
    /// Unlinked by this thread. Other threads may stand on them.
    retired: Stack<T>,
    /// Unlinked before `grace` began.
    sealed: Stack<T>,
    grace: RefCell<Grace<'static>>,
    /// How many were allocated since the last call of [`count_anew`](Self::count_anew).
    made: Cell<usize>,
}

impl<T: Recycled> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self {
            active: Stack::new(),
            retired: Stack::new(),
            sealed: Stack::new(),
            grace: RefCell::new(Grace::new()),
            made: Cell::new(0),
        }
    }

    /// How many nodes were allocated, because too few came back.
    #[inline]
    pub(crate) fn made(&self) -> usize {
        self.made.get()
    }

    /// Begins the count of allocated nodes at zero.
    pub(crate) fn count_anew(&self) {
        self.made.set(0);
    }

    /// A node that no other thread knows. Allocates when none is ready: in a warm pool, only while a long walk keeps
    /// the retired nodes in their grace period.
    #[inline]
    pub(crate) fn take<E: Iterator<Item = &'static Epoch>>(
        &self,
        epochs: impl Fn() -> E,
    ) -> NonNull<T> {
        self.active.pop().unwrap_or_else(|| self.refill(epochs))
    }

    /// Returns a node that no other thread has known since it was taken.
    #[inline]
    pub(crate) fn put_back(&self, node: NonNull<T>) {
        self.active.push(node);
    }

    /// Takes over a node that no other thread knows any more, from whichever pool it came. Frees it, if enough are
    /// ready: the threads that release need not be those that acquire.
    #[inline]
    pub(crate) fn take_over(&self, node: NonNull<T>) {
        self.active.push(node);
        if self.active.len() > 2 * T::ready() {
            self.active.free_one();
        }
    }

    /// Gives up a node that this thread has unlinked from its list.
    #[inline]
    pub(crate) fn retire(&self, node: NonNull<T>) {
        self.retired.push(node);
    }

    /// Whether enough nodes are retired to be due for collection, although none is needed.
    #[inline]
    pub(crate) fn is_bloated(&self) -> bool {
        self.retired.len() > 2 * T::ready()
    }

    #[cold] // Once in `ready()` acquisitions, and on a thread's first.
    fn refill<E: Iterator<Item = &'static Epoch>>(&self, epochs: impl Fn() -> E) -> NonNull<T> {
        self.collect(epochs);
        if self.active.len() < (T::ready() / 2).max(1) {
            while self.active.len() < T::ready() {
                self.active.push(NonNull::from(Box::leak(T::allocate())));
                self.made.set(self.made.get() + 1);
            }
        }
        self.active.pop().expect("the pool was just refilled")
    }

    /// Makes the sealed nodes ready if their grace period is over, seals the retired nodes, and frees the surplus.
    #[cold]
    pub(crate) fn collect<E: Iterator<Item = &'static Epoch>>(&self, epochs: impl Fn() -> E) {
        let mut grace = self.grace.borrow_mut();
        if !self.sealed.is_empty() && grace.is_over() {
            self.active.append(&self.sealed);
        }
        if self.sealed.is_empty() && !self.retired.is_empty() {
            self.sealed.append(&self.retired);
            grace.restart(epochs);
            if grace.is_over() {
                self.active.append(&self.sealed);
            }
        }
        // To free a node may be to run foreign code, which may use this pool.
        drop(grace);
        if self.active.len() > 2 * T::ready() {
            while self.active.len() > T::ready() {
                self.active.free_one();
            }
        }
    }

    /// The mutant of [grace-nonblocking]: waits for nodes where [`refill`](Self::refill) allocates.
    #[cold]
    pub(crate) fn await_grace<E: Iterator<Item = &'static Epoch>>(&self, epochs: impl Fn() -> E) {
        while self.active.is_empty() && !(self.sealed.is_empty() && self.retired.is_empty()) {
            self.collect(&epochs);
            prim::thread::yield_now();
        }
    }

    /// Frees the nodes that can be freed now. The others stay for the next thread that gets this pool.
    pub(crate) fn flush<E: Iterator<Item = &'static Epoch>>(&self, epochs: impl Fn() -> E) {
        self.collect(epochs);
        while !self.active.is_empty() {
            self.active.free_one();
        }
    }
}

impl<T: Recycled> Drop for Pool<T> {
    fn drop(&mut self) {
        for stack in [&self.active, &self.retired, &self.sealed] {
            while !stack.is_empty() {
                stack.free_one();
            }
        }
    }
}

/// Nodes linked through [`Recycled::pooled`].
struct Stack<T> {
    top: Cell<*mut T>,
    bottom: Cell<*mut T>,
    len: Cell<usize>,
}

impl<T: Recycled> Stack<T> {
    const fn new() -> Self {
        Self {
            top: Cell::new(ptr::null_mut()),
            bottom: Cell::new(ptr::null_mut()),
            len: Cell::new(0),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.len.get()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.top.get().is_null()
    }

    #[inline]
    fn push(&self, node: NonNull<T>) {
        if self.is_empty() {
            self.bottom.set(node.as_ptr());
        }
        // SAFETY: the node is alive and given to this pool, whose thread alone uses the node's pool link.
        unsafe { node.as_ref() }.pooled().set(self.top.get());
        self.top.set(node.as_ptr());
        self.len.set(self.len.get() + 1);
    }

    #[inline]
    fn pop(&self) -> Option<NonNull<T>> {
        let node = NonNull::new(self.top.get())?;
        // SAFETY: nodes in a stack are live and linked by `push`.
        self.top.set(unsafe { node.as_ref() }.pooled().get());
        self.len.set(self.len.get() - 1);
        Some(node)
    }

    /// Moves all of `other` here.
    fn append(&self, other: &Self) {
        let Some(bottom) = NonNull::new(other.bottom.get()).filter(|_| !other.is_empty()) else {
            return;
        };
        if self.is_empty() {
            self.bottom.set(bottom.as_ptr());
        }
        // SAFETY: nodes in a stack are live and linked by `push`.
        unsafe { bottom.as_ref() }.pooled().set(self.top.get());
        self.top.set(other.top.replace(ptr::null_mut()));
        self.len.set(self.len.get() + other.len.take());
    }

    fn free_one(&self) {
        if let Some(node) = self.pop() {
            // SAFETY: each node came from a Box, the pool owns it, and `pop` took it out of the pool.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }
}
