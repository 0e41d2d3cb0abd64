//! Damaged stores: a clear error, never a panic, and never other data than was written.
