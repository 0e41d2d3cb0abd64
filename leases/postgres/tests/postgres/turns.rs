//! An order among those who wait, as the functions of the database keep it.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Answer, Engine, News, Request, Wanted};
use spanlock_lease_testkit::server::{Engines as _, request};
use tokio_postgres::Client;

/// Who comes when another one has waited for a time gives way until that one has waited for a power of two, in seconds.
pub fn marks_are_powers_of_two(server: &Server) {
    drop(server.lease());
    server.execute(
        "insert into spanlock_lease.wish (res, span, alone, request, expires)
            values (1, spanlock_lease.span(0, 9), true, gen_random_uuid(), now() + interval '1 hour')",
    );
    for (waited, mark) in [("0.3", 1), ("1.5", 2), ("20", 32), ("33", 64)] {
        let text = format!(
            "select round(extract(epoch from spanlock_lease.gives_way_until(
                1, spanlock_lease.span(5, 20), true, gen_random_uuid(), since + interval '{waited} s'
            ) - since))::bigint from spanlock_lease.wish"
        );
        assert_eq!(server.number(&text), mark);
    }
}

/// A call as the engine makes it, for a connection of the test's own. It returns whether the range is granted.
fn acquires(Request { id, span, .. }: Request) -> String {
    let signed = |position: u64| position.cast_signed() ^ i64::MIN;
    let (lo, last) = (signed(span.start()), signed(span.last()));
    format!(
        "select granted from spanlock_lease.admit(1, spanlock_lease.spans({lo}, {last}, -1), true, '{id}', 60000, 60000)"
    )
}

/// The lease and the wish are written at the same moment, so neither sees the other. The second look does.
pub fn who_is_granted_while_another_is_refused_is_told(server: &Server) {
    runtime().block_on(async {
        let engine = server.opened().await;
        let busy = async |request: &Request| match engine.acquire(request).await.unwrap() {
            Answer::Busy { .. } => {}
            granted => panic!("{granted:?}"),
        };
        assert!(matches!(
            engine.acquire(&request(0..5)).await.unwrap(),
            Answer::Granted { .. }
        ));
        busy(&request(0..10)).await;
        // It gives way to the one before, so it does not wait for what is not committed yet.
        let (held, waits) = (request(20..30), request(8..25));
        let other = server.client().await;
        let granted = other
            .batch_execute(&format!("begin; {}", acquires(held)))
            .await;
        granted.unwrap();
        busy(&waits).await;
        other.batch_execute("commit").await.unwrap();
        busy(&waits).await;
        let end = request(0..1).id;
        let note = format!("select pg_notify('spanlock_lease.1', '{end}')");
        other.batch_execute(&note).await.unwrap();
        loop {
            match engine.news().await {
                News::About(id) if id == held.id => return,
                News::About(id) => assert!(id != end, "it was not told"),
                News::Missed => {}
            }
        }
    });
}

/// It need not give way any more, so it has to wait for the lease, and looks no sooner than that asks for.
pub fn who_need_not_give_way_waits_for_the_holder(server: &Server) {
    runtime().block_on(async {
        let engine = server.opened().await;
        let (held, waits, next) = (request(0..10), request(0..5), request(4..10));
        let mut answers = Vec::new();
        for request in [held, waits, next] {
            answers.push(engine.acquire(&request).await.unwrap());
        }
        let other = server.client().await;
        // All of them came a minute ago, when the first one had waited for less than a second.
        let earlier = "update spanlock_lease.wish set since = since - interval '1 minute'";
        other.batch_execute(earlier).await.unwrap();
        match engine.acquire(&next).await.unwrap() {
            Answer::Busy { expires } => assert!(expires > Some(LONG / 4), "{expires:?}"),
            granted => panic!("{granted:?}"),
        }
        assert!(matches!(
            answers[..],
            [
                Answer::Granted { .. },
                Answer::Busy { .. },
                Answer::Busy { .. }
            ]
        ));
    });
}

/// Two leases that have run out are in the way of both requests. Each has removed one of them, and neither waits for
/// the other one, which would wait for it.
pub fn who_removes_what_has_run_out_waits_for_nobody_who_does(server: &Server) {
    drop(server.lease());
    runtime().block_on(async {
        let (a, b, writer) = (
            server.client().await,
            server.client().await,
            server.client().await,
        );
        let (first, second) = (request(0..4), request(6..10));
        for old in [first, second] {
            a.batch_execute(&acquires(old)).await.unwrap();
        }
        a.batch_execute("update spanlock_lease.lease set expires = clock_timestamp()")
            .await
            .unwrap();
        let guarded = format!(
            "begin; select from spanlock_lease.lease where request = '{}' for key share",
            second.id
        );
        writer.batch_execute(&guarded).await.unwrap();
        a.batch_execute("begin").await.unwrap();
        let is_granted = async |client: &Client| -> bool {
            let row = client.query_one(&acquires(request(0..10)), &[]).await;
            row.expect("nobody is waited for").get(0)
        };
        // It removes the first one.
        assert!(!is_granted(&a).await);
        writer.batch_execute("commit").await.unwrap();
        b.batch_execute("set lock_timeout = '5s'").await.unwrap();
        // It removes the second one.
        assert!(!is_granted(&b).await);
        a.batch_execute("commit").await.unwrap();
        let left = "select count(*) from spanlock_lease.lease";
        let left: i64 = a.query_one(left, &[]).await.unwrap().get(0);
        assert_eq!(left, 0);
    });
}

pub fn wishes_of_those_who_have_died_go(server: &Server) {
    let (a, b) = (server.lease(), server.lease());
    let held = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
    server.execute(
        "insert into spanlock_lease.wish (res, span, alone, request, expires) select 1, spanlock_lease.span(
            -9223372036854775808, -9223372036854775800), true, gen_random_uuid(), clock_timestamp() - interval '1 hour'
         from generate_series(1, 100)",
    );
    let next = b.acquire(0..1, Exclusive, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    assert_eq!(server.number("select count(*) from spanlock_lease.wish"), 1);
    drop(next);
}
