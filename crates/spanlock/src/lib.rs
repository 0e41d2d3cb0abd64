#![doc = include_str!("../README.md")]

mod local;
pub mod range;
mod reclaim;
#[cfg(feature = "rw")]
pub mod rw;
mod wait;
