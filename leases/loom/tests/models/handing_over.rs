//! A block goes from one machine to another and back, by an engine of one lease.

use crate::world::{Few, Resource, World};
use prim::Model;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::sync::Mutex;
use std::sync::Arc;

/// Who has the lease, and whether somebody waits for it.
#[derive(Default)]
struct State {
    is_held: bool,
    is_wished_for: bool,
}

/// Grants one lease at a time.
struct Engine {
    state: Mutex<State>,
    changes: AtomicU32,
}

impl Engine {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::default()),
            changes: AtomicU32::new(0),
        })
    }

    /// Waits until the state is as it is to be, and changes it.
    fn when(&self, mut try_to: impl FnMut(&mut State) -> bool) {
        loop {
            let mut state = self.state.lock();
            // Relaxed: the mutex orders.
            let now = self.changes.load(Ordering::Relaxed);
            let before = (state.is_held, state.is_wished_for);
            let done = try_to(&mut state);
            let changed = before != (state.is_held, state.is_wished_for);
            if changed {
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
            drop(state);
            if changed {
                futex::wake_all(&self.changes);
            }
            if done {
                return;
            }
            // What was changed above is no news.
            futex::wait(&self.changes, now + u32::from(changed), None);
        }
    }

    fn acquire(&self) {
        self.when(|state| {
            let is_free = !state.is_held;
            (state.is_held, state.is_wished_for) = (true, !is_free);
            is_free
        });
    }

    fn release(&self) {
        self.when(|state| {
            state.is_held = false;
            true
        });
    }

    fn until_wished_for(&self) {
        self.when(|state| state.is_wished_for);
    }
}

type Machine = Arc<World<Few>>;

/// Uses a position, under a block that it brings if there is none. Whether it did.
fn works(machine: &World<Few>, engine: &Engine, number: usize) -> bool {
    let mut brings = false;
    while !machine.write(0..1) {
        assert!(!brings, "what it brings it finds");
        engine.acquire();
        machine.bring(number, 0..2);
        brings = true;
    }
    brings
}

fn gives_up(machine: &World<Few>, engine: &Engine, number: usize) {
    assert!(machine.give_up(number));
    engine.release();
}

/// A machine has the block, and works again. Another one wishes for it, works and gives it up. Both get on, whoever is
/// the first to have it anew.
#[test]
fn two_machines_get_on() {
    Model::new(Some(2)).check(|| {
        let (resource, engine) = (Resource::new(), Engine::new());
        let first: Machine = World::of(Arc::clone(&resource), Few::new());
        let second: Machine = World::of(resource, Few::new());
        assert!(works(&first, &engine, 0));
        let keeper = first.spawn({
            let engine = Arc::clone(&engine);
            move |first| {
                engine.until_wished_for();
                gives_up(first, &engine, 0);
            }
        });
        let other = second.spawn({
            let engine = Arc::clone(&engine);
            move |second| {
                assert!(works(second, &engine, 1));
                gives_up(second, &engine, 1);
            }
        });
        if works(&first, &engine, 2) {
            gives_up(&first, &engine, 2);
        }
        keeper.join().expect("loom reports panics itself");
        other.join().expect("loom reports panics itself");
    });
}
