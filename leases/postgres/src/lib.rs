//! Range leases over PostgreSQL, version 15 or later.
//!
//! Leases are rows, and a constraint of the database keeps conflicting ones apart: exactly, for all positions. An
//! acquisition is one call of a function and one commit. See [`spanlock_lease`] for what a lease is.
//!
//! ```no_run
//! use spanlock_lease::{Mode, RangeLease};
//! use spanlock_lease_postgres::Postgres;
//! use std::time::Duration;
//!
//! let engine = Postgres::new("host=/run/postgresql user=app dbname=app".parse()?, "volume-7");
//! let volume = RangeLease::open(engine).wait()?;
//! let token = volume.acquire(0..4096, Mode::Exclusive, Duration::from_secs(10)).wait()?;
//! # drop(token);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it needs
//! The extension `btree_gist`, which is part of PostgreSQL, and on the first opening the right to create it and a
//! schema. Three connections for each [`RangeLease`](spanlock_lease::RangeLease): one that acquires and releases, one
//! that renews, so that no renewal waits behind an acquisition, and one that listens. An [`Address`] says how they are
//! encrypted. Of a pool of connections between, each has to keep its session.
//!
//! # Who checks fences
//! A [`FencedTable`] in the same database refuses late writes by itself. What lies elsewhere has to compare fences.
//!
//! # What it promises
//! Fences are ordered between leases that conflict. A lease is for a minute at most. After a standby was promoted, the
//! epoch of fences is larger, and nothing is granted for a minute.
//!
//! | module | content |
//! |---|---|
//! | `address` | [`Address`]: where the server is, certificates, passwords |
//! | `engine` | [`Postgres`]: the calls |
//! | `session` | connections: the schema, statements, reports |
//! | `places` | positions and keys, as the database has them |
//! | `status` | [`status()`], [`status_of_keys`], [`grant`]: who holds, who waits, who may lease |
//! | `table` | [`FencedTable`]: a table that refuses late writes |
//! | `schema` | the schema, and who may use it |
#![cfg(target_os = "linux")]

mod address;
mod engine;
mod places;
mod schema;
mod session;
mod status;
mod table;

/// The example in the README of the workspace compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

pub use address::Address;
pub use engine::Postgres;
pub use schema::SchemaError;
pub use spanlock_lease::NotAnAddress;
pub use status::{grant, status, status_of_keys};
pub use table::FencedTable;
pub use tokio_postgres::Config;
