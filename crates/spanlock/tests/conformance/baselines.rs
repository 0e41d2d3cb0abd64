//! Locks that ours are compared with. Other tests do without them: the published package has no `spanlock-workbench`.

use crate::common::SEGMENTS;
use spanlock_workbench::baseline::{Bitmap, HEIGHT, KernelRw, LustreEx, Pnova, Song};

pub fn kernel_rw() -> KernelRw {
    KernelRw::new()
}

pub fn lustre_ex() -> LustreEx {
    LustreEx::new()
}

pub fn song() -> Song {
    Song::new(HEIGHT)
}

pub fn song_one_level() -> Song {
    Song::new(1)
}

/// Segments of one position, as many as above.
pub fn pnova() -> Pnova {
    Pnova::new(SEGMENTS as u64, 1)
}

/// Blocks of one position, as many as there are segments above.
pub fn bitmap() -> Bitmap {
    Bitmap::new(SEGMENTS as u64, 1)
}
