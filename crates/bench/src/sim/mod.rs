//! The library's locks, compiled against `prim-sim`, on simulated machines.
//!
//! To add a workload: a [`Point`] that runs it, a [`Record`] that it yields, and a variant of
//! [`Line`](crate::report::Line) for that.

pub mod arr;
pub mod batch;
mod crew;
pub mod fuzz;
pub mod latency;
#[allow(dead_code, reason = "the numbers of workloads are told on hardware")]
#[path = "../loads/mod.rs"]
mod loads;
pub mod micro;
mod point;
pub mod rw;
mod subject;
pub mod sweep;

use prim_sim as prim; // See `loads`.

pub use point::{Point, Record, Run};
pub use prim_sim::heap::OnLines;
pub use prim_sim::{Failure, Machine, Placement, Setup};
pub use subject::{BASELINES, CONFIGURATIONS, LOCKS, Lock};
