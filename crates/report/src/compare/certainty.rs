//! How sure comparisons are: how far equal runs lie apart, and whether the machine was busy with something else.

use super::Dataset;
use derive_more::Display;
use spanlock_records::record::{Panel, Record};
use spanlock_records::stats::{Summary, distinct};

/// How far equal runs lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Display)]
pub enum Certainty {
    /// Each ran once.
    #[display(
        "all runs are single, so nothing tells chance from a difference, and all locks count as level"
    )]
    Single,
    /// They were repeated, most of them.
    #[display(
        "half of all medians lie within {percent:.0} % of their extremes, and what is within the spreads of both \
               locks counts as level, as do {single} numbers of single runs"
    )]
    Repeated {
        /// The median of the spreads, in percent.
        percent: f64,
        /// How many numbers are of single runs.
        single: usize,
    },
}

impl Certainty {
    /// That of all locks which compete in these runs.
    #[must_use]
    pub fn of<'a>(data: impl IntoIterator<Item = &'a Dataset>) -> Self {
        let contests = data.into_iter().flat_map(|data| data.contests(|_| true));
        let ranked = contests.flat_map(|contest| contest.ranked);
        let percents: Vec<_> = ranked.map(|(_, summary)| summary.percent()).collect();
        let single = percents.iter().filter(|percent| percent.is_none()).count();
        match Summary::of(percents.into_iter().flatten()) {
            None => Self::Single,
            Some(spread) => Self::Repeated {
                percent: spread.median,
                single,
            },
        }
    }
}

/// Less than this share of the processors that threads were to have, and others had the rest.
const BUSY: f64 = 0.9;

/// A sentence, if the machine is busy with something else: threads that wanted all processors had so much of them.
#[must_use]
pub fn busy(share: f64) -> Option<String> {
    (share < BUSY).then(|| {
        format!(
            "the machine is busy with something else, which has {:.0} % of the processors",
            100.0 * (1.0 - share)
        )
    })
}

/// Which share of the processors' time threads had, of runs in which each could have a processor.
#[derive(Debug, Clone, Default)]
pub struct Shares(Vec<(Panel, usize, f64)>);

impl Shares {
    /// Those of some runs, on a machine with so many processors.
    #[must_use]
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Record>, cores: usize) -> Self {
        let mut shares = Self::default();
        runs.into_iter().for_each(|run| shares.add(run, cores));
        shares
    }

    /// Adds that of a run. Simulated processors have nothing else to do.
    pub fn add(&mut self, run: &Record, cores: usize) {
        let fits = run.simulated.is_none() && run.threads <= cores && run.seconds > 0.0;
        let used = run.cpu_seconds.filter(|_| fits);
        let share = used.map(|used| used / (run.seconds * run.threads as f64));
        self.0
            .extend(share.map(|share| (run.panel, run.threads, share)));
    }

    /// The share that threads had which never sleep: the largest of each panel with each number of threads, and the
    /// median of these.
    fn median(&self) -> Option<f64> {
        let cells = distinct(self.0.iter().map(|&(panel, threads, _)| (panel, threads)));
        let largest = cells.into_iter().filter_map(|cell| {
            let here = self.0.iter().filter(|one| (one.0, one.1) == cell);
            here.map(|one| one.2).reduce(f64::max)
        });
        Summary::of(largest).map(|share| share.median)
    }

    /// A sentence, if the machine was busy with something else.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let share = self.median().filter(|share| *share < BUSY)?;
        Some(format!(
            "the machine was busy with something else: even under locks that never sleep, threads had {:.0} % of the \
             processor time that they asked for. Measure again on a quiet machine before you decide by this",
            100.0 * share
        ))
    }
}
