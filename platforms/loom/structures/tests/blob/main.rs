//! Models of the ranges of an area. Positions show numbers in cells whose accesses loom checks.

mod mutants;

use prim::atomic::{AtomicBool, Ordering};
use prim::cell::UnsafeCell;
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_structures_loom::blob::Error;
use spanlock_structures_loom::blob::raw::{Piece, Ranges, Shown, Space, Window};
use spanlock_testkit_loom::{locks, models};
use spanlock_workbench_loom::Bitmap;
use std::sync::Arc;

/// The positions of an area, and what each shows.
struct Cells {
    shows: Vec<UnsafeCell<Option<usize>>>,
    /// The next call to show or to hide fails, after half of its work.
    fails: AtomicBool,
}

const FAILED: Error = Error::System {
    call: "model",
    errno: 1,
};

impl Cells {
    fn new(positions: usize) -> Self {
        Self {
            shows: (0..positions).map(|_| UnsafeCell::new(None)).collect(),
            fails: AtomicBool::new(false),
        }
    }

    fn at(&self, position: usize) -> Option<usize> {
        // SAFETY: loom reports the race, if there is one.
        self.shows[position].with(|shows| unsafe { *shows })
    }

    fn set(&self, position: usize, number: Option<usize>) {
        // SAFETY: as above.
        self.shows[position].with_mut(|shows| unsafe { *shows = number });
    }

    /// Whether this call is the one to fail.
    fn fails(&self) -> bool {
        self.fails.swap(false, Ordering::Relaxed)
    }
}

impl Window for Cells {
    fn bytes(&self) -> usize {
        self.shows.len()
    }

    unsafe fn show(&self, at: usize, pieces: impl Iterator<Item = Piece>) -> Result<(), Error> {
        let numbers = pieces.flat_map(|Piece { offset, bytes }| offset..offset + bytes);
        for (position, number) in (at..).zip(numbers) {
            assert_eq!(self.at(position), None, "an alias is left there");
            self.set(position, Some(number));
            if self.fails() {
                return Err(FAILED);
            }
        }
        Ok(())
    }

    unsafe fn hide(&self, at: usize, bytes: usize) -> Result<(), Error> {
        if self.fails() {
            return Err(FAILED);
        }
        (at..at + bytes).for_each(|position| self.set(position, None));
        Ok(())
    }
}

/// An area that threads share.
struct World<R: Ranges>(Space<R, Cells>);

/// What a thread does in a world.
type Act<R> = fn(&World<R>);

impl<R: Ranges + Send + Sync + 'static> World<R> {
    /// An area of two positions.
    fn new(lock: R) -> Arc<Self> {
        Arc::new(Self(Space::new(lock, Cells::new(2))))
    }

    /// Shows so many numbers from `first` on.
    fn take(&self, first: usize, bytes: usize) -> Result<Shown<'_, R, Cells>, Error> {
        let piece = Piece {
            offset: first,
            bytes,
        };
        self.0.take([piece].into_iter())
    }

    /// Shows them, and reads them.
    fn read(&self, first: usize, bytes: usize) -> Result<(), Error> {
        let shown = self.take(first, bytes)?;
        for number in 0..bytes {
            assert_eq!(
                self.0.window().at(shown.at() + number),
                Some(first + number)
            );
        }
        Ok(())
    }

    fn run<const N: usize>(self: &Arc<Self>, acts: [Act<R>; N]) {
        let threads = acts.map(|act| {
            let world = Arc::clone(self);
            prim::thread::spawn(move || act(&world))
        });
        for thread in threads {
            thread.join().expect("loom reports panics itself");
        }
    }

    /// Nothing is left, and all of the area can be had.
    fn is_free(&self) {
        self.read(50, 2).expect("nobody is there");
        for position in 0..2 {
            assert_eq!(self.0.window().at(position), None, "an alias is left there");
        }
    }
}

/// Both want the only place for a whole area.
fn two_of_one_place<R: Ranges + Send + Sync + 'static>(world: &Arc<World<R>>) {
    let acts: [Act<R>; 2] = [
        |world| assert!(matches!(world.read(10, 2), Ok(()) | Err(Error::AreaFull))),
        |world| assert!(matches!(world.read(20, 2), Ok(()) | Err(Error::AreaFull))),
    ];
    world.run(acts);
    world.is_free();
}

/// One wants half of the area while another wants all of it, and then half.
fn one_of_two_places_and_all<R: Ranges + Send + Sync + 'static>(world: &Arc<World<R>>) {
    let acts: [Act<R>; 2] = [
        |world| assert!(matches!(world.read(10, 2), Ok(()) | Err(Error::AreaFull))),
        |world| {
            for first in [20, 30] {
                assert!(matches!(
                    world.read(first, 1),
                    Ok(()) | Err(Error::AreaFull)
                ));
            }
        },
    ];
    world.run(acts);
    world.is_free();
}

/// A call of either thread fails. What cannot be shown leaves nothing; what cannot be hidden is nobody's.
fn one_call_fails<R: Ranges + Send + Sync + 'static>(world: &Arc<World<R>>) {
    world.0.window().fails.store(true, Ordering::Relaxed);
    let acts: [Act<R>; 2] = [|world| _ = world.read(10, 2), |world| _ = world.read(20, 2)];
    world.run(acts);
    world.is_free();
}

/// What one thread cannot hide, another does not find.
fn one_alias_stays<R: Ranges + Send + Sync + 'static>(world: &Arc<World<R>>) {
    let shown = world.take(10, 1).expect("it is free");
    world.0.window().fails.store(true, Ordering::Relaxed);
    drop(shown);
    let acts: [Act<R>; 2] = [
        |world| assert!(matches!(world.read(20, 1), Ok(()) | Err(Error::AreaFull))),
        |world| assert!(matches!(world.read(30, 2), Err(Error::AreaFull))),
    ];
    world.run(acts);
}

locks! {
    bitmap: RangeMutex<Bitmap> = RangeMutex::from_raw(Bitmap::new(2, 1));
    mutex: RangeMutex = RangeMutex::new();
    lock: RangeLock = RangeLock::new();
}

models! {
    two_of_one_place: 3 on bitmap, 2 on mutex lock;
    one_of_two_places_and_all: 3 on bitmap, 2 on mutex;
    one_call_fails: 3 on bitmap, 2 on mutex;
    one_alias_stays: 3 on bitmap, 2 on mutex;
}
