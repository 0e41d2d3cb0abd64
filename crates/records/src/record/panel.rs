//! Panels: a workload and its settings. Runs of one panel can be compared with each other.

use crate::trial::vm::Name;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// What a workload compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Range locks.
    Ranges,
    /// Reader-writer locks.
    Whole,
    /// What is built on locks.
    Built,
    /// What no lock wins: costs, and the machine itself.
    #[default]
    Others,
}

/// A workload and its settings, as one panel of a figure shows it. The fields of its JSON are `workload`, `of`, `panel`
/// (it in words), `beside`, and one for each setting.
#[derive(Clone, Copy)]
pub struct Panel(&'static Settings);

#[derive(Debug, Clone, PartialEq)]
struct Settings {
    workload: Name,
    kind: Kind,
    says: Name,
    beside: usize,
    values: Map<String, Value>,
}

/// The fields of a panel beside its settings.
const OWN: [&str; 4] = ["workload", "of", "panel", "beside"];

impl Panel {
    /// Of a workload that compares such, with settings that are a map in JSON; `says` is all that in words.
    ///
    /// # Panics
    /// When the settings are no map.
    #[must_use]
    pub fn new(workload: &str, kind: Kind, says: &str, settings: &impl Serialize) -> Self {
        let values = match serde_json::to_value(settings).expect("numbers and words") {
            Value::Object(values) => values,
            Value::Null => Map::new(),
            other => panic!("no settings: {other}"),
        };
        Self::kept(Settings {
            workload: Name::new(workload),
            kind,
            says: Name::new(says),
            beside: 0,
            values,
        })
    }

    /// The same, with so many threads that run beside those that are counted.
    #[must_use]
    pub fn beside(self, threads: usize) -> Self {
        Self::kept(Settings {
            beside: threads,
            ..self.0.clone()
        })
    }

    /// Equal panels are one, for as long as the process runs.
    fn kept(settings: Settings) -> Self {
        static ALL: Mutex<BTreeMap<String, &'static Settings>> = Mutex::new(BTreeMap::new());
        let text = format!("{settings:?}");
        let mut all = ALL.lock().expect("nothing panics while it is held");
        Self(
            all.entry(text)
                .or_insert_with(|| Box::leak(Box::new(settings))),
        )
    }

    /// The workload's name.
    #[must_use]
    pub const fn workload(self) -> &'static str {
        self.0.workload.text()
    }

    /// What it compares.
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.0.kind
    }

    /// Threads that run beside those that are counted.
    #[must_use]
    pub const fn more_threads(self) -> usize {
        self.0.beside
    }

    /// The settings.
    pub fn settings(self) -> impl Iterator<Item = (&'static str, &'static Value)> {
        self.0.values.iter().map(|(name, value)| (&**name, value))
    }

    /// A setting, or the workload's name; `None` if there is none of that name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Value> {
        match name {
            "workload" => Some(self.workload().into()),
            name => self.0.values.get(name).cloned(),
        }
    }

    /// A setting that is a whole number.
    #[must_use]
    pub fn number(self, name: &str) -> Option<usize> {
        let number = self.0.values.get(name)?.as_u64()?;
        usize::try_from(number).ok()
    }

    /// The first setting that is a word, if there is one: what threads do, if the workload's name does not say it all.
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        self.0.values.values().find_map(Value::as_str)
    }

    /// Whether another differs in nothing but this setting, and has this value of it.
    #[must_use]
    pub fn is_with(self, other: Self, name: &str, value: usize) -> bool {
        let rest = |panel: Self| {
            panel
                .settings()
                .filter(|(of, _)| *of != name)
                .collect::<Vec<_>>()
        };
        let is_same = self.workload() == other.workload() && rest(self) == rest(other);
        is_same && other.number(name) == Some(value)
    }

    /// The settings as a workload has them.
    ///
    /// # Errors
    /// What is missing, or is no such setting.
    pub fn read<S: DeserializeOwned>(self) -> serde_json::Result<S> {
        match self.0.values.is_empty() {
            true => serde_json::from_value(Value::Null),
            false => serde_json::from_value(Value::Object(self.0.values.clone())),
        }
    }

    /// Takes the fields of a panel from those of a line, of which all that are not `known` are settings.
    pub(super) fn taken(
        line: &mut Map<String, Value>,
        known: &dyn Fn(&str) -> bool,
    ) -> serde_json::Result<Self> {
        let values = line.iter().filter(|(name, _)| !known(name));
        let values = values.map(|(name, value)| (name.clone(), value.clone()));
        let values: Map<_, _> = values.collect();
        values.keys().for_each(|name| _ = line.remove(name));
        serde_json::from_value(Value::Object(values))
    }
}

impl Default for Panel {
    fn default() -> Self {
        Self::new("", Kind::default(), "", &())
    }
}

impl PartialEq for Panel {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl fmt::Debug for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// In words.
impl fmt::Display for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.says.fmt(f)
    }
}

impl Serialize for Panel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let own = [
            ("workload", Value::from(self.workload())),
            ("of", serde_json::to_value(self.kind()).expect("a word")),
            ("panel", self.to_string().into()),
        ];
        let beside = (self.0.beside > 0).then(|| ("beside", self.0.beside.into()));
        let own = own.into_iter().chain(beside);
        let settings = self.settings().map(|(name, value)| (name, value.clone()));
        serializer.collect_map(own.chain(settings))
    }
}

impl<'de> Deserialize<'de> for Panel {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        let mut values = Map::deserialize(line)?;
        let mut own = |name| values.remove(name);
        let [workload, kind, says, beside] = OWN.map(&mut own);
        let text = |name: &'static str, value: Option<Value>| match value {
            Some(Value::String(text)) => Ok(Name::new(&text)),
            _ => Err(D::Error::missing_field(name)),
        };
        let kind = kind.map(serde_json::from_value).transpose();
        Ok(Self::kept(Settings {
            workload: text("workload", workload)?,
            kind: kind.map_err(D::Error::custom)?.unwrap_or_default(),
            says: text("panel", says)?,
            beside: beside.and_then(|threads| threads.as_u64()).unwrap_or(0) as usize,
            values,
        }))
    }
}

/// The acquisitions of a part of a resource that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The first of each part.
    First,
    /// The later ones.
    Again,
}

impl Phase {
    /// The phase, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first acquisitions",
            Self::Again => "later acquisitions",
        }
    }

    /// The longest acquisition of a latency run, in nanoseconds. No line has this panel: it follows from lines that
    /// have times of both phases.
    #[must_use]
    pub fn longest(self) -> Panel {
        let says = format!("the longest of {}", self.name());
        Panel::new(
            "longest",
            Kind::Others,
            &says,
            &serde_json::json!({ "phase": self }),
        )
    }
}

/// What lines about an address space say beside its throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmStat {
    /// The wait of an acquisition in shared mode.
    ReadWait,
    /// The wait of an acquisition in exclusive mode.
    WriteWait,
    /// The share of `mprotect` that succeeds speculatively.
    Speculated,
    /// The wait of a request for the spin lock of a tree lock.
    TreeWait,
    /// The share that this has in the waits of the tree lock.
    TreeShare,
    /// The rest: waits for conflicting requests.
    RangeShare,
}

impl VmStat {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ReadWait,
        Self::WriteWait,
        Self::Speculated,
        Self::TreeWait,
        Self::TreeShare,
        Self::RangeShare,
    ];

    /// It, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWait => "waits of readers",
            Self::WriteWait => "waits of writers",
            Self::Speculated => "percent of mprotect that succeed speculatively",
            Self::TreeWait => "waits for the tree's spin lock",
            Self::TreeShare => "percent of waits that are for the tree's spin lock",
            Self::RangeShare => "percent of waits that are for other requests",
        }
    }

    /// How long acquisitions of an address space's lock waited, in nanoseconds on average, or how many of a hundred
    /// calls of `mprotect` succeeded speculatively. No line has this panel: it follows from lines of that one.
    #[must_use]
    pub fn of(self, panel: Panel) -> Panel {
        let words = ["traffic", "pace"].map(|name| panel.get(name));
        let words = words.map(|word| word.and_then(|word| word.as_str().map(str::to_owned)));
        let [traffic, pace] = words.map(Option::unwrap_or_default);
        let says = format!("{}, {traffic}, {pace}", self.name());
        let settings = serde_json::json!({ "stat": self, "traffic": traffic, "pace": pace });
        Panel::new("vm-stat", Kind::Others, &says, &settings)
    }
}
