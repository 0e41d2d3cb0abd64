//! Random work by a few threads, under random schedules, on the simulated machine; and oracles that notice when a lock
//! breaks its promises.
//!
//! - *Exclusion*: each place knows its holders, and panics when two of them exclude each other.
//! - *Liveness*: a run in which all threads wait fails. So does a run without end.
//! - *Concurrency*: threads hold what all can hold at a time, and release it only when all hold theirs.
//!
//! | file | content |
//! |---|---|
//! | `case.rs` | a case: the machine and the work that follow from a seed; the search for a seed that fails |
//! | `crew.rs` | the threads of a case, and their meetings |
//! | `isolated.rs` | the search in a process of its own |
//! | `lock.rs` | the locks by name |
//! | `mutant.rs` | the named edges that a run can weaken |
//! | `range/` | the work on range locks |
//! | `rw/` | the work on reader-writer locks |
//! | `vm/` | the work on address spaces, whose histories must be linearisable |
//! | `set/` | the work on ordered maps, whose histories must be linearisable |

mod case;
mod crew;
pub mod isolated;
mod lock;
mod mutant;
mod range;
mod rw;
mod set;
mod vm;

pub use case::{Case, Run, search};
pub use lock::Lock;
pub use mutant::Mutant;

use spanlock_sim::range::raw::Mode;
use spanlock_testkit::exclusion::{Conflict, Holder};

/// The oracle's word for a mode. Its messages name no writer, so all have the same number.
fn holder(mode: Mode) -> Holder {
    match mode {
        Mode::Shared => Holder::Reader,
        Mode::Exclusive => Holder::Writer(0),
    }
}

/// # Panics
/// When the oracle has found a conflict.
#[track_caller]
fn no_conflict(report: Result<(), Conflict>) {
    if let Err(conflict) = report {
        panic!("{conflict}");
    }
}
