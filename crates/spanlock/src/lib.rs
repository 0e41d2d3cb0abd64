//! Range locks and scalable reader-writer locks for shared memory.
#![doc = include_str!("../../../README.md")]

mod local;
pub mod range;
mod reclaim;
pub mod rw;
mod wait;
