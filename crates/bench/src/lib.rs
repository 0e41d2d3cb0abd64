//! Workloads, baselines and measurement.
//!
//! | module | what it is |
//! |---|---|
//! | [`target`] | what a lock under measurement offers |
//! | [`registry`] | all the locks, by name: to add one, add an entry |
//! | [`baseline`] | the range locks that P1 compares with |
//! | [`arr`] | ArrBench (P1 §7.1): throughput and latency over an array, with a check of its content |
//! | [`uncontended`] | what one thread pays |
//! | [`waiting`] | what a waiter costs, and how evenly a lock serves |
//! | [`crew`] | threads that start, are measured and stop together |
//! | [`processor`] | processor time |
//! | [`stats`] | median and spread |
//! | [`provenance`] | where numbers come from |
//! | [`report`] | measurements as tables and as lines of JSON |

pub mod arr;
pub mod baseline;
pub mod crew;
pub mod processor;
pub mod provenance;
pub mod registry;
pub mod report;
pub mod stats;
pub mod target;
pub mod uncontended;
pub mod waiting;
