//! The range locks that P1 compares with, written anew from its description (§3).
//!
//! They say `prim`, as the library does, so that the same source can be compiled against other platforms.

mod interval_tree;
mod spin_lock;
mod tree_lock;

pub use tree_lock::{KernelRw, LustreEx, Token};
