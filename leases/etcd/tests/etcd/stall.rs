//! A cluster of three whose leader stands still while leases are held, renewed and waited for.

use crate::history::history;
use crate::server::Server;
use spanlock_lease::{Lost, Mode, RangeLease, RequestId, Token};
use spanlock_lease_testkit::order::{Grant, Wrong, wrong};
use spanlock_lease_testkit::server::Engines as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const CLIENTS: usize = 3;
const POSITIONS: u64 = 4;
const TTL: Duration = Duration::from_secs(8);

/// So many leases are granted before the leader stops, and so many after it.
const GRANTS: usize = 30;

/// Who holds what, and what was granted.
#[derive(Default)]
struct World {
    held: Mutex<Vec<Arc<Token>>>,
    grants: Mutex<HashMap<RequestId, Grant>>,
    has_ended: AtomicBool,
}

impl World {
    /// Whoever holds something that conflicts has been told that it is lost, or about to be.
    fn enter(&self, token: &Arc<Token>) {
        let mut held = self.held.lock().unwrap();
        let (span, mode) = (token.span(), token.mode());
        let conflicting = held
            .iter()
            .filter(|other| other.span().overlaps(span) && other.mode().conflicts(mode));
        for other in conflicting {
            assert_eq!(other.check(), Err(Lost), "{other:?} beside {token:?}");
        }
        held.push(Arc::clone(token));
        let fence = token.fence();
        let grant = Grant { span, mode, fence };
        self.grants.lock().unwrap().insert(token.id(), grant);
    }

    fn leave(&self, token: Arc<Token>) {
        let mut held = self.held.lock().unwrap();
        held.retain(|other| !Arc::ptr_eq(other, &token));
        drop(held);
        let token = Arc::into_inner(token).expect("nobody else has it");
        // It may be lost by now.
        let _ = token.release().wait();
    }

    fn granted(&self) -> usize {
        self.grants.lock().unwrap().len()
    }

    /// Acquires, renews and releases, until it is told to end.
    fn work(&self, lease: &RangeLease) {
        while !self.has_ended.load(SeqCst) {
            let first = fastrand::u64(..POSITIONS);
            let last = fastrand::u64(first..POSITIONS);
            let mode = match fastrand::u32(..4) {
                0 => Mode::Shared,
                _ => Mode::Exclusive,
            };
            let token = lease.acquire(first..=last, mode, TTL).wait();
            let token = Arc::new(token.expect("it is granted in the end"));
            self.enter(&token);
            for _ in 0..fastrand::u32(..4) {
                // It is renewed, or its holder is told.
                if token.renew().wait() == Err(Lost) {
                    assert_eq!(token.check(), Err(Lost));
                }
            }
            self.leave(token);
        }
    }
}

/// All go on with the other two members.
pub fn a_leader_that_stands_still_lets_nobody_in_twice(_one: &Server) {
    let server = Server::of_three();
    let world = World::default();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let lease = RangeLease::open(server.engine()).wait().expect("it opens");
                    world.work(&lease);
                })
            })
            .collect();
        // One who has panicked is waited for below.
        let works = || clients.iter().all(|client| !client.is_finished());
        let grants = |more: usize| {
            let enough = world.granted() + more;
            while world.granted() < enough && works() {
                thread::sleep(Duration::from_millis(10));
            }
            server.step();
        };
        grants(GRANTS);
        let leader = server.does("leader", &[]);
        server.does("stall", &[&leader]);
        grants(GRANTS);
        world.has_ended.store(true, SeqCst);
        for client in clients {
            client.join().expect("it has seen nothing wrong");
        }
        // Nobody asks a member that stands still for the history.
        server.does("kill", &[&leader]);
    });
    let changes: Vec<_> = history(&server)
        .into_iter()
        .map(|(id, change, _)| (id, change))
        .collect();
    let grants = world.grants.into_inner().unwrap();
    assert_eq!(wrong(&changes, &grants), Wrong::default());
    assert!(grants.len() >= 2 * GRANTS);
}
