//! The library's locks, compiled against `prim-sim`, on simulated machines.
//!
//! To add a workload: a [`Point`] that runs it, a [`Record`] that it yields, and a variant of
//! [`Line`](crate::report::Line) for that.

pub mod arr;
pub mod fuzz;
mod point;
mod subject;

pub use point::{Point, Record, Run};
pub use prim_sim::{Failure, Machine, Placement, Setup};
pub use subject::{CONFIGURATIONS, LOCKS, Lock};
