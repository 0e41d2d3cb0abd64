//! A panel in one place: a row for each lock, a column for each number of threads.

use super::chart::{Chart, Curve, Mark, STYLES, Scale};
use super::figure::{Axis, FIGURES, Figure, style};
use super::findings::Shown;
use super::input::{Input, Stage, threads};
use crate::compare::{Kind, Panel, distinct};
use crate::rw::Load;
use crate::stats::Summary;
use crate::times::AcquireTimes;

/// A table, and what a chart is made of.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Where it was measured.
    pub place: String,
    /// What columns tell apart.
    pub across: &'static str,
    /// What is measured.
    pub unit: Unit,
    /// The columns, from least to most.
    pub columns: Vec<(f64, String)>,
    /// Each lock's cells.
    pub rows: Vec<(String, Vec<Option<Summary>>)>,
}

/// What is so many times less than the highest would lie on the axis.
const LOST: f64 = 20.0;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Operations per second.
    Operations,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// A value of it, for people.
    #[must_use]
    pub fn told(self, value: &Summary) -> String {
        let median = match self {
            Self::Operations => format!("{:.3}", value.median / 1e6),
            Self::Nanoseconds => format!("{:.0}", value.median),
        };
        match value.percent() {
            Some(percent) => format!("{median} ±{percent:.0} %"),
            None => median,
        }
    }

    /// What tables have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operations => "million operations per second",
            Self::Nanoseconds => "nanoseconds",
        }
    }

    /// What axes have.
    const fn label(self, scale: Scale) -> &'static str {
        match (self, scale) {
            (Self::Operations, Scale::Linear) => "operations per second",
            (Self::Operations, Scale::Powers) => "operations per second, by powers of ten",
            (Self::Nanoseconds, _) => "nanoseconds, by powers of ten",
        }
    }

    /// Evenly, unless the lowest would be lost on the axis.
    fn scale(self, curves: &[Curve]) -> Scale {
        let values = || {
            curves
                .iter()
                .flat_map(|curve| &curve.marks)
                .map(|mark| mark.y)
        };
        let (least, most) = (values().reduce(f64::min), values().reduce(f64::max));
        let is_lost = least
            .zip(most)
            .is_some_and(|(least, most)| most > LOST * least);
        match self {
            Self::Operations if !is_lost => Scale::Linear,
            Self::Operations | Self::Nanoseconds => Scale::Powers,
        }
    }
}

/// What is in a figure: for each panel its name, and a grid for each place.
#[must_use]
pub fn grids(input: &Input, shown: &Shown) -> Vec<(String, Vec<Grid>)> {
    let in_all = |of: &dyn Fn(&Stage) -> Option<Grid>| input.stages.iter().filter_map(of).collect();
    match shown.figure.axis {
        Axis::Threads => {
            let panels = shown.panels.iter();
            panels
                .map(|&panel| (panel.to_string(), in_all(&|stage| by_threads(stage, panel))))
                .collect()
        }
        Axis::Pool => {
            let all = |stage: &Stage| {
                let panels = shown.panels.iter();
                panels
                    .flat_map(|panel| stage.field.threads(*panel))
                    .collect::<Vec<_>>()
            };
            let counts = distinct(input.stages.iter().flat_map(all));
            let row = |count| {
                (
                    threads(count),
                    in_all(&|stage| by_pool(stage, shown, count)),
                )
            };
            counts.into_iter().map(row).collect()
        }
    }
}

fn by_threads(stage: &Stage, panel: Panel) -> Option<Grid> {
    let mut counts = stage.field.threads(panel);
    counts.sort_unstable();
    let column = |count: &usize| (*count as f64, count.to_string());
    let cell = |lock: &str, count: &usize| stage.field.throughput(panel, lock, *count);
    let row = |lock: &str| {
        (
            lock.to_owned(),
            counts.iter().map(|count| cell(lock, count)).collect(),
        )
    };
    let grid = Grid {
        place: stage.ground.to_string(),
        across: "threads",
        unit: match panel.kind() {
            Kind::Latency => Unit::Nanoseconds,
            _ => Unit::Operations,
        },
        columns: counts.iter().map(column).collect(),
        rows: stage.field.locks(panel).into_iter().map(row).collect(),
    };
    (!grid.rows.is_empty()).then_some(grid)
}

fn by_pool(stage: &Stage, shown: &Shown, count: usize) -> Option<Grid> {
    let pool = |panel: &Panel| match panel {
        Panel::Rw(Load::Interference { pool }) => Some((*pool, *panel)),
        _ => None,
    };
    let mut pools: Vec<_> = shown.panels.iter().filter_map(pool).collect();
    pools.retain(|(_, panel)| stage.field.threads(*panel).contains(&count));
    pools.sort_unstable_by_key(|(pool, _)| *pool);
    let locks = distinct(
        pools
            .iter()
            .flat_map(|(_, panel)| stage.field.locks(*panel)),
    );
    let row = |lock: &str| {
        let cells = pools
            .iter()
            .map(|(_, panel)| stage.field.throughput(*panel, lock, count));
        (lock.to_owned(), cells.collect())
    };
    let grid = Grid {
        place: stage.ground.to_string(),
        across: "locks in the pool",
        unit: Unit::Operations,
        columns: pools
            .iter()
            .map(|(pool, _)| (*pool as f64, pool.to_string()))
            .collect(),
        rows: locks.into_iter().map(row).collect(),
    };
    (!grid.rows.is_empty()).then_some(grid)
}

/// A chart for each grid of a panel that has locks of the figure. All have one kind of scale, so that they can be
/// compared.
#[must_use]
pub fn charts<'a>(figure: &Figure, panel: &str, grids: &'a [Grid]) -> Vec<(&'a Grid, Chart)> {
    let drawn = grids.iter().map(|grid| (grid, grid.curves(figure)));
    let drawn: Vec<_> = drawn.filter(|(_, curves)| !curves.is_empty()).collect();
    let is_even = |(grid, curves): &(&Grid, Vec<Curve>)| grid.unit.scale(curves) == Scale::Linear;
    let scale = if drawn.iter().all(is_even) {
        Scale::Linear
    } else {
        Scale::Powers
    };
    let drawn = drawn.into_iter();
    drawn
        .map(|(grid, curves)| (grid, grid.chart(panel, scale, figure.title, curves)))
        .collect()
}

impl Grid {
    /// The figure's locks as curves.
    fn curves(&self, figure: &Figure) -> Vec<Curve> {
        let curve = |name: &&str| {
            let (_, cells) = self.rows.iter().find(|(lock, _)| lock == name)?;
            let points = self.columns.iter().zip(cells);
            let marks = points.filter_map(|((x, column), cell)| {
                let summary = cell.as_ref()?;
                let half = summary.median * summary.spread;
                Some(Mark {
                    x: *x,
                    y: summary.median,
                    bar: (summary.median - half, summary.median + half),
                    says: format!(
                        "{name}, {column} {}: {} {}",
                        self.across,
                        self.unit.told(summary),
                        self.unit.name()
                    ),
                })
            });
            let marks: Vec<_> = marks.collect();
            (!marks.is_empty()).then(|| Curve {
                name: (*name).to_owned(),
                style: style(name).unwrap_or_default(),
                marks,
            })
        };
        figure.locks.iter().filter_map(curve).collect()
    }

    fn chart(&self, panel: &str, scale: Scale, title: &str, curves: Vec<Curve>) -> Chart {
        let names: Vec<_> = curves.iter().map(|curve| curve.name.as_str()).collect();
        let (unit, across) = (self.unit.label(scale), self.across);
        Chart {
            title: format!(
                "{title}, {panel}, {}. {unit} by {across}: a curve for each of {}. The numbers are in the table below.",
                self.place,
                names.join(", ")
            ),
            x_label: across.to_owned(),
            y_label: unit.to_owned(),
            ticks: self.columns.clone(),
            scale,
            curves,
        }
    }
}

/// A lock, and what [`AcquireTimes::COLUMNS`] name.
pub type Percentiles<'a> = (&'a str, [u64; 5]);

/// How long acquisitions took in one place: what kind of them, and a row of percentiles for each lock, the largest of
/// each over repeats.
#[must_use]
pub fn distributions(stage: &Stage) -> Vec<(&str, Vec<Percentiles<'_>>)> {
    let all = &stage.distributions;
    let kinds = distinct(all.iter().map(|one| one.of.as_str()));
    let rows = |of: &str| {
        let here = || all.iter().filter(|one| one.of == of);
        let locks = distinct(here().map(|one| one.lock.as_str()));
        let row = |lock| {
            let times = here().filter(|one| one.lock == lock);
            let columns = times.map(|one| one.times.columns());
            let worst = columns.reduce(|a, b| std::array::from_fn(|k| a[k].max(b[k])));
            (lock, worst.unwrap_or_default())
        };
        locks.into_iter().map(row).collect()
    };
    kinds.into_iter().map(|of| (of, rows(of))).collect()
}

/// Percentiles of those locks that figures have: as many as can be told apart.
#[must_use]
pub fn percentiles(title: String, rows: &[Percentiles<'_>]) -> Chart {
    let known = distinct(FIGURES.iter().flat_map(|figure| figure.locks));
    let found = |name: &&&str| rows.iter().any(|(lock, _)| *lock == **name);
    let mut names: Vec<&str> = known.into_iter().filter(found).copied().collect();
    if names.is_empty() {
        names.extend(rows.iter().map(|(lock, _)| *lock));
    }
    // Of each style one, as those of a figure.
    let mut taken = Vec::new();
    let mut free = 0..STYLES;
    let styled = names.into_iter().filter_map(|name| {
        let style = style(name).or_else(|| free.next())?;
        let is_free = !taken.contains(&style);
        taken.push(style);
        is_free.then_some((style, name))
    });
    let columns = AcquireTimes::COLUMNS;
    let curve = |(style, name): (usize, &str)| {
        let (_, times) = rows.iter().find(|(lock, _)| *lock == name)?;
        let marks = times.iter().enumerate().map(|(at, &time)| Mark {
            x: at as f64,
            y: time as f64,
            bar: (time as f64, time as f64),
            says: format!("{name}, {}: {time} nanoseconds", columns[at]),
        });
        let (name, marks) = (name.to_owned(), marks.collect());
        Some(Curve { name, style, marks })
    };
    Chart {
        title,
        x_label: "percentile".to_owned(),
        y_label: Unit::Nanoseconds.label(Scale::Powers).to_owned(),
        ticks: (0..)
            .map(f64::from)
            .zip(columns.map(str::to_owned))
            .collect(),
        scale: Scale::Powers,
        curves: styled.filter_map(curve).collect(),
    }
}
