//! What a simulated machine is made of, with the source of each number.

use crate::sim::Machine;
use serde_json::Value;

/// A number of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}

/// Remarks that the machine's file begins with, and its numbers in the file's order.
#[must_use]
pub fn parameters(machine: &Machine) -> (String, Vec<Parameter>) {
    let value = serde_json::to_value(machine).unwrap_or_default();
    let cycles = value.get("cycles").cloned().unwrap_or_default();
    let of = |name: &str| value.get(name).or_else(|| cycles.get(name));
    let (mut remarks, mut all) = (Vec::new(), Vec::new());
    let file = machine.name.split(':').next().unwrap_or_default(); // After it stands what was varied.
    for line in Machine::text(file).unwrap_or_default().lines() {
        if let Some(remark) = line.strip_prefix('#') {
            remarks.push(remark.trim());
        }
        let Some((name, rest)) = line.split_once(" = ") else {
            continue;
        };
        let Some(value) = of(name).filter(|value| value.is_number()) else {
            continue;
        };
        let (number, source) = rest
            .split_once('#')
            .unwrap_or((rest, "what the machine is"));
        let is_same = number.trim().parse().ok() == value.as_f64();
        let source = if is_same { source } else { "not the file's" };
        all.push(parameter(name, value, source));
    }
    if all.is_empty() {
        let unknown = "a machine without a file here";
        let numbers = [&value, &cycles]
            .into_iter()
            .filter_map(Value::as_object)
            .flatten();
        let numbers = numbers.filter(|(_, value)| value.is_number());
        all.extend(numbers.map(|(name, value)| parameter(name, value, unknown)));
    }
    (remarks.join(" "), all)
}

fn parameter(name: &str, value: &Value, source: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        value: value.to_string(),
        source: source.trim().to_owned(),
    }
}
