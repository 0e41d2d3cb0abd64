//! One page of many measurements: the papers' figures beside ours, claims with verdicts, and what simulation is worth.
//!
//! ```text
//! lines of JSON -> Input -> Findings -+-> templates/page.html     the page
//!                                     +-> lines of JSON           what follows from all runs
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`input`] | lines of JSON, by where they were measured or simulated |
//! | [`figure`] | the papers' figures as data: panels and locks |
//! | [`findings`] | verdicts, who wins where, and how simulation compares |
//! | [`front`] | what was won and lost: a sentence and a picture for each kind of locks; how sure that is |
//! | [`score`] | how often each lock leads, and where the library's default is behind |
//! | [`validation`] | simulated runs against measured ones |
//! | [`parameters`] | what a simulated machine is made of, with the source of each number |
//! | [`grid`] | panels: numbers as rows of a table and curves of a chart |
//! | [`chart`] | curves as SVG |
//! | [`figures`] | what the project's front page shows: tables in Markdown, and a picture |
//! | [`render`] | the template of the page, and what it calls |
//!
//! To add a figure: a row in [`figure`]. To add a section: its words and tables in the template, and what it calls in
//! [`render`].

pub mod chart;
pub mod figure;
pub mod figures;
pub mod findings;
pub mod front;
pub mod grid;
pub mod input;
pub mod parameters;
pub mod render;
pub mod score;
pub mod validation;
