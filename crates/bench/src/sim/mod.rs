//! The library's locks, compiled against `prim-sim`, on simulated machines.

pub mod arr;
pub mod fuzz;
pub mod micro;
mod subject;

pub use subject::{LOCKS, Lock};
