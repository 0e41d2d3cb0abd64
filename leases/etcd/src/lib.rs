//! Range leases over etcd, version 3.4 or later: for coarse ranges that change hands seldom.
//!
//! Each lease is a key with a native lease of etcd, and all grants of a resource compare one key, so conflicting ones
//! are kept apart exactly, for all positions. See [`spanlock_lease`] for what a lease is.
//!
//! ```no_run
//! use spanlock_lease::{Mode, RangeLease};
//! use spanlock_lease_etcd::Etcd;
//! use std::time::Duration;
//!
//! let engine = Etcd::new("etcd://10.0.0.1,10.0.0.2,10.0.0.3".parse()?, "volume-7");
//! let volume = RangeLease::open(engine).wait()?;
//! let token = volume.acquire(0..4096, Mode::Exclusive, Duration::from_secs(10)).wait()?;
//! # drop(token);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it needs
//! A cluster whose members keep time and sync their logs. Two connections for each
//! [`RangeLease`](spanlock_lease::RangeLease): one that asks and one that listens; when a member fails, the next one is
//! connected to. [`Config`] says how they are encrypted. The cluster has to compact its history
//! (`--auto-compaction-retention`), as for any use that writes.
//!
//! # Who checks fences
//! The resource. Nothing in etcd does.
//!
//! # What it promises
//! Fences are the revisions of the transactions that granted, so all grants of a resource are ordered. A lease is for a
//! minute at most; ttls count in whole seconds, and etcd may hold a lease for longer than it was asked to, which is two
//! seconds at least unless the cluster is set up otherwise. After a restore the epoch of fences is larger, and nothing
//! is granted for a minute; `docs/leases.md` says which restores are noticed.
//!
//! | module | content |
//! |---|---|
//! | `etcd` | [`Etcd`]: what users make |
//! | `engine` | the protocol: what is asked for each call |
//! | `decide` | what a request is told, by what is known of the resource |
//! | `edge` | leaves out a step of the protocol, for its model |
//! | `keys` | what is kept in etcd |
//! | `interests`, `watch` | whom an event concerns; the connection that listens |
//! | `status` | [`status()`]: who holds, and who waits |
//! | `config`, `link`, `grpc`, `wire`, `txn` | addresses, connections, calls, messages, parts of calls |
#![cfg(target_os = "linux")]

mod config;
mod decide;
mod edge;
mod engine;
mod etcd;
mod grpc;
mod interests;
mod keys;
mod link;
mod status;
mod txn;
mod watch;
mod wire;

pub use config::Config;
pub use etcd::Etcd;
pub use spanlock_lease::NotAnAddress;
pub use status::status;
pub use tokio_rustls::rustls::ClientConfig;
