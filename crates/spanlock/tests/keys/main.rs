//! Range locks over keys.

use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

#[path = "../tasks/pool.rs"]
#[allow(dead_code, reason = "each test crate uses its part")]
mod pool;

mod basics;
mod foreign;
mod going_on;
mod living;
mod space;
mod truth;
mod wrapped;
