//! The settings of a workload as users choose them: arguments of a command, each with one value or several.

use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name, as in lines of JSON.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// The values that it takes.
    pub takes: Takes,
    /// The values unless users choose: on hardware, and on simulated machines.
    pub usual: [&'static str; 2],
    /// Where users may choose.
    pub on: On,
}

/// Values of a setting.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// Whole numbers from one to another, both included.
    Whole(usize, usize),
    /// Parts of the whole: from 0 to 1.
    Part,
    /// Words, of which this makes values of the setting, or says what was expected.
    Words(fn(&str) -> Result<String, String>),
    /// Whether it is so: an option without a value.
    Flag,
}

/// Where a setting is a matter of choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// On hardware and on simulated machines.
    Both,
    /// On hardware alone.
    Hardware,
    /// On simulated machines alone.
    Simulated,
}

impl Argument {
    const fn new(
        name: &'static str,
        takes: Takes,
        usual: &'static str,
        about: &'static str,
    ) -> Self {
        let (usual, on) = ([usual; 2], On::Both);
        Self {
            name,
            about,
            takes,
            usual,
            on,
        }
    }

    /// Whole numbers within these.
    #[must_use]
    pub const fn whole(
        name: &'static str,
        of: RangeInclusive<usize>,
        usual: &'static str,
        about: &'static str,
    ) -> Self {
        Self::new(name, Takes::Whole(*of.start(), *of.end()), usual, about)
    }

    /// Of a hundred operations, so many.
    #[must_use]
    pub const fn percent(name: &'static str, usual: &'static str, about: &'static str) -> Self {
        Self::whole(name, 0..=100, usual, about)
    }

    /// Parts of the whole.
    #[must_use]
    pub const fn part(name: &'static str, usual: &'static str, about: &'static str) -> Self {
        Self::new(name, Takes::Part, usual, about)
    }

    /// Words.
    #[must_use]
    pub const fn words(
        name: &'static str,
        of: fn(&str) -> Result<String, String>,
        usual: &'static str,
        about: &'static str,
    ) -> Self {
        Self::new(name, Takes::Words(of), usual, about)
    }

    /// Whether it is so, which it is not unless users say so.
    #[must_use]
    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Takes::Flag, "false", about)
    }

    /// The same, with another value on simulated machines.
    #[must_use]
    pub const fn simulated(self, usual: &'static str) -> Self {
        let usual = [self.usual[0], usual];
        Self { usual, ..self }
    }

    /// The same, where users may choose there alone.
    #[must_use]
    pub const fn only(self, on: On) -> Self {
        Self { on, ..self }
    }

    /// A value that users wrote.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self.takes {
            Takes::Whole(least, most) => {
                let number = text
                    .parse()
                    .ok()
                    .filter(|number| (least..=most).contains(number));
                let number =
                    number.ok_or_else(|| format!("expected a number from {least} to {most}"))?;
                Ok(number.into())
            }
            Takes::Part => {
                let part = text
                    .parse::<f64>()
                    .ok()
                    .filter(|part| (0.0..=1.0).contains(part));
                Ok(part.ok_or("expected a part from 0 to 1")?.into())
            }
            Takes::Words(of) => of(text).map(Value::from),
            Takes::Flag => Ok((text == "true").into()),
        }
    }
}

/// Each combination of values, the first setting outside: each setting with its values. A flag that is not set is left
/// out.
#[must_use]
pub fn combined(all: &[(&'static str, Vec<Value>)]) -> Vec<Map<String, Value>> {
    let each = |before: Vec<Map<String, Value>>, (name, values): &(&str, Vec<Value>)| {
        let with = |before: &Map<String, Value>, value: &Value| {
            let mut with = before.clone();
            if *value != Value::Bool(false) {
                with.insert((*name).to_owned(), value.clone());
            }
            with
        };
        let combine = |before: &Map<_, _>| {
            values
                .iter()
                .map(|value| with(before, value))
                .collect::<Vec<_>>()
        };
        before.iter().flat_map(combine).collect()
    };
    all.iter().fold(vec![Map::new()], each)
}
