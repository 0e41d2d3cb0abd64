//! Keys, and their positions in the range of a lock.

/// A key that has a position from 0 to `u64::MAX`, in the order of keys.
///
/// An update of a map locks the positions of its key and of neighbours. Different keys may have the same position:
/// updates of such keys then wait for each other, and the map stays correct. A text, for example, takes the position of
/// its first eight bytes.
///
/// ```
/// use spanlock_structures::ordered::{Key, RangeSkipSet};
///
/// /// An address and a port.
/// #[derive(PartialEq, Eq, PartialOrd, Ord)]
/// struct Endpoint(u32, u16);
///
/// // SAFETY: the derived order compares the address and then the port, and so do these numbers.
/// unsafe impl Key for Endpoint {
///     fn position(&self) -> u64 {
///         u64::from(self.0) << 16 | u64::from(self.1)
///     }
/// }
///
/// let known: RangeSkipSet<Endpoint> = RangeSkipSet::new();
/// assert!(known.insert(Endpoint(0x7f00_0001, 80)));
/// assert!(!known.insert(Endpoint(0x7f00_0001, 80)));
/// ```
///
/// # Safety
/// The order of the keys is total. If `a <= b` then `a.position() <= b.position()`. Neither the order nor the positions
/// of keys change while they are in a map. With a wrong position two updates may change the same links at the same
/// time, and a map may use memory that it has freed.
pub unsafe trait Key: Ord {
    /// The position of the key.
    fn position(&self) -> u64;
}

/// Types whose values fit into a position.
macro_rules! unsigned {
    ($($integer:ty)+) => {
        $(// SAFETY: the conversion keeps the order.
        unsafe impl Key for $integer {
            #[inline]
            fn position(&self) -> u64 {
                *self as u64
            }
        })+
    };
}

unsigned! { u8 u16 u32 u64 usize char bool }

/// Signed integers: the smallest `i64` is at position 0.
macro_rules! signed {
    ($($integer:ty)+) => {
        $(// SAFETY: the conversion to `i64` keeps the value, and to change the sign bit is to add 2^63.
        unsafe impl Key for $integer {
            #[inline]
            fn position(&self) -> u64 {
                (*self as i64).cast_unsigned() ^ (1 << 63)
            }
        })+
    };
}

signed! { i8 i16 i32 i64 isize }

/// The first eight bytes as a number, with zeros after the end.
#[inline]
fn prefix(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(first)
}

/// Texts and strings of bytes.
macro_rules! bytes {
    ($($text:ty)+) => {
        $(
        // SAFETY: the order is that of the bytes: the first difference decides, and a prefix comes first. The numbers
        // differ in the same byte, and zeros, the least of all bytes, stand after the end.
        unsafe impl Key for $text {
            #[inline]
            fn position(&self) -> u64 {
                prefix(self.as_ref())
            }
        })+
    };
}

bytes! { String Vec<u8> Box<[u8]> &[u8] &str }

// SAFETY: as for the other strings of bytes.
unsafe impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn position(&self) -> u64 {
        prefix(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    fn in_order<K: Key>(keys: &[K]) {
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].position() <= pair[1].position());
        }
    }

    #[test]
    fn positions_follow_the_order() {
        in_order(&[0, 1, u64::MAX - 1, u64::MAX]);
        in_order(&[i64::MIN, -1, 0, 1, i64::MAX]);
        in_order(&[i8::MIN, -1, 0, 1, i8::MAX]);
        in_order(&['a', 'z', 'ß', char::MAX]);
        in_order(&[
            "",
            "\0",
            "a",
            "a\0",
            "aaaaaaaa",
            "aaaaaaaab",
            "ab",
            "b",
            "ß",
        ]);
        in_order(&[[0, 1], [1, 0], [1, 255]]);
        assert_eq!((u64::MAX.position(), i64::MIN.position()), (u64::MAX, 0));
        assert_eq!("aaaaaaaab".position(), "aaaaaaaac".position());
    }
}
