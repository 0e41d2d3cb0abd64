//! Verdicts on the papers' claims, tables for people, and a page of all measurements.
//!
//! This crate reads records and measures nothing. The harness depends on it for [`record`], to write what it measured.
//! The plain types of workloads, such as their variants, are those of [`spanlock_trial`].
//!
//! | module | what it is |
//! |---|---|
//! | [`stats`] | median and spread |
//! | [`record`] | measurements as lines of JSON |
//! | [`compare`] | the fastest locks, and the papers' claims |
//! | [`table`] | measurements as tables |
//! | [`page`] | many measurements as one page |
//!
//! A module uses those above it, and no other. Every writer of records also has them judged or printed, so the records
//! need no crate of their own; and they name locks in words, so that they can be read without any lock.

pub mod compare;
pub mod page;
pub mod record;
pub mod stats;
pub mod table;
