//! Shapes of microbenchmarks that are commonly told.

use super::Claim;

pub(super) static CLAIMS: &[Claim] = &[];
