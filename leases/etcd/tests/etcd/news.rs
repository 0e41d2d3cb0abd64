//! Who is told of a change. Wishes are written by hand, so that nothing depends on when somebody asks again.

use crate::server::Server;
use spanlock_lease::{Answer, Engine, Request};
use spanlock_lease_etcd::Etcd;
use spanlock_lease_testkit::server::{Engines as _, request, runtime};
use spanlock_lease_testkit::turns::is_told;

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

/// Engines do not ask by themselves, so nobody finds it out in another way.
pub fn those_whom_a_change_concerns_are_told(server: &Server) {
    runtime().block_on(async {
        let (one, other) = (server.opened().await, server.opened().await);
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
