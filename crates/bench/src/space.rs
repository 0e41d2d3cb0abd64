//! The variants of address spaces, by name: on hardware, and simulated.

use crate::known::{self, Row, known};
use spanlock_records::record::lock::Lock;
use spanlock_records::trial::lock::Exclusion;
use spanlock_workbench::crew::Meter;
use spanlock_workbench::vm::{Load, Trial, variants as measured};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A variant on hardware.
pub type Variant = known::Measured<Load>;

/// All of them, on hardware.
pub static MEASURED: LazyLock<Vec<Variant>> = LazyLock::new(|| {
    let mut all = Measured(Vec::new());
    measured::all(&mut all);
    all.0
});

struct Measured(Vec<Variant>);

impl measured::Table for Measured {
    fn variant<L: measured::Lock>(&mut self, variant: measured::Variant, make: fn() -> L) {
        let run = move |trial: &Trial, meter: &mut dyn Meter| {
            let outcome = spanlock_workbench::vm::run(make, variant, trial, meter, &pass);
            Ok(outcome)
        };
        self.0
            .push(Row::new(variant.name, variant.about, Box::new(run)));
    }
}

/// Passes some time: by sleeping, if it is so long that the inaccuracy of a wake-up does not matter.
fn pass(time: Duration) {
    const SLEEP: Duration = Duration::from_millis(1);
    if time >= SLEEP {
        std::thread::sleep(time);
        return;
    }
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A variant as records have it. Its family is its lock's, the first word of its name.
fn recorded(name: &str) -> Lock {
    let family = name.split('-').next().unwrap_or(name).to_owned();
    let exclusion = Exclusion::Promised;
    Lock {
        family,
        exclusion,
        ..Lock::named(name)
    }
}

known! {
    Variant: |row| recorded(row.name), MEASURED.iter();
        "locks" "Variants of the address space, by name; all of them by default"
}

#[cfg(feature = "sim")]
pub use self::simulated::Simulated;

#[cfg(feature = "sim")]
mod simulated {
    use super::recorded;
    use crate::known::{self, Row, known};
    use prim_sim::Machine;
    use spanlock_workbench_sim::vm::{Load, Trial, variants};
    use std::sync::LazyLock;
    use std::time::Duration;

    /// A variant that can be simulated.
    pub type Simulated = known::Simulated<Load>;

    /// All of them, simulated.
    pub static SIMULATED: LazyLock<Vec<Simulated>> = LazyLock::new(|| {
        let mut all = AllSimulated(Vec::new());
        variants::all(&mut all);
        all.0
    });

    struct AllSimulated(Vec<Simulated>);

    impl variants::Table for AllSimulated {
        fn variant<L: variants::Lock>(&mut self, variant: variants::Variant, make: fn() -> L) {
            let run = move |trial: &Trial, machine: &Machine| {
                let cycles = |time: Duration| (time.as_nanos() as f64 * machine.gigahertz) as u64;
                let pass = |time| prim_sim::cost::work(cycles(time));
                spanlock_workbench_sim::vm::run(make, variant, trial, &mut (), &pass)
            };
            self.0
                .push(Row::new(variant.name, variant.about, Box::new(run)));
        }
    }

    known! {
        Simulated: |row| recorded(row.name), SIMULATED.iter();
            "locks" "Variants of the address space, by name; all of them by default"
    }
}
