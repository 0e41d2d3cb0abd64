//! Panels: the numbers of several locks in one place, as rows of a table and as curves of a chart.
//!
//! ```text
//! Panel: full range, 80 % reads
//!   Grid: measured                     Grid: simulated
//!     lock     | 1     2     4           lock     | 1     2     4
//!     list-rw  | 4.0   7.9   15.1        list-rw  | 8.1   ...
//! ```

use super::chart::{Chart, Curve, Mark, STYLES, Scale};
use super::figure::{styled, words};
use super::findings::OfFigure;
use super::input::{Input, Site};
use crate::compare::{Figure, figures};
use crate::table::measured;
use spanlock_records::record::{self, plural};
use spanlock_records::stats::{Summary, distinct, ends};
use spanlock_records::trial::times::AcquireTimes;

/// A panel of a figure: a grid for each place where it ran.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// The grids.
    pub grids: Vec<Grid>,
    /// The charts as SVG, each with its caption. A grid without any of the figure's locks has none.
    pub charts: Vec<(String, String)>,
}

/// A row for each lock, and a column for each place on the x axis.
#[derive(Debug, Clone)]
pub struct Grid {
    /// What distinguishes it from the others of its panel.
    pub name: String,
    /// What is along the x axis.
    pub across: &'static str,
    /// What is measured.
    pub unit: &'static Unit,
    /// The columns' names, from least to most.
    pub columns: Vec<String>,
    /// Each lock's cells.
    pub rows: Vec<(String, Vec<Option<Summary>>)>,
}

/// What is measured.
#[derive(Debug)]
pub struct Unit {
    /// In tables.
    name: &'static str,
    /// At axes.
    axis: &'static str,
    /// Of a number in a table: what it is divided by, and its decimals.
    number: (f64, usize),
    /// The scale; where there is none, [`Scale::Linear`] unless the lowest value would be lost.
    scale: Option<Scale>,
}

/// Operations per second.
static OPERATIONS: Unit = Unit {
    name: "million operations per second",
    axis: "operations per second",
    number: (1e6, 3),
    scale: None,
};

/// Nanoseconds.
static NANOSECONDS: Unit = Unit {
    name: "nanoseconds",
    axis: "nanoseconds",
    number: (1.0, 0),
    scale: Some(Scale::Powers),
};

/// On a linear axis a value is lost that is less than the highest by more than this factor.
const LOST: f64 = 20.0;

impl Unit {
    /// A value of it, for people.
    fn text(&self, value: Option<Summary>) -> String {
        let (one, decimals) = self.number;
        measured(value, one, decimals).replace('%', " %")
    }

    /// The scale for some values.
    fn scale(&self, curves: &[Curve]) -> Scale {
        let marks = curves.iter().flat_map(|curve| &curve.marks);
        let fitting = match ends(marks.map(|mark| mark.y)) {
            Some((least, most)) if most > LOST * least => Scale::Powers,
            _ => Scale::Linear,
        };
        self.scale.unwrap_or(fitting)
    }
}

/// A column: a number on the x axis, and the panel and number of threads whose runs are in it.
type Column = (usize, record::Panel, usize);

/// The panels of a figure. Along the x axis are threads, or of interference the locks in the pool.
#[must_use]
pub fn of_figure(input: &Input, of: &OfFigure) -> Vec<Panel> {
    let cells = input.sites.iter().flat_map(|site| site.dataset.cells());
    let cells = distinct(cells.filter(|(panel, _)| of.panels.contains(panel)));
    let columns = cells
        .into_iter()
        .map(|(panel, count)| match panel.number("pool") {
            Some(pool) => (plural(count), (pool, panel, count)),
            None => (panel.to_string(), (count, panel, count)),
        });
    let columns: Vec<(String, Column)> = columns.collect();
    let names = distinct(columns.iter().map(|(name, _)| name.clone()));
    let panels = names.into_iter().enumerate().map(|(at, name)| {
        let here = columns.iter().filter(|(of, _)| *of == name);
        let mut here: Vec<Column> = here.map(|(_, column)| *column).collect();
        here.sort_unstable_by_key(|(x, ..)| *x);
        let grids = input.sites.iter().map(|site| Grid::of(site, &here));
        let grids = grids.filter(|grid| !grid.rows.is_empty()).collect();
        let title = format!("{}, {name}", of.figure.title);
        let id = format!("{}-{at}", of.figure.anchor());
        let locks = styled(of.figure.locks());
        Panel::new(name, grids, &title, &id, |_| locks.clone())
    });
    panels.collect()
}

/// One panel at a site: a curve for each lock that ran in it, as far as curves can be told apart.
#[must_use]
pub fn of_panel(site: &Site, panel: record::Panel) -> Panel {
    let columns = site.dataset.threads(panel).into_iter();
    let columns: Vec<Column> = columns.map(|count| (count, panel, count)).collect();
    let grid = Grid::of(site, &columns);
    let name = panel.to_string();
    Panel::new(
        name.clone(),
        vec![grid],
        &name,
        &words(&name),
        Grid::in_order,
    )
}

/// The percentiles of acquisition times at a site: a panel for each kind of acquisitions, with the largest of each
/// percentile over repeats.
#[must_use]
pub fn of_percentiles(site: &Site) -> Vec<Panel> {
    let all = &site.distributions;
    let of_kind = |(at, kind): (usize, &str)| {
        let here = || all.iter().filter(|one| one.of == kind);
        let locks = distinct(here().map(|one| one.lock.as_str())).into_iter();
        let rows = locks.map(|lock| {
            let times = here().filter(|one| one.lock == lock).map(|one| one.times);
            let cells = AcquireTimes::worst(times).map(|time| Summary::of([time as f64]));
            (lock.to_owned(), cells.to_vec())
        });
        let grid = Grid {
            name: kind.to_owned(),
            across: "percentile",
            unit: &NANOSECONDS,
            columns: AcquireTimes::COLUMNS.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        };
        let title = format!("Percentiles of acquisition times, {}", site.platform);
        let id = words(&format!("latency {} {at}", site.platform));
        Panel::new(
            kind.to_owned(),
            vec![grid],
            &title,
            &id,
            Grid::distinguishable,
        )
    };
    let kinds = distinct(all.iter().map(|one| one.of.as_str()));
    kinds.into_iter().enumerate().map(of_kind).collect()
}

impl Panel {
    /// With a chart for each grid that has any of these locks. All have one scale, so that a reader can compare them.
    fn new(
        name: String,
        grids: Vec<Grid>,
        title: &str,
        id: &str,
        locks: impl Fn(&Grid) -> Vec<(usize, &str)>,
    ) -> Self {
        let drawn = grids.iter().map(|grid| (grid, grid.curves(&locks(grid))));
        let drawn: Vec<_> = drawn.filter(|(_, curves)| !curves.is_empty()).collect();
        let mut scales = drawn.iter().map(|(grid, curves)| grid.unit.scale(curves));
        let scale = scales
            .find(|scale| *scale == Scale::Powers)
            .unwrap_or(Scale::Linear);
        let charts = drawn.into_iter().enumerate().map(|(at, (grid, curves))| {
            let chart = grid.chart(title, scale, curves);
            (chart.svg(&format!("{id}-{at}")), grid.name.clone())
        });
        let charts = charts.collect();
        Self {
            name,
            grids,
            charts,
        }
    }
}

impl Grid {
    /// A row for each lock that ran in these columns at a site.
    fn of(site: &Site, columns: &[Column]) -> Self {
        let ran = |column: &&Column| site.dataset.threads(column.1).contains(&column.2);
        let columns: Vec<_> = columns.iter().filter(ran).collect();
        let first = columns.first().map(|(_, panel, _)| panel);
        let across = match first.and_then(|panel| panel.number("pool")) {
            Some(_) => "locks in the pool",
            None => "threads",
        };
        let is_longest = first.is_some_and(|panel| panel.workload() == "longest");
        let unit = if is_longest {
            &NANOSECONDS
        } else {
            &OPERATIONS
        };
        let locks = columns
            .iter()
            .flat_map(|(_, panel, _)| site.dataset.locks(*panel));
        let rows = distinct(locks).into_iter().map(|lock| {
            let cells = columns
                .iter()
                .map(|(_, panel, count)| site.dataset.throughput(*panel, lock, *count));
            (lock.to_owned(), cells.collect())
        });
        Self {
            name: site.platform.to_string(),
            across,
            unit,
            columns: columns.iter().map(|(x, ..)| x.to_string()).collect(),
            rows: rows.collect(),
        }
    }

    /// Where the columns are on the x axis, and what they are: a number is followed by what it counts.
    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let columns = self.columns.iter().enumerate();
        columns.map(|(at, name)| match name.parse() {
            Ok(x) => (x, format!("{name} {}", self.across)),
            Err(_) => (at as f64, name.clone()),
        })
    }

    /// Curves of these locks, each with its style.
    fn curves(&self, locks: &[(usize, &str)]) -> Vec<Curve> {
        let curve = |&(style, name): &(usize, &str)| {
            let (_, cells) = self.rows.iter().find(|(lock, _)| lock == name)?;
            let marks = self.ticks().zip(cells).filter_map(|((x, column), cell)| {
                let value = (*cell)?;
                let (number, unit) = (self.unit.text(*cell), self.unit.name);
                let label = format!("{name}, {column}: {number} {unit}");
                Some(Mark {
                    x,
                    y: value.median,
                    bar: value.bounds(),
                    label,
                })
            });
            let (name, marks) = (name.to_owned(), marks.collect::<Vec<_>>());
            (!marks.is_empty()).then_some(Curve { name, style, marks })
        };
        locks.iter().filter_map(curve).collect()
    }

    fn chart(&self, title: &str, scale: Scale, curves: Vec<Curve>) -> Chart {
        let (name, across) = (&self.name, self.across);
        let names: Vec<_> = curves.iter().map(|curve| curve.name.as_str()).collect();
        let names = names.join(", ");
        let y_label = match scale {
            Scale::Linear => self.unit.axis.to_owned(),
            Scale::Powers => format!("{}, by powers of ten", self.unit.axis),
        };
        let ticks = self.ticks().map(|(x, _)| x);
        Chart {
            title: format!(
                "{title}, {name}. {y_label} by {across}: a curve for each of {names}. \
                 The numbers are in the table below."
            ),
            x_label: across,
            y_label,
            ticks: ticks.zip(self.columns.iter().cloned()).collect(),
            scale,
            level: None,
            curves,
        }
    }

    /// The locks that figures have, one of each style; where no figure has any, as many as there are styles.
    fn distinguishable(&self) -> Vec<(usize, &str)> {
        let is_here = |name: &&str| self.rows.iter().any(|(lock, _)| lock == name);
        let known = distinct(figures().flat_map(Figure::locks).filter(is_here));
        let mut taken = [false; STYLES];
        let mut locks = styled(known.into_iter());
        locks.retain(|(style, _)| !std::mem::replace(&mut taken[*style], true));
        if locks.is_empty() {
            locks = self.in_order();
        }
        locks
    }

    /// The locks in the order in which they ran, as many as there are styles.
    fn in_order(&self) -> Vec<(usize, &str)> {
        (0..STYLES)
            .zip(self.rows.iter().map(|(lock, _)| lock.as_str()))
            .collect()
    }

    /// What its table shows.
    #[must_use]
    pub fn caption(&self) -> String {
        format!("{}: {} by {}", self.name, self.unit.name, self.across)
    }

    /// The rows of its table: all locks, also those without a curve.
    pub fn cells(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        let text = |cell: &Option<Summary>| self.unit.text(*cell);
        let rows = self.rows.iter();
        rows.map(move |(lock, cells)| (lock.as_str(), cells.iter().map(text).collect()))
    }
}
