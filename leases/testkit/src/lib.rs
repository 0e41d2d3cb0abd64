//! What is checked of each engine of leases, over a server that a test starts.
//!
//! | module | content |
//! |---|---|
//! | [`server`] | what a server has to do for that; runs tests, each with a server of its own |
//! | [`exact`] | what is granted, beside the engine in memory |
//! | [`keys`] | the same and more, of byte strings |
//! | [`requests`] | requests that are repeated, and what people see of them |
//! | [`turns`] | an order among those who wait |
//! | [`order`] | in which order leases began and ended, beside their fences |
//! | [`failures`] | hand-over, a lost listener, a dead holder, a crash |
//! | [`storm`] | processes that are stopped and killed at work, a server that crashes, networks that fail |
//! | [`child`] | those processes |
//! | [`store`] | the resource that they work on, which checks fences, and what was done there |
//! | [`network`] | the way to a server, which fails as it is told to |
//!
//! What finds that something goes otherwise than it should, or lacks something that a test needs, panics.
#![cfg(target_os = "linux")]

pub mod child;
pub mod exact;
pub mod failures;
pub mod keys;
pub mod network;
pub mod order;
pub mod requests;
pub mod server;
pub mod store;
pub mod storm;
pub mod turns;
