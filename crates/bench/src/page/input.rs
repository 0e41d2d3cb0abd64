//! Lines of JSON, by where they were measured or simulated.

use crate::compare::{Field, Panel, Phase, Point, distinct};
use crate::provenance::Provenance;
use crate::report::{self, Line, Width};
use crate::sim::sweep::Ranking;
use crate::sim::{Machine, Placement, Run};
use crate::times::AcquireTimes;
use crate::{memory, rw, soak, uncontended, waiting};
use std::fmt;

/// Where runs were made.
#[derive(Debug, Clone, PartialEq)]
pub enum Ground {
    /// A real machine.
    Real {
        /// The processor's model.
        machine: String,
        /// Processors.
        cores: usize,
    },
    /// A simulated one.
    Simulated {
        /// What it is made of.
        machine: Box<Machine>,
        /// Where threads ran.
        placement: Placement,
    },
}

impl Ground {
    /// Threads that run at a time.
    #[must_use]
    pub fn cores(&self) -> usize {
        match self {
            Self::Real { cores, .. } => *cores,
            Self::Simulated { machine, .. } => machine.contexts(),
        }
    }
}

/// For captions.
impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real { machine, cores } => {
                write!(f, "measured: {machine}, {cores} processors")
            }
            Self::Simulated { machine, placement } => {
                let placement = format!("{placement:?}").to_lowercase();
                write!(f, "simulated: {}, {placement}", machine.name)
            }
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

/// All that was run in one place.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Where.
    pub ground: Ground,
    /// What was measured.
    pub field: Field,
    /// How long acquisitions took.
    pub distributions: Vec<Distribution>,
}

/// Of tables that are told as text: on a page of usual width they need no scrolling.
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
    /// Runs among its lines.
    pub runs: usize,
    /// What becomes of the order of locks on varied machines.
    pub rankings: Vec<Ranking>,
    other: Other,
}

/// What is not compared, only told.
#[derive(Debug, Clone, Default)]
struct Other {
    memory: Vec<memory::Record>,
    soak: Vec<soak::Record>,
    uncontended: Vec<uncontended::Record>,
    rw_uncontended: Vec<rw::uncontended::Record>,
    rw_revocation: Vec<rw::revocation::Record>,
    waiting: Vec<waiting::Record>,
}

impl Source {
    /// What is not compared, as tables.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        fn told<R>(
            records: &[R],
            source: &Source,
            table: fn(&[R], &Provenance, Width) -> String,
        ) -> Option<String> {
            (!records.is_empty()).then(|| table(records, &source.provenance, WIDTH))
        }
        let other = &self.other;
        [
            told(&other.memory, self, report::memory),
            told(&other.soak, self, report::soak),
            told(&other.uncontended, self, report::uncontended),
            told(&other.rw_uncontended, self, report::rw_uncontended),
            told(&other.rw_revocation, self, report::rw_revocation),
            told(&other.waiting, self, report::waiting),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub file: String,
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what } = self;
        write!(f, "{file}, line {line}: {what}")
    }
}

/// All that was given.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The commands whose output it is, in their order.
    pub sources: Vec<Source>,
    /// What was run, place by place: real machines first.
    pub stages: Vec<Stage>,
}

impl Input {
    /// Adds a file's lines.
    ///
    /// # Errors
    /// When a line is none of ours, or has no origin, or was given before.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), Broken> {
        let mut at = Reader {
            input: self,
            file,
            source: None,
            machines: Vec::new(),
        };
        let lines = text.lines().enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let parsed = line.parse().map_err(|error| format!("{error}"));
            let taken = parsed.and_then(|line| at.take(line));
            taken.map_err(|what| Broken {
                file: file.to_owned(),
                line: number + 1,
                what,
            })?;
        }
        if at.source.is_none() {
            return Err(Broken {
                file: file.to_owned(),
                line: 1,
                what: "no measurements: expected the output of a command with `--format json`"
                    .to_owned(),
            });
        }
        let is_simulated = |stage: &Stage| matches!(stage.ground, Ground::Simulated { .. });
        self.stages.sort_by_key(is_simulated); // stable
        Ok(())
    }

    /// The panels there are, in all places.
    #[must_use]
    pub fn panels(&self) -> Vec<Panel> {
        distinct(self.stages.iter().flat_map(|stage| stage.field.panels()))
    }

    fn stage(&mut self, ground: &Ground) -> &mut Stage {
        let known = self.stages.iter().position(|stage| stage.ground == *ground);
        let at = known.unwrap_or_else(|| {
            self.stages.push(Stage {
                ground: ground.clone(),
                field: Field::default(),
                distributions: Vec::new(),
            });
            self.stages.len() - 1
        });
        &mut self.stages[at]
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
            Line::Meta(provenance) => return self.begin(provenance),
            Line::SimMachine(machine) => {
                let source = self.source()?;
                source.simulated.get_or_insert(machine.name.clone());
                self.machines.push(machine);
            }
            Line::Arr(run) => {
                let times = run.acquire_ns;
                let point = Point::from(&run);
                let of = format!("{}, {}", point.panel, threads(point.threads));
                let lock = point.lock.clone();
                let stage = self.measured(point)?;
                let distribution = times.map(|times| Distribution { of, lock, times });
                stage.distributions.extend(distribution);
            }
            Line::Batch(run) => {
                self.measured(Point::from(&run))?;
            }
            Line::Rw(run) => {
                self.measured(Point::from(&run))?;
            }
            Line::Latency(run) => {
                for (phase, times) in [(Phase::First, run.first_ns), (Phase::Again, run.again_ns)] {
                    let (point, distribution) = acquired(&run.lock, run.threads, phase, times);
                    self.measured(point)?.distributions.push(distribution);
                }
            }
            Line::SimArr(run) => {
                self.simulated(Point::from(&run), &run.run)?;
            }
            Line::SimBatch(run) => {
                self.simulated(Point::from(&run), &run.run)?;
            }
            Line::SimLatency(run) => {
                for (phase, times) in [(Phase::First, run.first_ns), (Phase::Again, run.again_ns)] {
                    let (lock, threads) = (&run.run.lock, run.run.threads);
                    let (point, distribution) = acquired(lock, threads, phase, times);
                    if let Some(stage) = self.simulated(point, &run.run)? {
                        stage.distributions.push(distribution);
                    }
                }
            }
            Line::SimRanking(ranking) => self.source()?.rankings.push(ranking),
            Line::SimRw(run) => {
                self.simulated(Point::from(&run), &run.run)?;
            }
            Line::Micro(run) => {
                self.measured(Point::from(&run))?;
            }
            Line::SimMicro(run) => {
                self.simulated(Point::from(&run), &run.run)?;
            }
            Line::Memory(record) => self.source()?.other.memory.push(record),
            Line::Soak(record) => self.source()?.other.soak.push(record),
            Line::Uncontended(record) => self.source()?.other.uncontended.push(record),
            Line::RwUncontended(record) => self.source()?.other.rw_uncontended.push(record),
            Line::RwRevocation(record) => self.source()?.other.rw_revocation.push(record),
            Line::Waiting(record) => self.source()?.other.waiting.push(record),
            // What follows from runs is found anew, from all of them.
            Line::Standing(_) | Line::Claim(_) | Line::Lock(_) => {}
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
            other: Other::default(),
        });
        Ok(())
    }

    /// The command whose line is read.
    fn source(&mut self) -> Result<&mut Source, String> {
        let at = self.source.ok_or("expected a line `meta` before others")?;
        Ok(&mut self.input.sources[at])
    }

    /// Adds a run of a real machine.
    fn measured(&mut self, point: Point) -> Result<&mut Stage, String> {
        let source = self.source()?;
        source.runs += 1;
        let ground = Ground::Real {
            machine: source.provenance.machine.clone(),
            cores: source.provenance.cores,
        };
        let stage = self.input.stage(&ground);
        stage.field.add(point);
        Ok(stage)
    }

    /// Adds a run of a simulated machine, unless it is a varied one.
    fn simulated(&mut self, point: Point, run: &Run) -> Result<Option<&mut Stage>, String> {
        self.source()?.runs += 1;
        let mut machines = self.machines.iter();
        let at = machines.position(|machine| machine.name == run.machine);
        let at =
            at.ok_or_else(|| format!("expected a line `sim-machine` of {} before", run.machine))?;
        if at > 0 {
            return Ok(None); // Rankings tell what becomes of them.
        }
        let machine = Box::new(self.machines[at].clone());
        let placement = run.placement;
        let ground = Ground::Simulated { machine, placement };
        let stage = self.input.stage(&ground);
        stage.field.add(point);
        Ok(Some(stage))
    }
}

/// The longest acquisition of a lock, and all of them.
fn acquired(lock: &str, count: usize, phase: Phase, times: AcquireTimes) -> (Point, Distribution) {
    let point = Point {
        panel: Panel::Longest(phase),
        lock: lock.to_owned(),
        threads: count,
        ops_per_sec: Ok(times.max as f64),
        counters: Vec::new(),
    };
    let distribution = Distribution {
        of: format!("{}, {}", phase.name(), threads(count)),
        lock: lock.to_owned(),
        times,
    };
    (point, distribution)
}

/// So many, in words.
pub(crate) fn threads(count: usize) -> String {
    crate::compare::plural(count)
}
