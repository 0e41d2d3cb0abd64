//! What programs ask of their address space: mapping calls and page faults, by thread and time.
//!
//! A [`Trace`] holds the areas that a program began with, every call and fault in one order, and the areas that the
//! kernel reported at the end. Replaying the events on an address space has to lead to these areas. Traces hold
//! numbers only: no path, no content.
//!
//! | module | what it is |
//! |---|---|
//! | [`trace`] | the types: areas, events, and what the numbers mean |
//! | [`text`] | reading traces: lines of text, compressed by gzip |
//! | [`model`] | Linux's rules for areas on a sorted map, one event at a time: what a trace must lead to |
//! | [`order`] | which events of other threads an event has to wait for, so that threads can replay side by side |
//! | [`metis`] | the pattern of the Metis programs for any number of threads |
//! | [`samples`] | the recorded traces of this repository |
//! | [`traffic`] | traces and patterns by name, as users choose them |

pub mod metis;
pub mod model;
pub mod order;
pub mod samples;
pub mod text;
pub mod trace;
pub mod traffic;

pub use trace::{Area, Backing, Call, Event, Trace};
