//! The order of fences, forced: who waits in the constraint has not drawn his fence yet.

use crate::server::{Server, runtime};
use spanlock_lease_testkit::server::Engines as _;

/// The fences of a lease that was granted and released, and of a conflicting one that was asked for earlier and granted
/// later.
///
/// A wants 0 and 1. It waits for a transaction that has 0 and is not over. Meanwhile B gets 1, and releases it.
fn of_earlier_and_later(server: &Server) -> (i64, i64) {
    runtime().block_on(async {
        let (first, a, b) = (server.client().await, server.client().await, server.client().await);
        let acquire = |last: i64, first: i64| {
            format!(
                "select fence from spanlock_lease.admit(1, spanlock_lease.spans({first}, {last}, -1), true, gen_random_uuid(),
                    60000, 100)"
            )
        };
        first.batch_execute(&format!("begin; {}", acquire(0, 0))).await.unwrap();
        let later = acquire(1, 0);
        let later = tokio::spawn(async move { a.query_one(&later, &[]).await });
        while b.query_one("select count(*) from pg_locks where not granted", &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        let earlier = b.query_one(&acquire(1, 1), &[]).await.unwrap();
        b.batch_execute("delete from spanlock_lease.lease where span = spanlock_lease.span(1, 1)").await.unwrap();
        first.batch_execute("rollback").await.unwrap();
        (earlier.get(0), later.await.unwrap().unwrap().get(0))
    })
}

pub fn are_drawn_in_order(server: &Server) {
    drop(server.lease());
    let (earlier, later) = of_earlier_and_later(server);
    assert!(earlier < later, "{earlier}, then {later}");
}

/// The schema with the one change that is easily made: the fence is drawn first, and something may happen then.
pub fn drawing_before(then: &str) -> String {
    let schema = include_str!("../../src/schema.sql");
    let (_, admit) = schema
        .split_once("create function @.admit")
        .expect("it is there");
    let (admit, _) = admit.split_once("end $$;").expect("it ends");
    let before = admit
        .replace(
            "wider @.strings;",
            &format!(
                "wider @.strings; drawn constant bigint := nextval('@.fence'); next constant text := {then};"
            ),
        )
        .replace(
            "do nothing returning nextval('@.fence') into fence",
            "do nothing returning drawn into fence",
        );
    assert_eq!(
        admit.matches("drawn").count() + 2,
        before.matches("drawn").count()
    );
    format!("create or replace function @.admit{before} end $$").replace("@.", "spanlock_lease.")
}

pub fn drawn_before_is_found(server: &Server) {
    drop(server.lease());
    server.execute(&drawing_before("''"));
    let (earlier, later) = of_earlier_and_later(server);
    assert!(earlier > later, "the mutant lives: {earlier}, then {later}");
}
