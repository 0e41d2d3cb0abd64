//! Hardware counters of a run, or the reason for their absence.

use serde::{Deserialize, Serialize};

/// An event that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Cycles of the processor.
    Cycles,
    /// Instructions that were completed.
    Instructions,
    /// Loads that missed the first level of the data cache.
    L1dMisses,
    /// Faults of pages, which the kernel counts on any machine.
    PageFaults,
}

impl Event {
    /// Those of P4's Figure 4.5.
    pub const HARDWARE: &[Self] = &[Self::Cycles, Self::Instructions, Self::L1dMisses];

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::L1dMisses => "L1d misses",
            Self::PageFaults => "page faults",
        }
    }
}

/// A count of an event, or the reason for its absence.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The event.
    pub event: Event,
    /// The count.
    pub times: Result<f64, String>,
}

/// Events per operation: a part of a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The event.
    pub event: Event,
    /// The rate; `None` if the event was not counted.
    pub per_op: Option<f64>,
    /// The reason, if it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

impl Rate {
    /// The rate of a count over so many operations.
    #[must_use]
    pub fn of(count: &Count, ops: u64) -> Self {
        let Count { event, times } = count;
        let per_op = match times {
            Ok(_) if ops == 0 => Err("there was no operation".to_owned()),
            Ok(times) => Ok(times / ops as f64),
            Err(why) => Err(why.clone()),
        };
        Self {
            event: *event,
            per_op: per_op.as_ref().ok().copied(),
            absent: per_op.err(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, Event, Rate};

    #[test]
    fn counts_are_divided_by_operations_if_there_were_any() {
        let count = |times: Result<f64, &str>| Count {
            event: Event::Cycles,
            times: times.map_err(str::to_owned),
        };
        let rate = Rate::of(&count(Ok(500.0)), 200);
        assert_eq!((rate.per_op, rate.absent), (Some(2.5), None));
        let idle = Rate::of(&count(Ok(500.0)), 0);
        assert_eq!(idle.per_op, None);
        assert!(idle.absent.unwrap().contains("no operation"));
        let absent = Rate::of(&count(Err("no such counter")), 200);
        assert_eq!(absent.per_op, None);
        assert_eq!(absent.absent.as_deref(), Some("no such counter"));
    }
}
