//! Bits of blocks. Where a slot is to be in a word of its own, 64 slots are one position.

use crate::world::World;
use prim::clock::{Duration, Instant};
use prim::model;
use spanlock::range::Span;
use spanlock::range::raw::{RawRangeMutex, Wait};
use spanlock_baseline_loom::{Bitmap, BitmapToken};

/// A bitmap with so many words for each position.
struct Sparse(Bitmap);

impl Sparse {
    fn new() -> Self {
        Self(Bitmap::new(8 * 64, 1))
    }
}

// SAFETY: the inner lock's promise; ranges overlap as they did before each end was multiplied.
unsafe impl RawRangeMutex for Sparse {
    type Token = BitmapToken;

    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<BitmapToken> {
        let wide = Span::of(64 * span.start()..=64 * span.last() + 63);
        self.0.lock_exclusive(wide.expect("not empty"), wait)
    }

    unsafe fn unlock(&self, token: BitmapToken) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock(token) };
    }
}

#[test]
fn two_writers_overlapping() {
    model(Some(3), || {
        let world = World::new(Bitmap::new(8, 1));
        let other = world.spawn(|world| world.write(0..2).done());
        world.write(1..3).done();
        other.join().unwrap();
    });
}

/// They share the middle one of three words.
#[test]
fn two_writers_overlapping_in_one_of_several_words() {
    model(Some(3), || {
        let world = World::new(Sparse::new());
        let other = world.spawn(|world| world.write(0..2).done());
        world.write(1..3).done();
        other.join().unwrap();
    });
}

/// Each takes a word that the other is refused: both go back, and both get in.
#[test]
fn a_refused_request_rolls_back() {
    model(Some(2), || {
        let world = World::new(Sparse::new());
        let held = world.write(1..2);
        let other = world.spawn(|world| world.write_within(0..2, Wait::Never).is_some());
        let refused = world.write_within(0..3, Wait::Never);
        assert!(refused.is_none());
        assert!(!other.join().unwrap());
        held.done();
        world.write_within(0..8, Wait::Never).unwrap().done();
    });
}

/// Different bits of one word, changed at the same time: none is lost.
#[test]
fn neighbours_in_a_word_coexist() {
    model(None, || {
        let world = World::new(Bitmap::new(8, 1));
        let mine = world.write(0..2);
        let other = world.spawn(|world| world.write(2..4).done());
        other.join().unwrap();
        mine.done();
        assert!(world.write_within(0..8, Wait::Never).is_some());
    });
}

#[test]
fn neighbours_come_and_go_in_a_word() {
    model(None, || {
        let world = World::new(Bitmap::new(8, 1));
        let other = world.spawn(|world| world.write(2..4).done());
        world.write(0..2).done();
        other.join().unwrap();
        assert!(world.write_within(0..8, Wait::Never).is_some());
    });
}

#[test]
fn who_gives_up_leaves_nothing() {
    model(Some(2), || {
        let world = World::new(Sparse::new());
        let other = world.spawn(|world| {
            let soon = Wait::Until(Instant::now() + Duration::from_micros(3));
            if let Some(hold) = world.write_within(0..2, soon) {
                hold.done();
            }
        });
        world.write(1..3).done();
        other.join().unwrap();
        assert!(world.write_within(0..8, Wait::Never).is_some());
    });
}
