//! The locks that Spanlock's are compared with, written anew from their descriptions in the papers.
//!
//! | lock | what it is | described in |
//! |---|---|---|
//! | [`KernelRw`], [`LustreEx`] | the Linux kernel's and Lustre's range locks | P1 §3 |
//! | [`Song`] | Song's skip-list lock | P4 §2.1.2 |
//! | [`Bitmap`] | a bitmap lock | P4 §4.4.1 |
//! | [`Pnova`] | pNOVA's segment lock, as published | P3 §IV |
//! | [`PaperBravo`] | BRAVO, as published | P2, Listing 1 |
//! | [`CohortRwLock`] | C-RW-WP, for machines of several memory nodes | Calciu et al., PPoPP 2013 |
//! | [`PerCpu`] | a lock for each processor: Linux's `brlock` | P2 §5 |
//! | [`MutexRwLock`] | a mutex, to put BRAVO around | P2 §7 |
//! | [`StdRwLock`], [`ParkingRwLock`], [`TriedTree`] | what programs in Rust use, for the simulator | the sources of the standard library, `parking_lot` and `range-lock` |
//!
//! P1 to P4 are the papers that the repository's README names. Work under an internal spin lock is reported to
//! `prim::cost`.

mod bitmap;
mod bravo;
mod cohort;
mod grid;
mod interval_tree;
mod mutex;
mod parking_rwlock;
mod per_cpu;
mod pnova;
mod song;
mod spin_lock;
mod std_rwlock;
mod traits;
mod tree_lock;
mod tried;

pub use bitmap::{Bitmap, BitmapToken};
pub use bravo::{FastReader, PaperBravo, Way};
pub use cohort::CohortRwLock;
pub use mutex::MutexRwLock;
pub use parking_rwlock::ParkingRwLock;
pub use per_cpu::{PartToken, PerCpu};
pub use pnova::{Pnova, PnovaToken};
pub use song::{HEIGHT, MAX_HEIGHT, Song, SongToken};
pub use std_rwlock::StdRwLock;
pub use tree_lock::{KernelRw, LustreEx, Token, TreeLock, TreeWaits};
pub use tried::{TriedToken, TriedTree};
