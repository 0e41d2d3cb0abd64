//! Microbenchmarks of the simulated machine.
