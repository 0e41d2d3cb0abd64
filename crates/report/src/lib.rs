//! Verdicts on the papers' claims, tables for people, and a page of all measurements.
//!
//! This crate reads [records](spanlock_records) and measures nothing. Records name locks in words, so it knows no lock.
//!
//! | module | what it is |
//! |---|---|
//! | [`compare`] | the fastest locks, and the papers' claims |
//! | [`table`] | measurements as tables |
//! | `page` | many measurements as one page (feature `page`) |
//!
//! A module uses those above it, and no other.

pub mod compare;
#[cfg(feature = "page")]
pub mod page;
pub mod table;
