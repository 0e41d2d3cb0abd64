//! Values that live as long as a run: one for all threads, or one for each.

use crate::world;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;

/// Values by the address of the static that stands for them.
#[derive(Default)]
pub(crate) struct Values(Vec<(usize, Box<dyn Any>)>);

/// A value on lines of its own.
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

/// A global of a run: made when first used, and gone with the run.
#[derive(Debug)]
pub struct Global<T: 'static>(fn() -> T);

impl<T: 'static> Global<T> {
    /// Made by `init`, which does not wait.
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
        // SAFETY: boxed and never removed while the run lasts, and what could use it later is not run again.
        unsafe { &*at }
    }
}

/// A local of virtual threads: made when a thread first uses it, and gone with the run.
#[derive(Debug)]
pub struct Local<T: 'static>(fn() -> T, PhantomData<T>);

// SAFETY: a thread gets at its own value only.
unsafe impl<T: 'static> Sync for Local<T> {}

impl<T: 'static> Local<T> {
    /// Made by `init`, which does not wait.
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
        // SAFETY: boxed and never removed while the run lasts.
        f(unsafe { &*at })
    }
}
