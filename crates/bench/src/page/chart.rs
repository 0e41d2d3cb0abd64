//! Curves as SVG: told apart by colour, marker and dashes, and named at their ends.
//!
//! No crate for charts that was looked at offers these together with colours that follow the reader's theme, a title for
//! each point, and text that stays text: so this draws lines and ticks itself, as markup like the rest of the page.

use maud::{Markup, html};

/// One value and how far it may be off, downwards and upwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Along the x axis.
    pub x: f64,
    /// Along the y axis.
    pub y: f64,
    /// The lower and the upper end of its error bar.
    pub bar: (f64, f64),
    /// What it is, in words.
    pub says: String,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What stands at its end.
    pub name: String,
    /// Which of the [`STYLES`] it has.
    pub style: usize,
    /// From left to right.
    pub marks: Vec<Mark>,
}

/// How far apart values are along the y axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0, evenly.
    Linear,
    /// By powers of ten.
    Powers,
}

/// All of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows, for those who do not see it.
    pub title: String,
    /// What is along the x axis.
    pub x_label: String,
    /// What is along the y axis.
    pub y_label: String,
    /// Places along the x axis with what stands there. They are drawn by powers of two, or evenly if one is 0 or less.
    pub ticks: Vec<(f64, String)>,
    /// How far apart values are along the y axis.
    pub scale: Scale,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// How many curves can be told apart.
pub const STYLES: usize = 10;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 270.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 40.0;
const LEFT: f64 = 46.0;
/// Width of a letter of a curve's name, and the least distance of two names.
const LETTER: f64 = 7.7;
const LINE: f64 = 13.0;

/// Along one axis.
struct Axis {
    from: f64,
    to: f64,
    /// Where these are drawn.
    pixels: (f64, f64),
    of: fn(f64) -> f64,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let (low, high) = ((self.of)(self.from), (self.of)(self.to));
        let part = if high > low {
            ((self.of)(value) - low) / (high - low)
        } else {
            0.5
        };
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }
}

/// The chart as an element of a page. `id` is the page's only one of that name.
#[must_use]
pub fn svg(chart: &Chart, id: &str) -> Markup {
    let marks = || chart.curves.iter().flat_map(|curve| &curve.marks);
    let letters = chart.curves.iter().map(|curve| curve.name.chars().count());
    let right = WIDTH - 22.0 - LETTER * letters.max().unwrap_or(0) as f64;
    let least_x = fold(chart.ticks.iter().map(|(x, _)| *x), f64::min);
    let x = Axis {
        from: least_x,
        to: fold(chart.ticks.iter().map(|(x, _)| *x), f64::max),
        pixels: (LEFT + 10.0, right - 4.0),
        of: if least_x > 0.0 { f64::log2 } else { |x| x },
    };
    let highest = fold(marks().map(|mark| mark.bar.1.max(mark.y)), f64::max);
    let lowest = fold(marks().map(|mark| mark.y), f64::min);
    let steps = match chart.scale {
        Scale::Linear => even_steps(highest),
        Scale::Powers => powers(lowest, highest),
    };
    let y = Axis {
        from: fold(steps.iter().copied(), f64::min),
        to: fold(steps.iter().copied(), f64::max).max(highest),
        pixels: (BOTTOM, TOP),
        of: match chart.scale {
            Scale::Linear => |y| y,
            Scale::Powers => |y| y.max(1e-9).log10(),
        },
    };
    html! {
        svg class="chart" role="img" aria-labelledby=(id) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) {
            title id=(id) { (chart.title) }
            @for step in &steps {
                (grid(LEFT, y.at(*step), right, y.at(*step)))
                text class="tick" x=(pixel(LEFT - 5.0)) y=(pixel(y.at(*step) + 4.0)) text-anchor="end" { (short(*step)) }
            }
            @for (at, name) in apart(&chart.ticks, &x) {
                (grid(at, BOTTOM, at, BOTTOM + 4.0))
                text class="tick" x=(pixel(at)) y=(pixel(BOTTOM + 17.0)) text-anchor="middle" { (name) }
            }
            text class="axis" x=(pixel(f64::midpoint(LEFT, right))) y=(pixel(HEIGHT - 6.0)) text-anchor="middle" { (chart.x_label) }
            text class="axis" x="4" y="14" { (chart.y_label) }
            @for curve in &chart.curves { (draw(curve, &x, &y)) }
            @for (curve, at) in names(&chart.curves, &y) {
                @if let Some(last) = curve.marks.last() {
                    path class=(format!("leader c{}", curve.style % STYLES))
                        d=(format!("M{} {}L{} {}", pixel(x.at(last.x) + 5.0), pixel(y.at(last.y)), pixel(right + 8.0), pixel(at))) {}
                    text class=(format!("name c{}", curve.style % STYLES)) x=(pixel(right + 11.0)) y=(pixel(at + 4.0)) { (curve.name) }
                }
            }
        }
    }
}

fn draw(curve: &Curve, x: &Axis, y: &Axis) -> Markup {
    // Bars of several curves at one place stand side by side.
    let aside = ((curve.style % STYLES) as f64 - (STYLES - 1) as f64 / 2.0) * 1.2;
    let place = |mark: &Mark| (x.at(mark.x) + aside, y.at(mark.y));
    let points: Vec<_> = curve.marks.iter().map(place).collect();
    let line: Vec<_> = points
        .iter()
        .map(|(x, y)| format!("{},{}", pixel(*x), pixel(*y)))
        .collect();
    let style = curve.style % STYLES;
    html! {
        g class=(format!("curve c{style} d{}", style % 4)) {
            polyline points=(line.join(" ")) {}
            @for (mark, (at, up)) in curve.marks.iter().zip(points) {
                @if mark.bar.1 > mark.bar.0 {
                    path class="bar" d=(format!("M{at:.1} {}V{}", pixel(y.at(mark.bar.0.max(y.from))), pixel(y.at(mark.bar.1)))) {}
                }
                path class="mark" d=(marker(style, at, up)) { title { (mark.says) } }
            }
        }
    }
}

/// Shapes around a point: circle, square, diamond, two triangles, plus, cross, bar, upright bar, hourglass.
fn marker(style: usize, x: f64, y: f64) -> String {
    let shape = [
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
    ][style % STYLES];
    format!("M{x:.1} {y:.1}{shape}")
}

fn grid(x: f64, y: f64, to_x: f64, to_y: f64) -> Markup {
    html! { path class="grid" d=(format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}")) {} }
}

/// Ticks that have room for their names, with the first and the last.
fn apart<'a>(ticks: &'a [(f64, String)], x: &Axis) -> Vec<(f64, &'a str)> {
    let mut placed: Vec<_> = ticks
        .iter()
        .map(|(at, name)| (x.at(*at), name.as_str()))
        .collect();
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

/// Where the names of curves stand: near their ends, and apart from each other.
fn names<'a>(curves: &'a [Curve], y: &Axis) -> Vec<(&'a Curve, f64)> {
    let end = |curve: &'a Curve| Some((curve, y.at(curve.marks.last()?.y)));
    let mut named: Vec<_> = curves.iter().filter_map(end).collect();
    named.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut free = TOP;
    for (_, at) in &mut named {
        *at = at.max(free);
        free = *at + LINE;
    }
    let mut free = BOTTOM + 6.0;
    for (_, at) in named.iter_mut().rev() {
        *at = at.min(free);
        free = *at - LINE;
    }
    named
}

/// From 0 up to a value and a little beyond: four to eight, each 1, 2 or 5 of some power of ten apart.
fn even_steps(highest: f64) -> Vec<f64> {
    if highest.is_nan() || highest <= 0.0 {
        return vec![0.0, 1.0];
    }
    let power = 10_f64.powf((highest / 4.0).log10().floor());
    let fits = |step: &f64| highest / step <= 6.0;
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|times| times * power)
        .into_iter()
        .find(fits);
    let step = step.unwrap_or(10.0 * power);
    let mut steps = vec![0.0];
    while steps.last().is_some_and(|last| *last < highest) {
        steps.push(step * steps.len() as f64);
    }
    steps
}

/// Powers of ten around some values.
fn powers(lowest: f64, highest: f64) -> Vec<f64> {
    let exponent = |value: f64| value.max(1.0).log10();
    let (from, to) = (exponent(lowest).floor(), exponent(highest).ceil());
    let mut steps = vec![10_f64.powf(from)];
    for step in 1..=(to - from).max(1.0) as i32 {
        steps.push(10_f64.powf(from) * 10_f64.powi(step));
    }
    steps
}

/// A number for an axis.
pub(super) fn short(value: f64) -> String {
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

fn pixel(value: f64) -> String {
    format!("{value:.1}")
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
        assert_eq!(powers(30.0, 2500.0), [10.0, 100.0, 1000.0, 10000.0]);
        assert_eq!(powers(0.0, 0.0), [1.0, 10.0]);
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
                says: String::new(),
            }],
        };
        let curves: Vec<_> = [5.0, 5.0, 5.1, 0.0, 0.0, 10.0, 10.0].map(curve).into();
        let axis = Axis {
            from: 0.0,
            to: 10.0,
            pixels: (BOTTOM, TOP),
            of: |y| y,
        };
        let placed = names(&curves, &axis);
        assert_eq!(placed.len(), curves.len());
        assert!(
            placed
                .windows(2)
                .all(|pair| pair[1].1 - pair[0].1 >= LINE - 1e-9)
        );
        let inside = |at: f64| (TOP..=BOTTOM + 6.0).contains(&at);
        assert!(placed.iter().all(|(_, at)| inside(*at)));
        let order: Vec<_> = placed
            .iter()
            .map(|(curve, _)| curve.name.as_str())
            .collect();
        assert_eq!(order[0], "10");
        assert_eq!(order[6], "0");
    }
}
