//! What the tests of reader-writer locks run.

use spanlock_records::trial::rw::Load;

/// One of each, small.
pub const LOADS: [Load; 6] = [
    Load::Interference { pool: 3 },
    Load::Alternator,
    Load::TestRwlock { pause: 100 },
    Load::rwbench(0.5),
    Load::HashTable { entries: 64 },
    Load::Readers,
];
