//! ArrBench (P1 §7.1) on a simulated machine.

use super::subject::Subject;
use prim_sim::{Ended, Failure, Setup};

/// One point.
#[derive(Debug, Clone, Copy)]
pub struct Trial;

/// What it yielded.
#[derive(Debug, Clone)]
pub struct Outcome;

pub(super) fn run<S: Subject>(
    _make: impl Fn() -> S + Send + 'static,
    setup: &Setup,
    _trial: Trial,
) -> Result<Ended<Outcome>, Box<Failure>> {
    prim_sim::run(setup, || Outcome)
}
