//! Lines of JSON, by where they were measured or simulated.

use crate::compare::{Dataset, Point, Shares};
use crate::table::{self, Width};
use derive_more::Display;
use machines::{Machine, Placement};
use spanlock_records::record::finding::Ranking;
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Line, Record, Simulated, plural};
use spanlock_records::trial::times::AcquireTimes;

/// Where runs were made. Captions have it.
#[derive(Debug, Display, Clone, PartialEq)]
pub enum Platform {
    /// A real machine.
    #[display("measured: {machine}, {cores} processors")]
    Measured {
        /// The processor's model.
        machine: String,
        /// Processors.
        cores: usize,
    },
    /// A simulated one.
    #[display("simulated: {}, {}", machine.name, format!("{placement:?}").to_lowercase())]
    Simulated {
        /// Its parameters.
        machine: Box<Machine>,
        /// Where threads ran.
        placement: Placement,
    },
}

impl Platform {
    /// Threads that run at a time.
    #[must_use]
    pub fn cores(&self) -> usize {
        match self {
            Self::Measured { cores, .. } => *cores,
            Self::Simulated { machine, .. } => machine.contexts(),
        }
    }
}

/// How long the acquisitions of one lock took.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Which acquisitions, and of how many threads.
    pub of: String,
    /// The lock's name.
    pub lock: String,
    /// Percentiles.
    pub times: AcquireTimes,
}

/// All runs of one platform.
#[derive(Debug, Clone)]
pub struct Site {
    /// The platform.
    pub platform: Platform,
    /// What the runs yielded.
    pub dataset: Dataset,
    /// How long acquisitions took.
    pub distributions: Vec<Distribution>,
    /// Which share of the processors the threads had.
    pub shares: Shares,
}

/// A table of this width needs no scrolling on a page of usual width.
const WIDTH: Width = Width::of(120);

/// A command whose output was given.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file.
    pub file: String,
    /// Machine, commit and command.
    pub provenance: Provenance,
    /// The simulated machine's name.
    pub simulated: Option<String>,
    /// How many runs its lines hold.
    pub runs: usize,
    /// The order of locks, and its changes on varied machines.
    pub rankings: Vec<Ranking>,
    /// Lines that are not compared.
    other: Vec<Line>,
    /// Runs that are not compared.
    waiting: Vec<Record>,
}

impl Source {
    /// What is not compared, as tables.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        let (records, provenance) = (&self.waiting, &self.provenance);
        let waiting = || table::waiting(records, provenance, WIDTH);
        let all = [
            self.table(table::memory),
            self.table(table::many_locks),
            self.table(table::set_memory),
            self.table(table::uncontended),
            self.table(table::rw_uncontended),
            self.table(table::rw_revocation),
            (!records.is_empty()).then(waiting),
        ];
        all.into_iter().flatten().collect()
    }

    /// The table of the records of one kind, if there are any.
    fn table<R: TryFrom<Line>>(
        &self,
        table: fn(&[R], &Provenance, Width) -> String,
    ) -> Option<String> {
        let records = self.other.iter().cloned().map(R::try_from);
        let records: Vec<R> = records.filter_map(Result::ok).collect();
        (!records.is_empty()).then(|| table(&records, &self.provenance, WIDTH))
    }
}

/// A line that cannot be used.
#[derive(Debug, Display, Clone, PartialEq, Eq)]
#[display("{file}, line {line}: {what}")]
pub struct Broken {
    /// The file.
    pub file: String,
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// All that was given.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The commands whose output it is, in their order.
    pub sources: Vec<Source>,
    /// All runs, by platform: real machines first.
    pub sites: Vec<Site>,
}

impl Input {
    /// Adds a file's lines.
    ///
    /// # Errors
    /// When a line is none of ours, or has no origin, or was given before.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), Broken> {
        let broken = |line, what: String| Broken {
            file: file.to_owned(),
            line,
            what,
        };
        let mut reader = Reader {
            input: self,
            file,
            source: None,
            machines: Vec::new(),
        };
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let parsed = line.parse().map_err(|error| format!("{error}"));
            let taken = parsed.and_then(|line| reader.take(line));
            taken.map_err(|what| broken(at + 1, what))?;
        }
        if reader.source.is_none() {
            let what = "no measurements: expected the output of a command with `--format json`";
            return Err(broken(1, what.to_owned()));
        }
        let is_simulated = |site: &Site| matches!(site.platform, Platform::Simulated { .. });
        self.sites.sort_by_key(is_simulated); // stable
        Ok(())
    }

    fn site(&mut self, platform: Platform) -> &mut Site {
        let known = self.sites.iter().position(|site| site.platform == platform);
        let at = known.unwrap_or(self.sites.len());
        if known.is_none() {
            let (dataset, distributions, shares) = Default::default();
            self.sites.push(Site {
                platform,
                dataset,
                distributions,
                shares,
            });
        }
        &mut self.sites[at]
    }
}

/// Reads a file.
struct Reader<'a> {
    input: &'a mut Input,
    file: &'a str,
    /// The number of the command whose lines follow.
    source: Option<usize>,
    /// The machines of simulated runs that follow. Those after the first are the first one varied.
    machines: Vec<Machine>,
}

impl Reader<'_> {
    fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Meta(provenance) => self.begin(provenance)?,
            Line::SimMachine(machine) => {
                let source = self.source()?;
                source.simulated.get_or_insert(machine.name.clone());
                self.machines.push(machine);
            }
            Line::Run(run) => self.run(*run)?,
            Line::SimRanking(ranking) => self.source()?.rankings.push(ranking),
            // What follows from runs is found anew, from all of them.
            Line::Standing(_) | Line::Claim(_) | Line::Lock(_) => {}
            other => self.source()?.other.push(other),
        }
        Ok(())
    }

    fn begin(&mut self, provenance: Provenance) -> Result<(), String> {
        let mut known = self.input.sources.iter();
        if let Some(known) = known.find(|known| known.provenance == provenance) {
            return Err(format!("the same runs as in {}", known.file));
        }
        self.source = Some(self.input.sources.len());
        self.machines.clear();
        self.input.sources.push(Source {
            file: self.file.to_owned(),
            provenance,
            simulated: None,
            runs: 0,
            rankings: Vec::new(),
            other: Vec::new(),
            waiting: Vec::new(),
        });
        Ok(())
    }

    /// The command whose line is read.
    fn source(&mut self) -> Result<&mut Source, String> {
        let at = self.source.ok_or("expected a line `meta` before others")?;
        Ok(&mut self.input.sources[at])
    }

    /// Adds a run to its site.
    fn run(&mut self, run: Record) -> Result<(), String> {
        let simulated = run
            .simulated
            .as_ref()
            .map(|run| self.machine(run))
            .transpose()?;
        let source = self.source()?;
        if run.panel.workload() == "waiting" {
            source.waiting.push(run);
            return Ok(());
        }
        let points = Point::all_of(&run);
        source.runs += points.len();
        let platform = match simulated {
            Some(Some(platform)) => platform,
            Some(None) => return Ok(()), // Rankings report on varied machines.
            None => Platform::Measured {
                machine: source.provenance.machine.clone(),
                cores: source.provenance.cores,
            },
        };
        let distribution = |of: String, times| Distribution {
            of: format!("{of}, {}", plural(run.threads)),
            lock: run.lock.name.clone(),
            times,
        };
        let timed = run.acquire_ns.filter(|_| run.simulated.is_none());
        let timed = timed.map(|times| distribution(run.panel.to_string(), times));
        let phases = run.phases();
        let phases = phases.map(|(phase, times)| distribution(phase.name().to_owned(), times));
        let cores = platform.cores();
        let site = self.input.site(platform);
        site.shares.add(&run, cores);
        site.distributions.extend(timed.into_iter().chain(phases));
        points.into_iter().for_each(|point| site.dataset.add(point));
        Ok(())
    }

    /// The platform of a simulated run, or `None` of a varied machine.
    fn machine(&self, run: &Simulated) -> Result<Option<Platform>, String> {
        let mut machines = self.machines.iter();
        let at = machines.position(|machine| machine.name == run.machine);
        let at =
            at.ok_or_else(|| format!("expected a line `sim-machine` of {} before", run.machine))?;
        let machine = Box::new(self.machines[at].clone());
        let placement = run.placement;
        Ok((at == 0).then_some(Platform::Simulated { machine, placement }))
    }
}
