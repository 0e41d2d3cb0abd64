//! The library's locks, compiled against `prim-sim`, on simulated machines.
//!
//! To add a workload: a [`Point`] that runs it, a [`Record`] that it yields, and a variant of
//! [`Line`](crate::report::Line) for that.

pub mod arr;
pub mod batch;
pub mod fuzz;
pub mod latency;
mod point;
mod subject;
pub mod sweep;

pub use point::{Point, Record, Run};
pub use prim_sim::heap::OnLines;
pub use prim_sim::{Failure, Machine, Placement, Setup};
pub use subject::{BASELINES, LOCKS, Lock};
