//! Names that nobody else has.

use rustix::rand::{GetRandomFlags, getrandom};

/// A new one.
pub(crate) fn fresh() -> u128 {
    let mut bytes = [0; 16];
    let mut left = &mut bytes[..];
    while !left.is_empty() {
        let got = getrandom(&mut *left, GetRandomFlags::empty());
        left = &mut left[got.expect("the kernel has randomness")..];
    }
    u128::from_ne_bytes(bytes)
}
