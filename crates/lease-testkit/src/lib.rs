//! What is checked of each engine of leases, over a server that a test starts.
//!
//! | module | content |
//! |---|---|
//! | [`server`] | what a server has to do for that; runs tests, each with a server of its own |
//! | [`exact`] | what is granted, beside the engine in memory |
//! | [`keys`] | the same and more, of byte strings |
//! | [`order`] | in which order leases began and ended, beside their fences |
//! | [`failures`] | hand-over, a dead holder, a crash |
//! | [`storm`] | processes that are stopped and killed at work, a server that crashes, networks that fail |
//! | [`child`] | those processes |
//! | [`store`] | the resource that they work on, which checks fences, and its history |
//! | [`network`] | the way to a server, which fails as it is told to |
#![cfg(target_os = "linux")]

pub mod child;
pub mod exact;
pub mod failures;
pub mod keys;
pub mod network;
pub mod order;
pub mod server;
pub mod store;
pub mod storm;
