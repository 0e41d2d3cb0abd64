//! Curves as SVG. They differ in colour, marker and dashes, and have their names at their ends.
//!
//! ```text
//! unit
//!  |        o--- a      an axis of round steps; a curve with a marker and an error bar at each point;
//!  |   o---'  ,+ b      a leader from the last point to the curve's name
//!  |  '   +--'
//!  +--------------- across
//! ```
//!
//! No crate for charts offers these together with colours that follow the reader's theme, a title for each point, and
//! text that stays text. The SVG is markup like the rest of the page.

use askama::Template;

/// A point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Along the x axis.
    pub x: f64,
    /// Along the y axis.
    pub y: f64,
    /// The lower and the upper end of its error bar.
    pub bar: (f64, f64),
    /// What the reader sees who points at it.
    pub label: String,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name, shown at its end.
    pub name: String,
    /// Which of the [`STYLES`] it has.
    pub style: usize,
    /// From left to right.
    pub marks: Vec<Mark>,
}

/// The scale of the y axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from 0.
    Linear,
    /// Logarithmic, by powers of ten.
    Powers,
}

/// All of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// A description for readers who do not see it.
    pub title: String,
    /// What is along the x axis.
    pub x_label: &'static str,
    /// What is along the y axis.
    pub y_label: String,
    /// Ticks of the x axis and their names. The axis is logarithmic, or linear if a tick is 0 or less.
    pub ticks: Vec<(f64, String)>,
    /// The scale of the y axis.
    pub scale: Scale,
    /// A value at which the chart has a line from side to side.
    pub level: Option<f64>,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// How many curves a reader can distinguish.
pub const STYLES: usize = 10;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 270.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 40.0;
const LEFT: f64 = 46.0;
/// Width of a letter of a curve's name, and the least distance of two names.
const LETTER: f64 = 7.7;
const LINE: f64 = 13.0;

/// An axis: the values at its ends, and the pixels there.
struct Axis {
    values: (f64, f64),
    pixels: (f64, f64),
    /// The identity, or a logarithm.
    of: fn(f64) -> f64,
}

impl Axis {
    /// The pixel of a value.
    fn at(&self, value: f64) -> f64 {
        let (low, high) = ((self.of)(self.values.0), (self.of)(self.values.1));
        let part = if high > low {
            ((self.of)(value) - low) / (high - low)
        } else {
            0.5
        };
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }
}

/// A chart with the places of all that is drawn.
#[derive(Template)]
#[template(path = "chart.svg")]
struct Drawing<'a> {
    chart: &'a Chart,
    id: &'a str,
    /// Where the grid ends.
    right: f64,
    /// Ticks and their names.
    across: Vec<(f64, &'a str)>,
    up: Vec<(f64, String)>,
    level: Option<f64>,
    curves: Vec<(&'a Curve, Vec<Point<'a>>)>,
    /// The curves' names: the end of a curve, and the height of its name.
    names: Vec<(&'a Curve, (f64, f64), f64)>,
}

/// A mark, where it is, and the ends of its error bar.
type Point<'a> = (&'a Mark, (f64, f64), (f64, f64));

impl Chart {
    /// As an element of a page, with an id that no other element has.
    #[must_use]
    pub fn svg(&self, id: &str) -> String {
        let marks = || self.curves.iter().flat_map(|curve| &curve.marks);
        let letters = self.curves.iter().map(|curve| curve.name.chars().count());
        let right = WIDTH - 22.0 - LETTER * letters.max().unwrap_or(0) as f64;
        let ticks = || self.ticks.iter().map(|(x, _)| *x);
        let least = fold(ticks(), f64::min);
        let x = Axis {
            values: (least, fold(ticks(), f64::max)),
            pixels: (LEFT + 10.0, right - 4.0),
            of: if least > 0.0 { f64::log2 } else { |x| x },
        };
        let high = marks().map(|mark| mark.bar.1.max(mark.y));
        let highest = fold(high.chain(self.level), f64::max);
        let lowest = fold(marks().map(|mark| mark.y).chain(self.level), f64::min);
        let (steps, of): (Vec<_>, fn(f64) -> f64) = match self.scale {
            Scale::Linear => (even_steps(highest), |y| y),
            Scale::Powers => (powers(lowest, highest, self.level), |y| y.max(1e-9).log10()),
        };
        let (foot, head) = (steps[0], steps[steps.len() - 1]);
        let y = Axis {
            values: (foot, head.max(highest)),
            pixels: (BOTTOM, TOP),
            of,
        };
        let curves = self.curves.iter().map(|curve| {
            // Error bars of several curves at one x are side by side.
            let aside = (curve.style as f64 - (STYLES - 1) as f64 / 2.0) * 1.2;
            let points = curve.marks.iter().map(|mark| {
                let (low, high) = mark.bar;
                let bar = (y.at(low.max(foot)), y.at(high));
                (mark, (x.at(mark.x) + aside, y.at(mark.y)), bar)
            });
            (curve, points.collect())
        });
        let up = steps.iter().map(|step| (y.at(*step), short(*step)));
        let drawing = Drawing {
            chart: self,
            id,
            right,
            across: apart(&self.ticks, &x),
            up: up.collect(),
            level: self.level.map(|value| y.at(value)),
            curves: curves.collect(),
            names: names(&self.curves, &x, &y),
        };
        drawing.to_string()
    }
}

mod filters {
    use std::fmt::Display;

    /// A place on the drawing.
    #[askama::filter_fn]
    pub(super) fn px(value: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        let text = format!("{value:.1}");
        Ok(text)
    }
}

/// Shapes around a point: circle, square, diamond, two triangles, plus, cross, bar, upright bar, hourglass.
const SHAPES: [&str; STYLES] = [
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    "m-3.2 -3.2h6.4v6.4h-6.4z",
    "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",
    "m0 -4.2l4.2 7.4h-8.4z",
    "m0 4.2l4.2 -7.4h-8.4z",
    "m-1.2 -4.2h2.4v3h3v2.4h-3v3h-2.4v-3h-3v-2.4h3z",
    "m-4 -2.6l1.4 -1.4l2.6 2.6l2.6 -2.6l1.4 1.4l-2.6 2.6l2.6 2.6l-1.4 1.4l-2.6 -2.6l-2.6 2.6l-1.4 -1.4l2.6 -2.6z",
    "m-4.5 -1.5h9v3h-9z",
    "m-1.5 -4.5h3v9h-3z",
    "m-3.6 -3.6h7.2l-7.2 7.2h7.2z",
];

/// The ticks with room for their names, the last among them.
fn apart<'a>(ticks: &'a [(f64, String)], x: &Axis) -> Vec<(f64, &'a str)> {
    let placed = ticks.iter().map(|(at, name)| (x.at(*at), name.as_str()));
    let mut placed: Vec<_> = placed.collect();
    placed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some(last) = placed.pop() else {
        return placed;
    };
    let room = |name: &str| name.len() as f64 * LETTER + 3.0;
    let mut kept: Vec<(f64, &str)> = Vec::new();
    for (at, name) in placed {
        let before = kept.last().map_or(f64::NEG_INFINITY, |(at, _)| *at);
        if at - before >= room(name) && last.0 - at >= room(last.1) {
            kept.push((at, name));
        }
    }
    kept.push(last);
    kept
}

/// The heights of the curves' names: near the curves' ends, and apart from each other.
fn names<'a>(curves: &'a [Curve], x: &Axis, y: &Axis) -> Vec<(&'a Curve, (f64, f64), f64)> {
    let end = |curve: &'a Curve| {
        let last = curve.marks.last()?;
        Some((curve, (x.at(last.x), y.at(last.y)), y.at(last.y)))
    };
    let mut named: Vec<_> = curves.iter().filter_map(end).collect();
    named.sort_by(|(.., a), (.., b)| a.total_cmp(b));
    let mut free = TOP;
    for (.., at) in &mut named {
        *at = at.max(free);
        free = *at + LINE;
    }
    let mut free = BOTTOM + 6.0;
    for (.., at) in named.iter_mut().rev() {
        *at = at.min(free);
        free = *at - LINE;
    }
    named
}

/// Steps from 0 to a value or a little beyond. Their distance is 1, 2 or 5 times a power of ten.
fn even_steps(highest: f64) -> Vec<f64> {
    if highest.is_nan() || highest <= 0.0 {
        return vec![0.0, 1.0];
    }
    let power = 10_f64.powf((highest / 4.0).log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|times| times * power);
    let fitting = steps.into_iter().find(|step| highest / step <= 6.0);
    let step = fitting.unwrap_or(10.0 * power);
    let mut steps = vec![0.0];
    while steps.last().is_some_and(|last| *last < highest) {
        steps.push(step * steps.len() as f64);
    }
    steps
}

/// Powers of ten around some values. What is less than 1 is as good as 0, unless values are compared with a level.
fn powers(lowest: f64, highest: f64, level: Option<f64>) -> Vec<f64> {
    let least = level.map_or(1.0, |level| level / 1000.0);
    let exponent = |value: f64| value.max(least).log10();
    let (from, to) = (exponent(lowest).floor(), exponent(highest).ceil());
    let steps = 0..=(to - from).max(1.0) as i32;
    steps
        .map(|step| 10_f64.powf(from) * 10_f64.powi(step))
        .collect()
}

/// A number for an axis.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", trimmed(v / 1e9)),
        v if v >= 1e6 => format!("{} M", trimmed(v / 1e6)),
        v if v >= 1e4 => format!("{} k", trimmed(v / 1e3)),
        v => trimmed(v),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

fn fold(values: impl Iterator<Item = f64>, of: fn(f64, f64) -> f64) -> f64 {
    values.reduce(of).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::{Axis, BOTTOM, Curve, LINE, Mark, TOP, even_steps, names, powers, short};

    #[test]
    fn steps_are_round_and_reach_the_highest() {
        assert_eq!(even_steps(4.3), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(even_steps(0.0), [0.0, 1.0]);
        assert_eq!(even_steps(f64::NAN), [0.0, 1.0]);
        for highest in [1e-3, 0.7, 9.99, 10.0, 123.0, 7e8] {
            let steps = even_steps(highest);
            let last = *steps.last().unwrap();
            assert!((highest..=2.0 * highest).contains(&last), "{steps:?}");
            assert!((4..=8).contains(&steps.len()), "{steps:?}");
        }
        assert_eq!(powers(30.0, 2500.0, None), [10.0, 100.0, 1000.0, 10000.0]);
        assert_eq!(powers(0.0, 0.0, None), [1.0, 10.0]);
        assert_eq!(powers(0.3, 20.0, Some(1.0)), [0.1, 1.0, 10.0, 100.0]);
        let names = [0.0, 0.05, 250.0, 12_000.0, 3e6, 2.5e9].map(short);
        assert_eq!(names, ["0", "0.05", "250", "12 k", "3 M", "2.5 G"]);
    }

    #[test]
    fn names_are_apart_and_inside() {
        let curve = |y: f64| Curve {
            name: y.to_string(),
            style: 0,
            marks: vec![Mark {
                x: 1.0,
                y,
                bar: (y, y),
                label: String::new(),
            }],
        };
        let curves: Vec<_> = [5.0, 5.0, 5.1, 0.0, 0.0, 10.0, 10.0].map(curve).into();
        let axis = Axis {
            values: (0.0, 10.0),
            pixels: (BOTTOM, TOP),
            of: |y| y,
        };
        let placed = names(&curves, &axis, &axis);
        assert_eq!(placed.len(), curves.len());
        assert!(
            placed
                .windows(2)
                .all(|pair| pair[1].2 - pair[0].2 >= LINE - 1e-9)
        );
        let inside = |at: f64| (TOP..=BOTTOM + 6.0).contains(&at);
        assert!(placed.iter().all(|(.., at)| inside(*at)));
        let order: Vec<_> = placed
            .iter()
            .map(|(curve, ..)| curve.name.as_str())
            .collect();
        assert_eq!(order[0], "10");
        assert_eq!(order[6], "0");
    }
}
