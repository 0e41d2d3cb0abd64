//! The command line of Spanlock.

fn main() {}
