//! The library's locks, compiled against `prim-sim`, on simulated machines.

pub mod arr;
pub mod fuzz;
mod subject;

pub use prim_sim::{Failure, Machine, Placement, Setup};
pub use subject::{LOCKS, Lock};
