//! An order among those who wait.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{
    Answer, Engine, News, Pending, RangeLease, Refused, Request, Span, Token, Wanted,
};
use std::thread;

type Asked = Pending<Result<Token, Refused>>;

/// 0..5 is held. The first request waits for it, and has done so for 20 s. The second one wants what is free, and has
/// come later: it gives way until the other has waited for 32 s.
fn who_gives_way(
    server: &Server,
    first: &RangeLease,
    second: &RangeLease,
) -> (Token, Asked, Asked) {
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

/// By a report, and not only when it renews.
pub fn who_is_granted_what_another_waits_for_is_told(server: &Server) {
    runtime().block_on(async {
        let engine = server.engine();
        engine.open().await.unwrap();
        // It listens.
        while !matches!(engine.news().await, News::Missed) {}
        let request = |range: std::ops::Range<u64>| Request {
            id: format!("{:x}", fastrand::u128(..))
                .parse()
                .expect("a number"),
            span: Span::of(range).expect("it is not empty"),
            mode: Exclusive,
            ttl: LONG,
            grow: None,
        };
        let (first, second, third) = (request(0..5), request(0..10), request(5..10));
        let is_granted = async |request: &Request| {
            let answer = engine.acquire(request).await.unwrap();
            matches!(answer, Answer::Granted { .. })
        };
        assert!(is_granted(&first).await);
        assert!(!is_granted(&second).await && !is_granted(&third).await);
        engine.release(first.id).await.unwrap();
        assert!(is_granted(&second).await);
        // The first request was told that it is wished for, and the second one that it may be had. Then:
        let mut told = 0;
        while told < 2 {
            match engine.news().await {
                News::About(id) => told += u32::from(id == second.id),
                News::Missed => {}
            }
        }
    });
}
