//! Processes that are stopped and killed at work, and a server that crashes.

use crate::child::{Child, Client};
use crate::server::Server;
use crate::store::{Checks, Store};
use spanlock_lease::Mode::Exclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_millis(400);

/// A process reads, and is stopped. Its lease runs out, and another client reads and writes. Then it goes on, and
/// writes without a look at its lease.
fn with_a_late_write(server: &Server, checks: Checks) -> Store {
    let store = Store::new(checks);
    store.stop_the_next();
    let late = Child::start(server, &store, "1", TTL);
    store.stopped();
    let next = server
        .lease()
        .acquire(0..4, Exclusive, Duration::from_secs(60))
        .wait()
        .unwrap();
    let mut client = Client::new(store.socket.to_str().unwrap());
    let read = client.read(&next).expect("its fence is the largest");
    assert!(client.write(&next, &read));
    late.go_on();
    store.wait_for_writes(2);
    drop(late);
    store
}

pub fn a_late_write_is_refused(server: &Server) {
    let store = with_a_late_write(server, Checks::Fences);
    assert_eq!(store.refused(), 1);
    store.is_explained();
}

/// So the history finds what fences prevent.
pub fn a_late_write_without_fences_is_found(server: &Server) {
    let store = with_a_late_write(server, Checks::Nothing);
    assert_eq!(store.refused(), 0);
    let explained = catch_unwind(AssertUnwindSafe(|| store.is_explained()));
    assert!(
        explained.is_err(),
        "the history has an order, although an update was lost"
    );
}

pub fn no_update_is_lost(server: &Server) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::seed(seed);
    let store = Store::new(Checks::Fences);
    let start = || Child::start(server, &store, "60", TTL);
    let mut children: Vec<Child> = (0..3).map(|_| start()).collect();
    let rounds = std::env::var("SPANLOCK_LEASE_ROUNDS")
        .map_or(12, |rounds| rounds.parse().expect("a number"));
    for _ in 0..rounds {
        server.steps.fetch_add(1, Relaxed);
        thread::sleep(Duration::from_millis(fastrand::u64(..200)));
        let child = &mut children[fastrand::usize(..3)];
        match fastrand::u32(..5) {
            0 => server.crash(),
            1 | 2 => {
                child.kill();
                *child = start();
            }
            _ => {
                child.stop();
                thread::sleep(TTL + TTL / 2);
                child.go_on();
            }
        }
        if child.has_ended() {
            *child = start();
        }
    }
    for child in &mut children {
        child.wait();
    }
    println!("{} writes were refused", store.refused());
    store.is_explained();
}
