#![doc = include_str!("../README.md")]

pub mod deadlock;
pub mod observe;
pub mod range;
mod reclaim;
#[cfg(feature = "rw")]
pub mod rw;
pub mod timer;
mod wait;
