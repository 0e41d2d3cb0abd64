//! An order among those who wait. Wishes are written by hand, so that nothing depends on when somebody asks again.

use crate::requests::opened;
use crate::server::Server;
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Answer, Engine, News, Pending, Refused, Request, Token, Wanted};
use spanlock_lease_etcd::Etcd;
use spanlock_lease_testkit::server::{LONG, Server as _, request, runtime};
use std::thread;

type Asked = Pending<Result<Token, Refused>>;

/// Writes a wish, or writes it again as one does that has waited for long. No lease of etcd ends it.
fn write_wish(server: &Server, wish: &Request) {
    let (first, last) = (wish.span.start(), wish.span.last());
    let key = format!("spanlock/lease/resource/wish/{}", wish.id);
    server.ctl(&[
        "put",
        &key,
        &format!("exclusive {first} {last} 1 0 somebody"),
    ]);
}

fn delete_wish(server: &Server, wish: &Request) {
    let key = format!("spanlock/lease/resource/wish/{}", wish.id);
    assert_eq!(server.ctl(&["del", &key]), "1");
}

/// Until a request waits that came after this wish, and has looked a second time.
fn waits(server: &Server, mut asked: Asked) -> Asked {
    while server.keys("wish/").len() < 2 {
        assert!(asked.try_wait().is_none(), "it did not give way");
        thread::yield_now();
    }
    assert!(asked.try_wait().is_none());
    asked
}

pub fn who_came_first_is_served_first(server: &Server) {
    let first = request(0..10);
    write_wish(server, &first);
    let mut second = waits(
        server,
        server.lease().acquire(5..15, Exclusive, LONG).start(),
    );
    runtime().block_on(async {
        let engine = opened(server).await;
        let Answer::Granted { fence, .. } = engine.acquire(&first).await.unwrap() else {
            panic!("it came first");
        };
        assert!(second.try_wait().is_none());
        engine.release(first.id).await.unwrap();
        assert!(second.await.unwrap().fence() > fence);
    });
}

/// Otherwise two could wait for each other, who hold what the other one wants.
pub fn who_has_given_way_for_long_passes(server: &Server) {
    let first = request(0..10);
    write_wish(server, &first);
    let second = waits(
        server,
        server.lease().acquire(5..15, Exclusive, LONG).start(),
    );
    write_wish(server, &first);
    drop(second.wait().unwrap());
    // Whoever comes now gives way until the next time.
    let third = waits(
        server,
        server.lease().acquire(5..15, Exclusive, LONG).start(),
    );
    write_wish(server, &first);
    drop(third.wait().unwrap());
}

/// By itself, and nobody else does anything.
pub fn who_waits_passes_its_marks(server: &Server) {
    let held = server
        .lease()
        .acquire(0..5, Exclusive, LONG)
        .wait()
        .unwrap();
    let mut first = server.lease().acquire(0..10, Exclusive, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    let second = server.lease().acquire(5..10, Exclusive, LONG).start();
    // Its range is free. It is granted when the other one has waited for 1, 2, 4, … seconds.
    drop(second.wait().unwrap());
    assert!(first.try_wait().is_none());
}

pub fn who_gave_way_is_told_that_the_other_gave_up(server: &Server) {
    let first = request(0..10);
    write_wish(server, &first);
    let second = waits(
        server,
        server.lease().acquire(5..15, Exclusive, LONG).start(),
    );
    delete_wish(server, &first);
    drop(second.wait().unwrap());
}

/// By a report, and not only when it renews.
pub fn who_is_granted_what_another_waits_for_is_told(server: &Server) {
    runtime().block_on(async {
        let engine = opened(server).await;
        let (first, second) = (request(0..10), request(5..15));
        write_wish(server, &first);
        assert!(matches!(
            engine.acquire(&second).await.unwrap(),
            Answer::Busy { .. }
        ));
        assert!(matches!(
            engine.acquire(&first).await.unwrap(),
            Answer::Granted { .. }
        ));
        while !matches!(engine.news().await, News::About(id) if id == first.id) {}
    });
}

/// The next news are about this request, beside what was lost.
async fn is_told(engine: &Etcd, request: &Request) {
    loop {
        match engine.news().await {
            News::About(id) if id == request.id => return,
            News::About(_) | News::Missed => {}
        }
    }
}

/// Engines do not ask by themselves, so nobody finds it out in another way.
pub fn those_whom_a_change_concerns_are_told(server: &Server) {
    runtime().block_on(async {
        let (one, other) = (opened(server).await, opened(server).await);
        let (first, second, third) = (request(0..10), request(5..15), request(0..8));
        let asks = async |engine: &Etcd, request: &Request| {
            matches!(
                engine.acquire(request).await.unwrap(),
                Answer::Granted { .. }
            )
        };
        assert!(asks(&one, &first).await);
        assert!(!asks(&other, &second).await);
        is_told(&one, &first).await;
        one.release(first.id).await.unwrap();
        is_told(&other, &second).await;
        assert!(asks(&other, &second).await);
        // Somebody else wishes for what is held; one who comes later gives way to that.
        let wish = request(4..20);
        write_wish(server, &wish);
        is_told(&other, &second).await;
        assert!(!asks(&one, &third).await);
        write_wish(server, &wish);
        is_told(&one, &third).await;
        delete_wish(server, &wish);
        is_told(&one, &third).await;
        // A lease that ends by itself.
        let id = format!("{:x}", second.id.number() >> 64 & (u128::MAX >> 65));
        server.ctl(&["lease", "revoke", &id]);
        is_told(&other, &second).await;
        is_told(&one, &third).await;
        assert!(asks(&one, &third).await);
    });
}

/// It asks for a block, and gets what nobody wishes for.
pub fn blocks_leave_out_what_is_wished_for(server: &Server) {
    runtime().block_on(async {
        let engine = opened(server).await;
        write_wish(server, &request(8..9));
        let mut grows = request(0..1);
        grows.grow = Some(20);
        let Answer::Granted { span, .. } = engine.acquire(&grows).await.unwrap() else {
            panic!("it is free");
        };
        assert_eq!((span.start(), span.last()), (0, 7));
    });
}
