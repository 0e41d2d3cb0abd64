//! The resource that a lock is made for, and the parameters that users choose.

use serde::Deserialize;
use std::fmt;
use std::ops::RangeInclusive;

/// The resource that is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// Positions from 0 up to this are used.
    pub units: u64,
    /// All ranges begin and end at multiples of this.
    pub grain: u64,
}

impl Resource {
    /// The slots of an array.
    pub const ARRAY: Self = Self {
        units: SLOTS as u64,
        grain: 1,
    };
}

/// The number of slots of ArrBench's array (P1 §7.1).
pub const SLOTS: usize = 256;

/// The largest number of threads: each must have a slot of its own.
pub const MAX_THREADS: usize = SLOTS;

/// The one of that name, as users write it.
///
/// # Errors
/// The names that were expected instead.
pub fn named<T, N: ToString>(
    text: &str,
    all: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> N,
) -> Result<T, String> {
    let mut names = Vec::new();
    for one in all {
        names.push(name(&one).to_string());
        if names.last().is_some_and(|name| name == text) {
            return Ok(one);
        }
    }
    Err(format!("expected one of {}", names.join(", ")))
}

/// The input of a lock's constructor.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The resource that it is for.
    pub resource: Resource,
    /// The parameters that users chose.
    pub values: Values,
}

impl Setting {
    /// Positions from 0 up to this are used.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.resource.units
    }

    /// Positions that a lock of blocks treats as one: the users' choice, or else the resource's grain.
    #[must_use]
    pub fn block(&self) -> u64 {
        self.values.get(BLOCK).unwrap_or(self.resource.grain)
    }
}

/// The parameter of locks that divide a resource into blocks.
pub const BLOCK: &str = "block";

/// How many ranges a thread may hold at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// Any number.
    #[default]
    Many,
    /// One: it locks the whole resource, and another would wait for the first.
    One,
    /// One in each block: see [`BLOCK`].
    OnePerBlock,
}

impl Holds {
    /// Why several disjoint ranges could wait for each other; `None` if they cannot.
    #[must_use]
    pub fn one_because(self, setting: &Setting) -> Option<&'static str> {
        match self {
            Self::One => Some("locks the whole"),
            Self::OnePerBlock if !setting.resource.grain.is_multiple_of(setting.block()) => {
                Some("ranges share blocks")
            }
            Self::Many | Self::OnePerBlock => None,
        }
    }
}

/// A parameter of a lock, which users may choose.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub key: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its allowed values.
    pub allowed: RangeInclusive<u64>,
}

/// As `key=least..=most (what it is)`.
impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.allowed.start(), self.allowed.end());
        write!(f, "{}={least}..={most} ({})", self.key, self.about)
    }
}

/// The parameters that users chose. Lives as long as the program, as its arguments do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values(&'static [(&'static str, u64)]);

impl Values {
    /// No parameter.
    pub const NONE: Self = Self(&[]);

    /// The value for a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| *known == key);
        found.map(|&(_, value)| value)
    }

    /// All combinations of `key=value:key=value:…` for a lock with these parameters; a value may be several, as `a..b`
    /// with both included or `a,b,…`.
    ///
    /// # Errors
    /// The part that was not understood, and the expected form.
    pub fn parse(lock: &str, params: &'static [Param], text: &str) -> Result<Vec<Self>, String> {
        let mut all: Vec<Vec<(&'static str, u64)>> = vec![Vec::new()];
        for part in text.split(':') {
            let wrong = |what| format!("'{part}' {what}: {}", allowed(lock, params));
            let not_understood = || wrong("is not understood");
            let (key, values) = part.split_once('=').ok_or_else(not_understood)?;
            let param = params.iter().find(|param| param.key == key);
            let param = param.ok_or_else(not_understood)?;
            if all.iter().flatten().any(|&(known, _)| known == param.key) {
                return Err(wrong("has a key that was given before"));
            }
            let values = param.several(values).ok_or_else(not_understood)?;
            let with_each = |before: Vec<_>| {
                let each = values.iter().map(move |&value| {
                    let mut values = before.clone();
                    values.push((param.key, value));
                    values
                });
                each.collect::<Vec<_>>()
            };
            if all.len() * values.len() > MAX_SWEEP {
                return Err(wrong("makes more than a thousand locks"));
            }
            all = all.into_iter().flat_map(with_each).collect();
        }
        Ok(all.into_iter().map(|values| Self(values.leak())).collect())
    }
}

/// As it is written: `key=value:key=value:…`.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (key, value)) in self.0.iter().enumerate() {
            let colon = if number == 0 { "" } else { ":" };
            write!(f, "{colon}{key}={value}")?;
        }
        Ok(())
    }
}

/// The most locks that one text makes.
const MAX_SWEEP: usize = 1000;

impl Param {
    /// Of `n`, `a..b` or `a..=b`, some of them separated by commas.
    fn several(&self, text: &str) -> Option<Vec<u64>> {
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once("..") {
                Some((first, last)) => (first, last.strip_prefix('=').unwrap_or(last)),
                None => (part, part),
            };
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            let allowed = self.allowed.contains(&first) && self.allowed.contains(&last);
            // One too many is enough to refuse them.
            let values = (first..=last).take(MAX_SWEEP + 1);
            if !allowed || first > last {
                return None;
            }
            all.extend(values);
        }
        Some(all)
    }
}

/// The form that users may write.
fn allowed(lock: &str, params: &[Param]) -> String {
    if params.is_empty() {
        return format!("{lock} takes no parameters");
    }
    let each: Vec<_> = params.iter().map(ToString::to_string).collect();
    format!("{lock} takes, separated by ':', {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Holds, Param, Resource, Setting, Values};

    const PARAMS: &[Param] = &[
        Param {
            key: "h",
            about: "levels",
            allowed: 1..=16,
        },
        Param {
            key: "block",
            about: "units",
            allowed: 1..=u64::MAX,
        },
    ];

    #[test]
    fn parameters_are_read_and_wrong_ones_told_what_is_allowed() {
        let parse = |text| Values::parse("song", PARAMS, text);
        let written = |text| {
            let all = parse(text).unwrap().into_iter();
            all.map(|values| values.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            written("h=3..5,9:block=7"),
            ["h=3:block=7", "h=4:block=7", "h=5:block=7", "h=9:block=7"]
        );
        assert_eq!(
            written("block=1,2:h=1..=2"),
            ["block=1:h=1", "block=1:h=2", "block=2:h=1", "block=2:h=2"]
        );
        let too_many = parse("block=1..18446744073709551615").unwrap_err();
        assert!(too_many.contains("a thousand"), "{too_many}");
        let [both] = parse("block=18446744073709551615:h=16").unwrap()[..] else {
            panic!("several")
        };
        assert_eq!(
            (both.get("h"), both.get("block")),
            (Some(16), Some(u64::MAX))
        );
        assert_eq!(both.get("x"), None);
        for wrong in [
            "",
            "h",
            "h=",
            "h=0",
            "h=17",
            "h=-1",
            "h=1.5",
            "H=4",
            "x=1",
            "h=1:",
            ":h=1",
            "h=1:h=2",
            "h=2..1",
            "h=1..17",
            "h=1..",
            "h=1,",
            "h=1..2..3",
            "h=..",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains("h=1..=16 (levels)"), "{wrong}: {error}");
        }
        let none = Values::parse("null", &[], "h=1").unwrap_err();
        assert!(none.contains("null takes no parameters"), "{none}");
    }

    #[test]
    fn blocks_that_divide_the_grain_keep_ranges_apart() {
        let several = |block| {
            let values = Values::parse("bitmap", PARAMS, block).unwrap()[0];
            let resource = Resource {
                units: 8192,
                grain: 1024,
            };
            Holds::OnePerBlock.one_because(&Setting { resource, values })
        };
        assert_eq!(several("block=512"), None);
        assert_eq!(several("block=1024"), None);
        for wider in ["block=2048", "block=600"] {
            assert!(several(wider).is_some(), "{wider}");
        }
    }
}
