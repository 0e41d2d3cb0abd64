//! Runs as they are compared.

use spanlock_records::record::lock::Lock;
use spanlock_records::record::{Panel, Record, VmStat};
use spanlock_records::stats::{Summary, distinct};
use spanlock_records::trial::counters::Rate;
use spanlock_records::trial::vm::Mode;

/// One value of one run, as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The runs that it can be compared with.
    pub panel: Panel,
    /// The lock.
    pub lock: Lock,
    /// Threads.
    pub threads: usize,
    /// Operations per second, or the panel's other unit; or why there is no value.
    pub ops_per_sec: Result<f64, String>,
    /// Hardware events per operation.
    pub counters: Vec<Rate>,
}

impl Point {
    /// A value without counters.
    #[must_use]
    pub fn new(panel: Panel, lock: &Lock, threads: usize, ops_per_sec: f64) -> Self {
        Self {
            panel,
            lock: lock.clone(),
            threads,
            ops_per_sec: Ok(ops_per_sec),
            counters: Vec::new(),
        }
    }

    /// The values of a run: its throughput; of a latency run, the longest acquisition of each phase; of an address
    /// space, waits and speculations, too.
    #[must_use]
    pub fn all_of(run: &Record) -> Vec<Self> {
        let of = |panel, value| Self::new(panel, &run.lock, run.threads, value);
        let phases = run.phases();
        let points = phases.map(|(phase, times)| of(phase.longest(), times.max as f64));
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            return points;
        }
        if let Some(stat) = &run.space {
            let value = |of| {
                Some(match of {
                    VmStat::ReadWait => stat.average_ns(Mode::Shared),
                    VmStat::WriteWait => stat.average_ns(Mode::Exclusive),
                    VmStat::Speculated => stat.percent(stat.speculations.in_place),
                    VmStat::TreeWait => stat.tree?.average_ns(),
                    VmStat::TreeShare => stat.tree?.percent(),
                    VmStat::RangeShare => 100.0 - stat.tree?.percent(),
                })
            };
            let stats = VmStat::ALL.into_iter();
            let stats = stats.filter_map(|stat| Some(of(stat.of(run.panel), value(stat)?)));
            let throughput = run.ops_per_sec.map(|ops| of(run.panel, ops));
            return stats.chain(throughput).collect();
        }
        let why = || run.skipped.clone().unwrap_or_else(|| "not run".to_owned());
        vec![Self {
            ops_per_sec: run.ops_per_sec.ok_or_else(why),
            counters: run.counters.clone(),
            ..of(run.panel, 0.0)
        }]
    }
}

/// All points that are compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset(pub(super) Vec<Point>);

impl FromIterator<Point> for Dataset {
    fn from_iter<I: IntoIterator<Item = Point>>(points: I) -> Self {
        Self(points.into_iter().collect())
    }
}

impl Dataset {
    /// All points of these runs.
    #[must_use]
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Record>) -> Self {
        runs.into_iter().flat_map(Point::all_of).collect()
    }

    /// One more.
    pub fn add(&mut self, point: Point) {
        self.0.push(point);
    }

    /// All of them.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.0.iter()
    }

    /// The panels there are.
    #[must_use]
    pub fn panels(&self) -> Vec<Panel> {
        distinct(self.0.iter().map(|point| point.panel))
    }

    /// The runs of a panel.
    pub fn of_panel(&self, panel: Panel) -> impl Iterator<Item = &Point> {
        self.0.iter().filter(move |point| point.panel == panel)
    }

    /// The numbers of threads in a panel.
    #[must_use]
    pub fn threads(&self, panel: Panel) -> Vec<usize> {
        distinct(self.of_panel(panel).map(|point| point.threads))
    }

    /// The locks in a panel.
    #[must_use]
    pub fn locks(&self, panel: Panel) -> Vec<&str> {
        distinct(self.of_panel(panel).map(|point| point.lock.name.as_str()))
    }

    /// What competing locks did in a panel with so many threads, the best first.
    #[must_use]
    pub fn ranked(&self, panel: Panel, threads: usize) -> Vec<(&Lock, Summary)> {
        let of = |name| self.of_panel(panel).find(|point| point.lock.name == name);
        let locks = self.locks(panel).into_iter().filter_map(of);
        let locks = locks
            .map(|point| &point.lock)
            .filter(|lock| lock.competes());
        let mut ranked: Vec<_> = locks
            .filter_map(|lock| Some((lock, self.throughput(panel, &lock.name, threads)?)))
            .collect();
        ranked.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
        ranked
    }

    /// Equal runs.
    pub fn runs(&self, panel: Panel, lock: &str, threads: usize) -> impl Iterator<Item = &Point> {
        self.of_panel(panel)
            .filter(move |point| point.lock.name == lock && point.threads == threads)
    }

    /// What was measured, over equal runs; `None` if there are none.
    #[must_use]
    pub fn throughput(&self, panel: Panel, lock: &str, threads: usize) -> Option<Summary> {
        let runs = self.runs(panel, lock, threads);
        Summary::of(runs.filter_map(|point| point.ops_per_sec.as_ref().ok().copied()))
    }
}
