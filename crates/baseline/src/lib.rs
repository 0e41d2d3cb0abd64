//! The range locks that P1 and P4 compare with, and P3's as published, written anew from their descriptions (P1 §3, P3 §IV,
//! P4 §2.1.2 and §4.4.1); and BRAVO as P2 has it.
//!
//! They say `prim`, as the library does, so that the same source is compiled against other platforms: `baseline-loom`
//! checks models of it, and `baseline-sim` runs it on simulated machines. What is reached under a lock of theirs is told
//! to `prim::cost`.

mod bitmap;
mod bravo;
mod interval_tree;
mod pnova;
mod song;
mod spin_lock;
mod tree_lock;

pub use bitmap::{Bitmap, BitmapToken};
pub use bravo::{FastReader, PaperBravo, Way};
pub use pnova::{Pnova, PnovaToken};
pub use song::{HEIGHT, MAX_HEIGHT, Song, SongToken};
pub use tree_lock::{KernelRw, LustreEx, Token};

/// The repository's README is in no package that is published; its example is tested here.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
