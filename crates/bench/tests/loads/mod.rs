//! What the tests of reader-writer locks run.

use spanlock_records::record::Panel;
use spanlock_records::trial::settings::Settings;
use spanlock_workbench::rw::{alternator, hash_table, interference, readers, rwbench, test_rwlock};

/// Writers, so many of the whole, with the paper's work.
pub fn mixed(writes: f64) -> Panel {
    let (inside, outside) = (10, 199);
    let load = rwbench::Load {
        writes,
        inside,
        outside,
    };
    load.panel()
}

/// One of each, small.
pub fn loads() -> [Panel; 6] {
    [
        interference::Load { pool: 3 }.panel(),
        alternator::Load.panel(),
        test_rwlock::Load { pause: 100 }.panel(),
        mixed(0.5),
        hash_table::Load { entries: 64 }.panel(),
        readers::Load.panel(),
    ]
}
