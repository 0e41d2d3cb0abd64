//! What tests share. No published package depends on this crate, except as a development dependency.
//!
//! | module | content |
//! |---|---|
//! | `documents` | the examples of the documents, as doctests |
//! | [`edges`] | the names of protocol edges, and where comments cite them |
//! | [`exclusion`] | the oracle: panics when holders coexist that exclude each other |
//! | [`mutation`] | weakens one named edge at a time and expects a model to fail |
//! | [`watchdog`] | ends a process whose work gets nowhere |

mod documents;
pub mod edges;
pub mod exclusion;
pub mod mutation;
pub mod watchdog;

/// The number in an environment variable, or `default`.
///
/// # Panics
/// When it is not a number.
#[must_use]
pub fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| {
        let number = text.parse();
        number.unwrap_or_else(|_| panic!("{variable} is {text:?}: expected a whole number"))
    })
}
