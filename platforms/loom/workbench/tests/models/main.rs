//! Models of the baselines: the scenarios of `spanlock-testkit-loom`, as on the locks of the library.

mod mutants;
mod range;
mod rw;
