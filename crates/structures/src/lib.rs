//! What is built on Spanlock's range locks, by their public interface alone.
//!
//! | module | what it is |
//! |---|---|
//! | [`ordered`] | ordered maps and sets whose updates take one range lock |
//! | [`blob`] | an aliasing area, which shows scattered parts of a pool as one slice |
//! | [`vm`] | an address-space manager: areas of pages under a range lock |
//! | `store` | a file store for many writers of one file, on Linux |
//!
//! The modules do not use each other.

pub mod blob;
pub mod ordered;
#[cfg(target_os = "linux")]
pub mod store;
pub mod vm;

/// The example in the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
