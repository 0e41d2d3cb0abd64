//! Files that several machines edit by extents.
//!
//! One machine keeps the files, in a file store, and serves them: [`FencedFiles`]. The others lease extents of a file
//! from an [engine](spanlock_lease::Engine) that all of them reach, and read and write what they have leased through a
//! [`FencedFile`]. Each request carries the fence of its lease, and the server refuses a fence that is smaller than one
//! it has seen in that extent. So a machine that was stopped for longer than its lease lasts writes nothing afterwards,
//! also not in places that nobody has written since.
//!
//! ```
//! use spanlock_lease::{Memory, Mode, RangeLease};
//! use spanlock_lease_store::{FencedFile, FencedFiles};
//! use spanlock_structures::store::{Geometry, Mapped, Options, Store, make};
//! use std::net::TcpListener;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("store");
//! // On the machine with the files.
//! let medium = Mapped::create(&path, 1 << 20)?;
//! make(&medium, &Geometry::default())?;
//! let files = Arc::new(FencedFiles::new(Store::open(medium, Options::default())?.0)?);
//! let listener = TcpListener::bind("localhost:0")?;
//! let address = listener.local_addr()?;
//! std::thread::spawn(move || files.serve_tcp(&listener));
//!
//! // On another machine. All lease from the same engine, which is a server, too.
//! let leases = RangeLease::open(Memory::new()).wait()?;
//! let file = FencedFile::connect(address, "volume")?;
//! let token = leases.acquire(0..4096, Mode::Exclusive, Duration::from_secs(10)).wait()?;
//! let extent = file.enter(&token)?;
//! extent.write_at(b"text", 100)?;
//! extent.sync()?;
//! # let mut back = [0; 4];
//! # assert_eq!(extent.read_at(&mut back, 100)?, 4);
//! # assert_eq!(&back, b"text");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//! - A request whose fence is too small changes nothing and reads nothing: [`Error::Refused`]. An exclusive lease is
//!   too late if any later lease has entered a position of the request; a shared one, if a later exclusive lease has.
//! - `enter` returns when the server has the fence on its medium: who holds an earlier lease is refused from then on,
//!   also after the server crashed.
//! - A write of up to [`MAX_DATA`] bytes happens as a whole or not at all, also if the server is killed. A longer one
//!   is sent in pieces. `sync` makes writes last beyond a failure of power; those after it may then be there page by
//!   page.
//!
//! # What it does not
//! - The server believes the fences that it is sent, and has neither users nor encryption: serve a network that is
//!   trusted.
//! - There is one server. Where it is down, the files are.
//! - A write that failed because the connection was cut may have been done.
//! - A client waits for an answer as long as the server's machine is there. That one is gone without a word is found
//!   after about a minute, on both sides; for less, give [`FencedFile::over`] a `TcpStream` with a read timeout.
//! - Fences are never forgotten. One that is too large keeps out all smaller ones.
//!
//! # Cost
//! A round trip for each request, a sync of the medium for each `enter`, a thread of the server for each
//! connection, and a search among the extents that were ever entered with different fences. They are in memory;
//! extents that touch and have equal ones are joined. On the medium they are a journal, which is rewritten when a
//! new one would be at most half as long.
//!
//! # How it works
//! | module | content |
//! |---|---|
//! | `marks` | the largest fences of each position |
//! | `journal` | the same on the medium |
//! | `served` | a file: what is checked, and in which order things happen |
//! | `server` | connections |
//! | `client` | [`FencedFile`] |
//! | `wire` | requests and answers as bytes |
//! | `alive` | connections whose other side is gone without a word |
#![cfg(target_os = "linux")]

mod alive;
mod client;
mod journal;
mod marks;
mod served;
mod server;
mod wire;

/// The example in the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use client::{Error, Extent, FencedFile};
pub use server::FencedFiles;
pub use wire::MAX_DATA;
