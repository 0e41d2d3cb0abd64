//! Records: what a run was asked for, what it yielded, and what programs asked of their address space. Plain data.
//!
//! Workloads are compiled for hardware and for simulated machines. The types here are compiled once: both builds, the
//! harness, the command line and the report share them. Code that starts a thread, reads a clock or takes a lock
//! belongs elsewhere.
//!
//! | module | what it is |
//! |---|---|
//! | [`trial`] | the parameters of each workload, its outcome, and the descriptions of locks |
//! | [`record`] | measurements as lines of JSON |
//! | [`vm_trace`] | recorded and generated traffic of address spaces |
//! | [`stats`] | median and spread |

pub mod record;
pub mod stats;
pub mod trial;
pub mod vm_trace;
