//! What people see of leases, and what they are told when they cannot have any.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::{Listed, Mode, RangeLease, Span, State, Trouble};
use spanlock_lease_postgres::{Config, Postgres, status};
use spanlock_lease_testkit::server::Server as _;

fn listed(config: &Config) -> Result<Vec<Listed>, Trouble> {
    runtime().block_on(status(config, "spanlock_lease"))
}

pub fn lists_who_holds_and_who_waits(server: &Server) {
    let none = listed(&server.config()).expect_err("there is no schema");
    assert!(none.to_string().contains("nobody has opened one"), "{none}");
    let lease = server.lease();
    assert!(listed(&server.config()).expect("it answers").is_empty());
    let held = lease.acquire(5.., Mode::Exclusive, LONG).wait();
    let held = held.expect("it is free");
    let mut other = server.config();
    other.application_name("other");
    let other = RangeLease::open(Postgres::new(other, "resource")).wait();
    let other = other.expect("it opens");
    let waits = other.acquire(0..=7, Mode::Shared, LONG).start();
    let both = loop {
        let listed = listed(&server.config()).expect("it answers");
        if let Ok(both) = <[Listed; 2]>::try_from(listed) {
            break both;
        }
    };
    let [holder, waiter] = both;
    let span = |range: std::ops::RangeInclusive<u64>| Span::of(range).expect("not empty");
    assert_eq!((holder.state, waiter.state), (State::Held, State::Awaited));
    assert_eq!(
        (holder.span, waiter.span),
        (span(5..=u64::MAX), span(0..=7))
    );
    assert_eq!((holder.mode, waiter.mode), (Mode::Exclusive, Mode::Shared));
    assert_eq!(holder.id, held.id());
    let own = format!("[{}]@", std::process::id());
    assert!(holder.client.contains(&own), "{holder:?}");
    assert_eq!(
        (waiter.client.as_str(), waiter.resource.as_str()),
        ("other", "resource")
    );
    assert!(holder.left <= LONG, "{holder:?}");
    drop(waits);
}

/// The first version of the schema, with a lease.
fn an_old_schema(server: &Server) {
    let first = include_str!("../../src/schema/1.sql").replace("@.", "spanlock_lease.");
    server.execute(&format!(
        "create schema spanlock_lease; create table spanlock_lease.version (number int not null);
         insert into spanlock_lease.version values (1); {first}"
    ));
    server.execute(
        "select spanlock_lease.enter('resource');
         select * from spanlock_lease.acquire(1, -9223372036854775808, -9223372036854775800, true, -1,
             '00000000000000000000000000000001', 60000, 5000)",
    );
}

/// Bringing it up waits for nobody for long, since renewals of all leases wait behind it.
pub fn an_old_schema_that_is_in_use_is_brought_up_later(server: &Server) {
    an_old_schema(server);
    runtime().block_on(async {
        let writer = server.client().await;
        let guarded = "begin; select from spanlock_lease.lease for key share";
        writer.batch_execute(guarded).await.expect("it is SQL");
        let open = || RangeLease::open(Postgres::new(server.config(), "resource"));
        let late = open().await.expect_err("the writer is not done");
        assert!(late.to_string().contains("lock timeout"), "{late}");
        // An old program's.
        let renews = "select spanlock_lease.renew('00000000000000000000000000000001', 60000)";
        let other = server.client().await;
        other.batch_execute(renews).await.expect("it passes");
        writer.batch_execute("commit").await.expect("it is SQL");
        open().await.expect("nobody is in the way");
        other.batch_execute(renews).await.expect("it passes");
    });
}

/// A lease that was granted under the first version is there under the last one.
pub fn an_old_schema_is_brought_up(server: &Server) {
    an_old_schema(server);
    let old = listed(&server.config()).expect_err("it has no clients");
    assert!(old.to_string().contains("version 1"), "{old}");
    let lease = server.lease();
    let all = listed(&server.config()).expect("it answers");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].client, "unknown");
    assert_eq!(all[0].span, Span::of(0..=8).expect("not empty"));
    let soon = std::time::Duration::from_millis(1);
    let refused = lease.acquire(8..9, Mode::Shared, LONG).within(soon).wait();
    assert!(refused.is_err());
}

pub fn who_may_not_make_the_schema_is_told(server: &Server) {
    server.execute("create role stranger login");
    let mut stranger = server.config();
    stranger.user("stranger");
    let refused = RangeLease::open(Postgres::new(stranger, "resource")).wait();
    let why = refused.expect_err("it may not").to_string();
    assert!(
        why.contains("may neither make the schema spanlock_lease"),
        "{why}"
    );
}
