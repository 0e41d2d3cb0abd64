//! Values that live as long as a run: globals, and locals of virtual threads.

use crate::world;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;

/// Values, by the address of the static that declares each.
#[derive(Default)]
pub(crate) struct Values(Vec<(usize, Box<dyn Any>)>);

/// A value on cache lines of its own.
#[repr(align(64))]
struct OnLines<T>(T);

impl Values {
    pub(crate) fn get<T: 'static>(&self, key: usize) -> Option<*const T> {
        let (_, value) = self.0.iter().find(|(of, _)| *of == key)?;
        let value = value.downcast_ref::<OnLines<T>>()?;
        Some(&raw const value.0)
    }

    pub(crate) fn add<T: 'static>(&mut self, key: usize, value: T) -> *const T {
        let value = Box::new(OnLines(value));
        let at = &raw const value.0;
        self.0.push((key, value));
        at
    }
}

/// A global of a run: created at its first use, dropped with the run.
#[derive(Debug)]
pub struct Global<T: 'static>(fn() -> T);

impl<T: 'static> Global<T> {
    /// A global that `init` creates. `init` must not wait.
    pub const fn new(init: fn() -> T) -> Self {
        Self(init)
    }
}

impl<T: 'static> Deref for Global<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let key = std::ptr::from_ref(self).addr();
        let there = world::with(|world| world.globals.get::<T>(key));
        let at = there.unwrap_or_else(|| {
            let value = (self.0)();
            world::with(|world| world.globals.add(key, value))
        });
        // SAFETY: the value is boxed and stays in its place until the run ends. No code of the run executes after that.
        unsafe { &*at }
    }
}

/// A local of virtual threads: created at a thread's first use, dropped with the run.
#[derive(Debug)]
pub struct Local<T: 'static>(fn() -> T, PhantomData<T>);

// SAFETY: each virtual thread reaches its own value only, and the declaration itself holds just a function pointer.
unsafe impl<T: 'static> Sync for Local<T> {}

impl<T: 'static> Local<T> {
    /// A local that `init` creates. `init` must not wait.
    pub const fn new(init: fn() -> T) -> Self {
        Self(init, PhantomData)
    }

    /// Calls `f` with this thread's value.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        let key = std::ptr::from_ref(self).addr();
        let there = world::with(|world| world.current().locals.get::<T>(key));
        let at = there.unwrap_or_else(|| {
            let value = (self.0)();
            world::with(|world| world.current_mut().locals.add(key, value))
        });
        // SAFETY: the value is boxed and stays in its place until the run ends, and `f` returns before that.
        f(unsafe { &*at })
    }
}
