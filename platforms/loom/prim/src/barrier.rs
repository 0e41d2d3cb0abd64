//! The asymmetric barrier. Here both sides are a full fence, unless a model asks for less. A separate model covers
//! [`light`](mod@light).
//!
//! With full fences a model cannot tell a light side that is paired with a heavy one from a light side that is paired
//! with an ordinary fence, which on hardware orders nothing. So a model may ask for a barrier that is
//! [apart](crate::Model::barrier_apart) from fences: each side is a read-modify-write of one word that nothing else
//! uses. These have one order, so one of two sides observes what came before the other, and a fence takes no part.

#[path = "../../../../crates/prim/src/barrier/light.rs"]
pub mod light;

use crate::atomic::{AtomicU32, Ordering, fence};

crate::global! {
    static MEETING: AtomicU32 = AtomicU32::new(0);
}

/// Does nothing: a model needs no preparation.
pub fn prepare() {}

/// The light side.
pub fn light() {
    meet();
}

/// The heavy side.
pub fn heavy() {
    meet();
}

fn meet() {
    if crate::SETTING.get().barrier_apart {
        MEETING.fetch_add(1, Ordering::AcqRel);
    } else {
        fence(Ordering::SeqCst);
    }
}
