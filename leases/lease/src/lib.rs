//! Ranges of one resource locked between machines: leases with fences, over an engine that people run.
//!
//! A [`RangeLease`] asks an [`Engine`] for a range of positions, such as a part of a file that several machines write,
//! or of a key space. What it gets is a [`Token`]. The engine keeps who holds what, and gives a range to somebody else
//! when its lease was not renewed for a time, the *ttl*. The lease is renewed in the background, by a thread of its
//! own, so a program whose executor is busy loses nothing.
//!
//! ```
//! use spanlock_lease::{Memory, Mode, RangeLease};
//! use std::time::Duration;
//!
//! let engine = Memory::new();          // For tests. Between machines, the engine is a server.
//! let file = RangeLease::open(engine).wait()?;
//! let token = file.acquire(0..4096, Mode::Exclusive, Duration::from_secs(10)).wait()?;
//! token.check()?;                      // One load. An error when the lease is lost or about to be.
//! let fence = token.fence();           // What is written carries it, and the resource refuses smaller ones.
//! token.release().wait()?;
//! # let _ = fence;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each `wait` blocks its thread. In a task, `.await` what is pending instead: `file.acquire(..).await?`. `wait_within`
//! blocks for a limited time, and `within` limits a request.
//!
//! # What a lease cannot do
//! A lease alone does **not** exclude. A process that is stopped for longer than its ttl goes on as if nothing had
//! happened, and no check on its side can prevent that. Only the resource can: it has to refuse a [`Fence`] that is
//! smaller than one it has seen *for the same range*. `docs/leases.md` says what is promised under which failure.
//!
//! # When not to use it
//! Within one machine a range lock of `spanlock` costs nanoseconds, and an acquisition here costs a round trip and a
//! write to the server's disk.
//!
//! # How it works
//! | module | content |
//! |---|---|
//! | `engine` | what an engine has to do |
//! | `lease`, `token` | what users call |
//! | `cache`, `blocks` | [`Cache`]: blocks that a machine keeps while nobody else wishes for them |
//! | `keys` | ranges of byte strings |
//! | `keeper` | the thread that asks the engine, renews, and tells what is lost |
//! | `user` | what a token says to the keeper, and is told |
//! | `clock` | a clock and a timer that run while the machine is suspended |
//! | `listed` | what engines list for people |
//! | `memory` | an engine within the process |
//! | `names` | names of requests |
//! | `simulated` | tests in time that is simulated, with another clock and other names |
#![cfg(target_os = "linux")]

mod blocks;
mod cache;
#[cfg_attr(test, path = "simulated/clock.rs")]
mod clock;
mod engine;
mod keeper;
mod keys;
mod lease;
mod listed;
mod memory;
#[cfg_attr(test, path = "simulated/names.rs")]
mod names;
mod pending;
#[cfg(test)]
mod simulated;
mod token;
mod user;

pub use cache::{Cache, Cached, CachedGuard};
pub use engine::{
    Answer, Engine, Extent, Fence, News, NotAnAddress, Renewal, Request, RequestId, Trouble, Wanted,
};
pub use keys::{KeyLease, KeySpan, ReversedKeys};
pub use lease::{Acquire, Cancel, NotOpened, Options, RangeLease, Refused, SHORTEST};
pub use listed::{Listed, State, client_name, client_name_of};
pub use memory::Memory;
pub use pending::Pending;
pub use spanlock::range::Span;
pub use spanlock::range::keys::{Prefix, between, point, prefix};
pub use spanlock::range::raw::Mode;
pub use token::{End, Lost, Token};
