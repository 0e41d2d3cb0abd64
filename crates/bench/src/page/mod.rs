//! One page of many measurements: figures of the papers beside ours, claims with verdicts, and what simulation is worth.
//!
//! | module | what it is |
//! |---|---|
//! | [`input`] | lines of JSON, by where they were measured or simulated |
//! | [`figure`] | the papers' figures: which panels and locks are in each |
//! | [`grid`] | panels as tables, and what charts are made of |
//! | [`chart`] | curves as SVG |
//! | [`findings`] | what follows: verdicts, who wins, validation |
//! | [`score`] | which lock leads how often, and where the library's is behind |
//! | [`validation`] | simulated runs against real ones |
//! | [`parameters`] | what a simulated machine is made of, with the source of each number |
//! | [`html`], [`markdown`] | all of it, for a browser and as text |

pub mod chart;
pub mod figure;
pub mod findings;
pub mod grid;
pub mod html;
pub mod input;
pub mod markdown;
pub mod parameters;
pub mod score;
pub mod validation;
