//! Range locks over keys.

use spanlock_testkit::exact::Exact;

#[global_allocator]
static HEAP: Exact = Exact;

mod basics;
mod foreign;
mod space;
mod truth;
