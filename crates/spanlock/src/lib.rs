#![doc = include_str!("../README.md")]

pub mod range;
mod reclaim;
#[cfg(feature = "rw")]
pub mod rw;
mod wait;
