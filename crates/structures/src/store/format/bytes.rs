//! Numbers in bytes, and checksums.

/// The number that begins at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The number that begins at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Overwrites what begins at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// CRC32C of numbers followed by bytes.
pub(crate) fn checksum(numbers: &[u64], bytes: &[u8]) -> u32 {
    let seed = numbers.iter().fold(0, |sum, number| {
        crc32c::crc32c_append(sum, &number.to_le_bytes())
    });
    crc32c::crc32c_append(seed, bytes)
}

/// Takes numbers and bytes off the front of a slice; `None` when it is too short.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes(4).map(|bytes| u32_at(bytes, 0))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes(8).map(|bytes| u64_at(bytes, 0))
    }

    /// Bytes whose number, at most 255, comes first.
    pub(crate) fn short(&mut self) -> Option<&'a [u8]> {
        let count = self.u8()?;
        self.bytes(usize::from(count))
    }
}
