//! What fails, and what is held then.

use crate::child::Child;
use crate::server::{Engines, LONG, Server, lease};
use crate::store::{Checks, Store};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{End, Wanted};
use std::time::Duration;

/// Nobody polls in these tests.
pub fn a_release_wakes_who_waits<S: Engines>(server: &S) {
    let (a, b) = (server.lease(), server.lease());
    for _ in 0..20 {
        let held = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
        let next = b.acquire(5..20, Shared, LONG).start();
        let with_it = a.acquire(7..8, Shared, LONG).start();
        assert_eq!(held.wanted().wait(), Wanted::Yes);
        let (fence, end) = (held.fence(), held.lost());
        held.release().wait().unwrap();
        assert_eq!(end.wait(), End::Released);
        let (next, with_it) = (next.wait().unwrap(), with_it.wait().unwrap());
        assert!(next.fence() > fence && with_it.fence() > fence);
    }
}

/// Its connections are cut, and the one that listens is made again.
pub fn a_lost_listener_loses_no_release<S: Server>(server: &S) {
    let network = server.network();
    let (a, b) = (
        server.lease(),
        lease(S::engine_at(&S::at_port(network.port()))),
    );
    let held = a.acquire(.., Exclusive, LONG).wait().unwrap();
    let next = b.acquire(.., Exclusive, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    network.cut();
    held.release().wait().unwrap();
    drop(next.wait().unwrap());
}

/// It is killed, and its ttl ends.
pub fn a_dead_holder_is_waited_for<S: Server>(server: &S) {
    let store = Store::new(Checks::Fences);
    let mut holder = Child::start(&server.at, &store, "hold", S::TTL);
    store.wait_for_reads(1);
    holder.kill();
    let token = server.lease().acquire(.., Exclusive, LONG).wait().unwrap();
    assert!(store.admits(token.fence()));
}

/// The server is killed.
pub fn leases_survive_a_crash<S: Server>(server: &S) {
    let (a, b) = (server.lease(), server.lease());
    let token = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
    server.crash();
    assert_eq!(token.renew().wait(), Ok(()));
    let soon = Duration::from_millis(500);
    let busy = b.acquire(0..1, Shared, LONG).within(soon).wait();
    assert!(busy.is_err(), "{busy:?}");
    let next = b.acquire(9..11, Shared, LONG).start();
    let fence = token.fence();
    token.release().wait().unwrap();
    assert!(next.wait().unwrap().fence() > fence);
}
