//! The store from outside: a random sequence of operations does what a model does, on every lock; and what users rely
//! on, case by case.
#![cfg(target_os = "linux")]

mod common;

use spanlock::range as spanlock_range;
use spanlock_structures::store;
use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

mod cases;
mod crash;
mod crashes;
mod damage;
mod damaged_images;
mod forged;
mod full;
mod killed;
mod model;
mod recovered;
mod threads;
