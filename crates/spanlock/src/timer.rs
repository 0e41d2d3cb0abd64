//! A timer of your own, for what tasks wait for.
//!
//! A task that was woken and is not polled holds others up for a turn of a millisecond, and a task may wait for a
//! limited time. Something has to act when such a time is over. Unless the program installs a timer, a thread of the
//! library does that; it starts with the first task that needs it, or with the first request that
//! sleeps where [deadlocks](crate::deadlock) are looked for. So there is no need for one but where a program
//! wants no such thread, or has none: on wasm32, a timer that calls JavaScript's `setTimeout` gives tasks their turns
//! and limits.
//!
//! ```
//! use spanlock::timer::{self, Call, CallAt};
//! use std::time::Instant;
//!
//! /// An executor's timer. This one has a thread for each call, to keep the example short.
//! struct Mine;
//!
//! impl CallAt for Mine {
//!     fn call_at(&self, when: Instant, call: Call) {
//!         std::thread::spawn(move || {
//!             std::thread::sleep(when.saturating_duration_since(Instant::now()));
//!             call.make();
//!         });
//!     }
//! }
//!
//! timer::install(Box::new(Mine))?;
//! # Ok::<(), timer::AlreadyInstalled>(())
//! ```
//!
//! # When not to use it
//! Where an executor stops its timers while tasks exist: what depends on them waits for ever.
//!
//! # When it panics
//! The panic does not come out of the lock, and there is no timer for the call that was asked for. So a turn that was
//! to end by that call ends at once. A limit of time is not kept: nothing wakes the task at its deadline, and it finds
//! out that its time is over when something else has it polled.
//!
//! # Cost
//! A call for each turn of a task that others wait for, and for each wait with a limit. In each lock, the library asks
//! for a call that is earlier than the last it has asked for. Where it looks for deadlocks: a call for each look.
//!
//! # Fork
//! A forked child has no timer of the program's, and may install one. Otherwise the library's starts there.

pub use prim::timer::{AlreadyInstalled, Call, CallAt, install};
