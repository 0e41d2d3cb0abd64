//! The exported functions: a file for each section of the header. `types` is what several of them share.

pub mod key_lock;
pub mod key_lock_holding;
pub mod owner;
pub mod owner_holding;
pub mod range_lock;
pub mod range_lock_holders;
pub mod range_lock_many;
pub mod range_lock_submit;
pub mod rwlock;
pub mod types;
pub mod version;
