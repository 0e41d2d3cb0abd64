//! What a simulated machine is made of, with the source of each number.

use machines::Machine;
use serde_json::Value;

/// The remarks at the head of the machine's file, and its numbers in the file's order: name, value, source.
#[must_use]
pub fn parameters(machine: &Machine) -> (String, Vec<[String; 3]>) {
    let value = serde_json::to_value(machine).unwrap_or_default();
    let cycles = value.get("cycles").cloned().unwrap_or_default();
    let number = |name: &str| {
        let found = value.get(name).or_else(|| cycles.get(name));
        found.filter(|value| value.is_number())
    };
    let row = |name: &str, value: &Value, source: &str| {
        [name, &value.to_string(), source.trim()].map(str::to_owned)
    };
    // The name of a varied machine is the file's, a colon, and the variation.
    let file = machine.name.split(':').next().unwrap_or_default();
    let text = Machine::text(file).unwrap_or_default();
    let remarks = text.lines().filter_map(|line| line.strip_prefix('#'));
    let remarks: Vec<_> = remarks.map(str::trim).collect();
    let of_file = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" = ")?;
        let value = number(name)?;
        let whole = (rest, "what the machine is");
        let (written, source) = rest.split_once('#').unwrap_or(whole);
        let is_same = written.trim().parse().ok() == value.as_f64();
        Some(row(
            name,
            value,
            if is_same { source } else { "not the file's" },
        ))
    });
    let mut rows: Vec<_> = of_file.collect();
    if rows.is_empty() {
        let all = [&value, &cycles].into_iter().filter_map(Value::as_object);
        let numbers = all.flatten().filter(|(_, value)| value.is_number());
        rows.extend(numbers.map(|(name, value)| row(name, value, "a machine without a file here")));
    }
    (remarks.join(" "), rows)
}
