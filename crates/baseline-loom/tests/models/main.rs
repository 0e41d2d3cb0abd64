//! Models of the baselines, as those of the library in `spanlock-loom`, whose world and whose mutants' machinery these use.

extern crate spanlock as spanlock_loom;

mod bitmap;
mod bravo;
mod mutants;
#[path = "../../../spanlock-loom/tests/models/mutation.rs"]
mod mutation;
mod pnova;
mod song;
mod tree;
#[allow(dead_code, reason = "the library's own models use the rest")]
#[path = "../../../spanlock-loom/tests/models/world.rs"]
mod world;
