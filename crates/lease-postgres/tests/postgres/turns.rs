//! An order among those who wait.

use crate::server::{LONG, Server};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{Pending, RangeLease, Refused, Token, Wanted};
use std::thread;

type Request = Pending<Result<Token, Refused>>;

/// 0..5 is held. The first request waits for it, and has done so for 20 s. The second one wants what is free, and has
/// come later: it gives way until the other has waited for 32 s.
fn who_gives_way(
    server: &Server,
    first: &RangeLease,
    second: &RangeLease,
) -> (Token, Request, Request) {
    let held = server
        .lease()
        .acquire(0..5, Exclusive, LONG)
        .wait()
        .unwrap();
    let first = first.acquire(0..10, Shared, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    server.execute("update spanlock_lease.wish set since = since - interval '20 s'");
    let mut second = second.acquire(5..10, Exclusive, LONG).start();
    while server.number("select count(*) from spanlock_lease.wish") < 2 {
        assert!(second.try_wait().is_none(), "it did not give way");
        thread::yield_now();
    }
    // By its first refusal it had a wish, and it has asked again since.
    assert!(second.try_wait().is_none());
    (held, first, second)
}

pub fn who_came_first_is_served_first(server: &Server) {
    let (held, first, mut second) = who_gives_way(server, &server.lease(), &server.lease());
    held.release().wait().unwrap();
    let first = first.wait().unwrap();
    assert!(second.try_wait().is_none());
    let fence = first.fence();
    first.release().wait().unwrap();
    assert!(second.wait().unwrap().fence() > fence);
}

/// Otherwise two could wait for each other, who hold what the other one wants.
pub fn who_has_given_way_for_long_passes(server: &Server) {
    let second = RangeLease::open(server.engine()).wait().unwrap();
    let (held, mut first, second) = who_gives_way(server, &server.lease(), &second);
    server.execute("update spanlock_lease.wish set since = since - interval '13 s'");
    let passed = second.wait().unwrap();
    assert!(first.try_wait().is_none());
    passed.release().wait().unwrap();
    held.release().wait().unwrap();
    drop(first.wait().unwrap());
}

pub fn who_gave_way_is_told_that_the_other_gave_up(server: &Server) {
    let (held, first, second) = who_gives_way(server, &server.lease(), &server.lease());
    drop(first);
    drop(second.wait().unwrap());
    drop(held);
}
