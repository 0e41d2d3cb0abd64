//! What every range lock promises, tested in every configuration of the list and segment locks.
//!
//! A scenario gets a fresh lock and leaves nothing held, which is checked after each: the full range is lockable at
//! once and the listing is empty. None depends on timing; a hang is turned into a failure.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod cancelled;
mod exclusive;
mod left_behind;
mod many;
mod shared;
mod traps;
mod waiting;
