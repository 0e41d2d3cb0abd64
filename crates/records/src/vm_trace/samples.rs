//! The recorded traces of this repository.

use crate::vm_trace::text::{Error, read};
use crate::vm_trace::trace::Trace;

/// A recorded trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Its name.
    pub name: &'static str,
    file: &'static [u8],
}

macro_rules! samples {
    ($($name:literal),* $(,)?) => {
        /// All of them.
        pub const ALL: &[Sample] = &[$(
            Sample { name: $name, file: include_bytes!(concat!("../../traces/", $name, ".gz")) },
        )*];
    };
}

samples!(
    "wc-2", "wc-4", "wc-16", "wr-2", "wr-4", "wr-16", "wrmem-2", "wrmem-4", "wrmem-16", "java",
    "node", "go", "rustc",
);

impl Sample {
    /// The trace.
    ///
    /// # Errors
    /// Never, as a test reads all of them.
    pub fn read(&self) -> Result<Trace, Error> {
        read(self.file)
    }
}
