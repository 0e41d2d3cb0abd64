//! Atomic types: the host's, accessed through the simulated memory.
//!
//! Every load is at least an Acquire load and every store at least a Release store, whatever ordering is given. Only
//! the store buffer reorders accesses: see `world::memory`.

pub use core::sync::atomic::Ordering;

use crate::world::{self, Cell};
use core::sync::atomic as host;

/// A fence. Only `SeqCst` has an effect: the machine already orders everything that weaker fences order.
#[track_caller]
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        world::fence();
    }
}

/// A full store-load fence, for a thread whose last atomic access was a *successful read-modify-write*. It is a fence
/// only on machines whose read-modify-writes are not fences themselves.
#[track_caller]
pub fn fence_after_rmw() {
    world::fence_after_rmw();
}

/// Asks for the first cache line of `place`. The machine charges it as a plain read, of which several overlap.
pub fn prefetch<T>(place: &T) {
    world::touch(core::ptr::from_ref(place).addr(), world::Access::Load);
}

hardware::simulated_exchange_by_owner!();

macro_rules! cell {
    ($name:ident $(<$param:ident>)?, $value:ty, $to:expr, $from:expr) => {
        impl $(<$param>)? Cell for host::$name $(<$param>)? {
            fn get(&self) -> u64 {
                $to(self.load(Ordering::Relaxed))
            }

            fn set(&self, bits: u64) {
                self.store($from(bits), Ordering::Relaxed);
            }
        }

        /// An atomic of the simulated memory.
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name $(<$param>)? (host::$name $(<$param>)?);

        impl $(<$param>)? $name $(<$param>)? {
            /// A new one.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(host::$name::new(value))
            }

            /// Loads the value.
            #[track_caller]
            pub fn load(&self, _: Ordering) -> $value {
                $from(world::load(&self.0))
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                world::store(&self.0, $to(value));
                if order == Ordering::SeqCst {
                    world::drain();
                }
            }

            /// Stores a value; returns the previous value.
            #[track_caller]
            pub fn swap(&self, value: $value, _: Ordering) -> $value {
                self.update("swap", |_| Some(value))
            }

            /// Replaces `current` by `new`.
            ///
            /// # Errors
            /// The value found, if it was not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                let found = self.update("cas", |found| (found == current).then_some(new));
                if found == current { Ok(found) } else { Err(found) }
            }

            /// As [`compare_exchange`](Self::compare_exchange).
            ///
            /// # Errors
            /// The value found, if it was not `current`.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// The value, through an exclusive borrow.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            #[track_caller]
            fn update(&self, what: &'static str, f: impl Fn($value) -> Option<$value>) -> $value {
                $from(world::update(&self.0, what, |bits| f($from(bits)).map($to)))
            }
        }
    };
}

macro_rules! integer {
    ($name:ident, $value:ident) => {
        cell!($name, $value, |value| value as u64, |bits| bits as $value);

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }

        integer!(@ $name, $value, fetch_add, "add", |old: $value, by| old.wrapping_add(by));
        integer!(@ $name, $value, fetch_sub, "sub", |old: $value, by| old.wrapping_sub(by));
        integer!(@ $name, $value, fetch_or, "or", |old, by| old | by);
        integer!(@ $name, $value, fetch_and, "and", |old, by| old & by);
        integer!(@ $name, $value, fetch_xor, "xor", |old, by| old ^ by);
        integer!(@ $name, $value, fetch_max, "max", |old: $value, by| old.max(by));

        impl $name {
            /// Replaces the value by the result of `f`. Tries again when another thread interferes, until `f` refuses.
            ///
            /// # Errors
            /// The value that `f` refused.
            #[track_caller]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut seen = self.load(failure);
                while let Some(next) = f(seen) {
                    match self.compare_exchange(seen, next, success, failure) {
                        Ok(before) => return Ok(before),
                        Err(found) => seen = found,
                    }
                }
                Err(seen)
            }
        }
    };
    (@ $name:ident, $value:ident, $method:ident, $what:literal, $f:expr) => {
        impl $name {
            /// Applies this operation to the value; returns the previous value.
            #[track_caller]
            pub fn $method(&self, by: $value, _: Ordering) -> $value {
                self.update($what, |old| Some($f(old, by)))
            }
        }
    };
}

integer!(AtomicU8, u8);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
cell!(AtomicBool, bool, u64::from, |bits| bits != 0);
cell!(
    AtomicPtr<T>,
    *mut T,
    |pointer: *mut T| pointer.expose_provenance() as u64,
    |bits| std::ptr::with_exposed_provenance_mut(bits as usize)
);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<T> AtomicPtr<T> {
    /// Adds to the address; returns the previous pointer.
    #[track_caller]
    pub fn fetch_byte_add(&self, bytes: usize, _: Ordering) -> *mut T {
        self.update("add", |old| Some(old.wrapping_byte_add(bytes)))
    }

    /// Sets bits of the address; returns the previous pointer.
    #[track_caller]
    pub fn fetch_or(&self, bits: usize, _: Ordering) -> *mut T {
        self.update("or", |old| Some(old.map_addr(|address| address | bits)))
    }
}
