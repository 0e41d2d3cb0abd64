//! What does not fit in a store, and what explains it.
//!
//! The format cannot always tell what a crash has left from what was damaged. An entry of a log, say, is not whole if a
//! crash came between its stores, and if one of its bytes has changed since. So a finding says what can be said.

use std::fmt;

/// What explains a finding. The later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Damage that loses nothing, since there is a second copy.
    DamagedCopy,
    /// A crash amid a single operation: what was written last is not whole, or was never written. Damage of just that
    /// looks the same.
    Crash,
    /// A crash or damage: what is missing has more behind it, or led to more. A loss of power explains it, or a crash
    /// amid the operations of several threads. So does damage.
    CrashOrDamage,
    /// Damage: no crash explains it.
    Damage,
}

/// Something in a store that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What, and where.
    pub what: String,
    /// What explains it. Opening a store mends everything but [`Cause::Damage`], with which it is refused.
    pub cause: Cause,
}

impl Finding {
    /// Whether no crash explains it.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self.cause, Cause::DamagedCopy | Cause::Damage)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.cause {
            Cause::Crash => "left by a crash",
            Cause::CrashOrDamage => "left by a crash, or damaged",
            Cause::DamagedCopy | Cause::Damage => "damaged",
        };
        write!(f, "{cause}: {}", self.what)
    }
}
