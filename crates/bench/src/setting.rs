//! What a lock is made for, and what users may choose about it.

use crate::arr::SLOTS;
use std::ops::RangeInclusive;

/// What is locked.
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

/// What a lock is made from.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// What it is for.
    pub resource: Resource,
    /// What users chose.
    pub values: Values,
}

impl Setting {
    /// Positions from 0 up to this are used.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.resource.units
    }

    /// Positions that a lock of blocks treats as one: what users chose, or else as exact as the resource needs.
    #[must_use]
    pub fn block(&self) -> u64 {
        self.values.get(BLOCK).unwrap_or(self.resource.grain)
    }
}

/// The knob of locks that divide a resource into blocks.
pub const BLOCK: &str = "block";

/// How many ranges a thread may hold at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Any number.
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

/// Something that users may choose about a lock.
#[derive(Debug)]
pub struct Knob {
    /// What they call it.
    pub key: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What they may set it to.
    pub allowed: RangeInclusive<u64>,
}

/// What users chose. Lives as long as the program, as its arguments do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values(&'static [(&'static str, u64)]);

impl Values {
    /// Nothing.
    pub const NONE: Self = Self(&[]);

    /// What was chosen for a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| *known == key);
        found.map(|&(_, value)| value)
    }

    /// Of `key=value:key=value:…` for a lock with these knobs.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn parse(lock: &str, knobs: &'static [Knob], text: &str) -> Result<Self, String> {
        let allowed = || match knobs {
            [] => format!("{lock} takes no parameters"),
            knobs => {
                let each = knobs.iter().map(|knob| {
                    let Knob {
                        key,
                        about,
                        allowed,
                    } = knob;
                    let (least, most) = (allowed.start(), allowed.end());
                    format!("{key}={least}..={most} ({about})")
                });
                let each: Vec<_> = each.collect();
                format!("{lock} takes, separated by ':', {}", each.join(", "))
            }
        };
        let mut values = Vec::new();
        for part in text.split(':') {
            let wrong = || format!("'{part}' is not understood: {}", allowed());
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            let knob = knobs.iter().find(|knob| knob.key == key);
            let knob = knob.ok_or_else(wrong)?;
            let value = value.parse().ok();
            let value = value.filter(|value| knob.allowed.contains(value));
            let value = value.ok_or_else(wrong)?;
            if values.iter().any(|&(known, _)| known == knob.key) {
                return Err(format!("'{key}' is given twice: {}", allowed()));
            }
            values.push((knob.key, value));
        }
        Ok(Self(values.leak()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Holds, Knob, Resource, Setting, Values};

    const KNOBS: &[Knob] = &[
        Knob {
            key: "h",
            about: "levels",
            allowed: 1..=16,
        },
        Knob {
            key: "block",
            about: "units",
            allowed: 1..=u64::MAX,
        },
    ];

    #[test]
    fn parameters_are_read_and_wrong_ones_told_what_is_allowed() {
        let parse = |text| Values::parse("song", KNOBS, text);
        let both = parse("block=18446744073709551615:h=16").unwrap();
        assert_eq!(
            (both.get("h"), both.get("block")),
            (Some(16), Some(u64::MAX))
        );
        assert_eq!(both.get("x"), None);
        for wrong in [
            "", "h", "h=", "h=0", "h=17", "h=-1", "h=1.5", "H=4", "x=1", "h=1:", ":h=1", "h=1:h=2",
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
            let values = Values::parse("bitmap", KNOBS, block).unwrap();
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
