//! Machines: their sockets and cores, and how many cycles each operation takes. They are data files that give the
//! source of each number.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name that users select it by.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// Processor packages.
    pub sockets: usize,
    /// Cores of each socket.
    pub cores: usize,
    /// Hardware threads of each core.
    pub siblings: usize,
    /// Cycles in a nanosecond.
    pub gigahertz: f64,
    /// The cost of each operation.
    pub cycles: Latencies,
}

/// The cost of each operation, in cycles unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// A load of a line in this core's cache.
    pub load_hit: u64,
    /// A load of an unmodified line from this socket's shared cache, or from another core of the socket.
    pub load_shared_local: u64,
    /// A load of an unmodified line that only other sockets have.
    pub load_shared_remote: u64,
    /// A load of a line modified by another core of this socket.
    pub load_modified_local: u64,
    /// A load of a line modified in another socket.
    pub load_modified_remote: u64,
    /// A load of a line that no cache has.
    pub memory: u64,
    /// Getting exclusive ownership of a line, for a store, when only this socket has it.
    pub own_local: u64,
    /// Getting exclusive ownership of a line, for a store, when another socket has it.
    pub own_remote: u64,
    /// A read-modify-write of a line that this core owns exclusively. If it does not, the cost of ownership is added.
    pub rmw: u64,
    /// A full fence, once the store buffer is empty.
    pub fence: u64,
    /// A spin-wait hint.
    pub pause: u64,
    /// How long a copy within the socket occupies a line.
    pub occupy_local: u64,
    /// How long a copy to another socket occupies a line.
    pub occupy_remote: u64,
    /// How long a core keeps a line after it got exclusive ownership of it.
    pub keep: u64,
    /// A count: how many requests of the same socket are served before an older request of another socket.
    pub favour: u32,
    /// A count: how many plain accesses of a core overlap in time.
    pub overlap: u64,
    /// A count: the entries of a store buffer.
    pub stores: usize,
    /// A system call: entering and leaving the kernel.
    pub system: u64,
    /// The time from a wake-up until the sleeper runs.
    pub wake: u64,
    /// The time from interrupting the other cores until all have answered.
    pub interrupt: u64,
    /// The time that an interrupted core loses.
    pub interrupted: u64,
    /// A percentage: the time of private work while the core's other hardware thread works as well.
    pub sibling_work: u64,
    /// A no-op of a workload's pause.
    pub no_op: u64,
    /// Reading a slot of a workload's array, in addition to fetching its line.
    pub slot_read: u64,
    /// Incrementing a slot of a workload's array, in addition to fetching its line.
    pub slot_write: u64,
}

/// Where virtual threads run. If there are more threads than hardware threads, several share one, and each runs as fast
/// as if it were alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// As an operating system places threads by default: first one thread for each core, the sockets in turn, in an
    /// order that depends on the seed; then the second hardware threads of the cores.
    #[default]
    Unpinned,
    /// Core by core, with all hardware threads of a core; socket by socket.
    Compact,
    /// First one thread for each core, the sockets in turn; then the second hardware threads of the cores.
    Scatter,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../machines/", $name, ".toml")))),+]
    };
}

/// The machines that come with the simulator: their names and their files.
const FILES: [(&str, &str); 5] = files![
    "xeon-2x10x2",
    "xeon-2x18x2",
    "xeon-4x18x2",
    "epyc-1x64x2",
    "small-1x2x1",
];

impl Machine {
    /// The machines that come with the simulator.
    ///
    /// # Panics
    /// Never: a test parses each file.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        FILES
            .map(|(_, text)| Self::parse(text).expect("a test parses it"))
            .into()
    }

    /// The machine of that name. `name:key=value:…` is the machine with some of its [`Latencies`] changed.
    ///
    /// # Errors
    /// A description of what was expected, if the name or a change is not valid.
    pub fn find(name: &str) -> Result<Self, String> {
        let (base, changes) = name.split_once(':').unwrap_or((name, ""));
        let all = Self::built_in();
        let machine = all.iter().find(|machine| machine.name == base);
        let machine = machine.ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|machine| machine.name.as_str()).collect();
            format!("expected one of {}", names.join(", "))
        })?;
        let mut changes = changes.split(':').filter(|change| !change.is_empty());
        changes.try_fold(machine.clone(), |machine, change| machine.with(change))
    }

    /// The same machine with one of its [`Latencies`] changed by `key=value`. The change becomes part of its name.
    ///
    /// # Errors
    /// A description of what was expected, if the change is not valid.
    pub fn with(&self, change: &str) -> Result<Self, String> {
        let mut table = toml::Table::try_from(&self.cycles).map_err(|error| error.to_string())?;
        let (key, value) = change.split_once('=').unwrap_or((change, ""));
        let known: Vec<_> = table.keys().cloned().collect();
        let entry = table.get_mut(key);
        let (Some(entry), Ok(value)) = (entry, value.parse::<u32>()) else {
            let known = known.join(", ");
            return Err(format!(
                "'{change}': expected key=value, a whole number for one of {known}"
            ));
        };
        *entry = i64::from(value).into();
        let changed = Self {
            name: format!("{}:{change}", self.name),
            cycles: table.try_into().map_err(|error| error.to_string())?,
            ..self.clone()
        };
        changed.checked()
    }

    /// The machines that differ from this one in a single assumed number. `favour` and `keep` become zero and twice as
    /// large; each latency becomes 30 percent smaller and larger.
    ///
    /// # Panics
    /// Never: a test varies each machine.
    #[must_use]
    pub fn varied(&self) -> Vec<Self> {
        let all = toml::Table::try_from(&self.cycles).expect("all are numbers");
        let mut changes = Vec::new();
        for (key, value) in all {
            let is_elsewhere = key.ends_with("_remote") || key == "favour";
            let value = value.as_integer().unwrap_or(0);
            let others = match key.as_str() {
                _ if is_elsewhere && self.sockets == 1 => continue,
                "sibling_work" if self.siblings == 1 => continue,
                "stores" => continue,
                "favour" | "keep" => [0, 2 * value],
                _ => [value * 7 / 10, value * 13 / 10],
            };
            let others = others.into_iter().filter(|other| *other != value);
            changes.extend(others.map(|other| format!("{key}={other}")));
        }
        let varied = changes.iter().map(|change| self.with(change));
        varied.map(|machine| machine.expect("valid")).collect()
    }

    /// The file of the machine of that name. Its comments give the source of each number.
    #[must_use]
    pub fn text(name: &str) -> Option<&'static str> {
        let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
        Some(text)
    }

    /// Parses a description in TOML.
    ///
    /// # Errors
    /// A message that names the fault, if the text does not describe a machine.
    pub fn parse(text: &str) -> Result<Self, String> {
        let machine: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        machine.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let machine = self;
        let cores = machine.sockets.saturating_mul(machine.cores);
        if !(1..=MAX_CORES).contains(&cores) || machine.siblings == 0 {
            return Err(format!(
                "{}x{}x{}: expected 1 to {MAX_CORES} cores in all, and 1 sibling or more",
                machine.sockets, machine.cores, machine.siblings
            ));
        }
        if machine.gigahertz.is_nan() || machine.gigahertz <= 0.0 || machine.cycles.overlap == 0 {
            return Err("gigahertz and overlap: expected more than 0".to_owned());
        }
        let cycles = toml::Table::try_from(&machine.cycles).map_err(|error| error.to_string())?;
        // The sum of any number of them must fit a clock of 64 bits.
        let most = u32::MAX;
        let mut numbers = cycles
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_integer()?)));
        match numbers.find(|(_, number)| *number > most.into()) {
            Some((key, number)) => Err(format!("{key} = {number}: expected at most {most}")),
            None => Ok(machine),
        }
    }

    /// The number of hardware threads.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.sockets * self.cores * self.siblings
    }

    /// The cycles of a time.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    #[must_use]
    pub fn cycles_of(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.gigahertz * 1e9) as u64
    }

    /// The socket of a core.
    #[must_use]
    pub fn socket(&self, core: u8) -> usize {
        usize::from(core) / self.cores
    }

    /// The cores, in the order in which threads are placed.
    #[must_use]
    pub fn places(&self, placement: Placement, seed: u64) -> Vec<u8> {
        let socket_by_socket: Vec<u8> = (0..self.sockets * self.cores)
            .map(|core| u8::try_from(core).expect("MAX_CORES"))
            .collect();
        if placement == Placement::Compact {
            return socket_by_socket
                .into_iter()
                .flat_map(|core| std::iter::repeat_n(core, self.siblings))
                .collect();
        }
        let mut order = socket_by_socket;
        if placement == Placement::Unpinned {
            let mut rng = fastrand::Rng::with_seed(seed ^ 0x706c_6163);
            for socket in order.chunks_mut(self.cores) {
                rng.shuffle(socket);
            }
        }
        let in_turn = (0..self.cores)
            .flat_map(|nth| (0..self.sockets).map(move |socket| (socket, nth)))
            .map(|(socket, nth)| order[socket * self.cores + nth]);
        let in_turn: Vec<u8> = in_turn.collect();
        in_turn.repeat(self.siblings)
    }
}

/// The number of bits in a cache line's set of sharers.
const MAX_CORES: usize = 128;

#[cfg(test)]
mod tests {
    use super::{Machine, Placement};
    use std::collections::HashSet;

    #[test]
    fn machines_are_read_and_their_names_are_distinct() {
        let machines = Machine::built_in();
        let names: HashSet<_> = machines.iter().map(|machine| &machine.name).collect();
        assert_eq!(names.len(), machines.len());
        for machine in &machines {
            let text = Machine::text(&machine.name).unwrap();
            assert_eq!(Machine::parse(text).as_ref(), Ok(machine));
        }
    }

    #[test]
    fn wrong_machines_are_refused() {
        let text = include_str!("../machines/small-1x2x1.toml");
        for (from, to) in [
            ("cores = 2", "cores = 1000"),
            ("cores = 2", "cores = 0"),
            ("siblings = 1", "siblings = 0"),
            ("siblings = 1", "sibling = 1"),
            ("wake = 10000", "wake = 4294967296"),
            ("wake = 10000", "wake = -1"),
        ] {
            assert!(text.contains(from));
            assert!(Machine::parse(&text.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn names_may_change_latencies() {
        let machine = Machine::find("xeon-2x10x2:favour=0:own_remote=400").unwrap();
        assert_eq!((machine.cycles.favour, machine.cycles.own_remote), (0, 400));
        assert_eq!(machine.name, "xeon-2x10x2:favour=0:own_remote=400");
        for (wrong, said) in [
            ("abacus", "xeon-2x10x2"),
            ("xeon-2x10x2:favor=0", "favour"),
            ("xeon-2x10x2:favour", "key=value"),
            ("xeon-2x10x2:favour=-1", "a whole number"),
            ("xeon-2x10x2:overlap=0", "more than 0"),
        ] {
            let error = Machine::find(wrong).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn each_assumed_number_is_varied() {
        for machine in Machine::built_in() {
            let varied = machine.varied();
            assert!(varied.iter().all(|other| other.cycles != machine.cycles));
            let has = |change: &str| varied.iter().any(|other| other.name.ends_with(change));
            assert_eq!(has(":favour=0"), machine.sockets > 1, "{}", machine.name);
            assert!(has(":keep=0") && has(":keep=40"), "{}", machine.name);
        }
    }

    #[test]
    fn every_placement_uses_every_context_once() {
        for machine in Machine::built_in() {
            for placement in [Placement::Unpinned, Placement::Compact, Placement::Scatter] {
                let places = machine.places(placement, 7);
                assert_eq!(places.len(), machine.contexts());
                for core in 0..machine.sockets * machine.cores {
                    let here = places.iter().filter(|&&at| usize::from(at) == core);
                    assert_eq!(here.count(), machine.siblings);
                }
            }
            let compact = machine.places(Placement::Compact, 0);
            assert_eq!(compact[0], compact[machine.siblings - 1]);
            if machine.sockets > 1 {
                let scatter = machine.places(Placement::Scatter, 0);
                assert_ne!(machine.socket(scatter[0]), machine.socket(scatter[1]));
            }
        }
    }
}
