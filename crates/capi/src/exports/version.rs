//! The version of the library.

use std::ffi::{CStr, c_char};

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("it has one zero, at its end"),
    };

/// The version of the library that the program runs with, such as "0.1.0". `SPANLOCK_VERSION` is that of the header
/// that the program was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn spanlock_version() -> *const c_char {
    VERSION.as_ptr()
}
