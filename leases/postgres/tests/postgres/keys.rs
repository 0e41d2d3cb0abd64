//! Leases of ranges of byte strings.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{KeyLease, KeySpan, RangeLease, between, point, prefix};
use spanlock_lease_postgres::{FencedTable, Postgres, status, status_of_keys};
use spanlock_lease_testkit::keys;
use spanlock_lease_testkit::server::{self, Engines as _, Server as _};

fn engine(server: &Server) -> Postgres<KeySpan> {
    Postgres::over_keys(server.address(), "table")
}

fn lease(server: &Server) -> KeyLease {
    server::lease(engine(server))
}

pub fn agree_with_a_map(server: &Server) {
    keys::agrees_with_a_map(&engine(server));
}

pub fn are_of_a_limited_length(server: &Server) {
    keys::long_keys(&engine(server), 1024);
}

pub fn who_waits_is_told(server: &Server) {
    keys::who_waits_is_told(|| lease(server));
}

/// Although the server crashes.
pub fn no_update_is_lost(server: &Server) {
    let open = || KeyLease::open(engine(server)).wait().expect("it opens");
    keys::no_update_is_lost(open, 40, || server.crash());
}

/// Who took one for the other would lock nothing that others lock.
pub fn no_resource_is_leased_by_both(server: &Server) {
    drop((server.lease(), lease(server)));
    let keys = KeyLease::open(Postgres::over_keys(server.address(), "resource")).wait();
    let positions = RangeLease::open(Postgres::new(server.address(), "table")).wait();
    for (why, name) in [(keys.err(), "resource"), (positions.err(), "table")] {
        let why = why.expect("it is leased by others").to_string();
        assert!(why.contains(name) && why.contains("is leased by"), "{why}");
    }
}

pub fn are_listed(server: &Server) {
    let (positions, keys) = (server.lease(), lease(server));
    let position = positions.acquire(7..8, Exclusive, LONG).wait().unwrap();
    let user = keys
        .acquire(prefix(b"user/\xff"), Shared, LONG)
        .wait()
        .unwrap();
    let all = keys.acquire(.., Shared, LONG).wait().unwrap();
    runtime().block_on(async {
        let of_keys = status_of_keys(&server.address(), "spanlock_lease").await;
        let of_keys = of_keys.expect("it answers");
        let listed: Vec<_> = of_keys
            .iter()
            .map(|it| (it.id, it.span.to_string()))
            .collect();
        let expected = [
            (all.id(), "..".to_owned()),
            (user.id(), r#""user/\xff".."user0""#.to_owned()),
        ];
        assert_eq!(listed, expected);
        let of_positions = status(&server.address(), "spanlock_lease").await;
        let of_positions = of_positions.expect("it answers");
        assert_eq!(of_positions.len(), 1, "{of_positions:?}");
        assert_eq!(of_positions[0].id, position.id());
    });
}

/// Whether the column has bytes or text.
pub fn a_table_refuses_what_no_lease_allows(server: &Server) {
    drop(server.lease());
    let lease = lease(server);
    let fenced = FencedTable::new("table");
    runtime().block_on(async {
        let mut client = server.client().await;
        let tables = "create table bytes (name bytea primary key); create table texts (name text primary key)";
        client.batch_execute(tables).await.unwrap();
        for table in ["bytes", "texts"] {
            fenced.install(&client, table, "name").await.unwrap();
        }
        let token = lease.acquire(between(b"b", b"d"), Exclusive, LONG).await.unwrap();
        let shared = lease.acquire(point(b"x"), Shared, LONG).await.unwrap();
        for (token, name, is_allowed) in [
            (&token, "b", true),
            (&token, "c\u{10ffff}", true),
            (&token, "d", false),
            (&token, "a\u{ff}", false),
            (&shared, "x", false),
        ] {
            for table in ["bytes", "texts"] {
                let transaction = client.transaction().await.unwrap();
                fenced.enter(&transaction, token).await.unwrap();
                let insert = match table {
                    "bytes" => "insert into bytes values (convert_to($1, 'UTF8'))",
                    _ => "insert into texts values ($1)",
                };
                match transaction.execute(insert, &[&name]).await {
                    Ok(_) => assert!(is_allowed, "{name} into {table}"),
                    Err(why) => assert!(!is_allowed && FencedTable::refused(&why), "{why:?}"),
                }
                // What is refused ends the transaction.
                let _ = transaction.commit().await;
            }
        }
        let other = FencedTable::new("resource");
        let why = other.install(&client, "bytes", "name").await.expect_err("it has positions");
        let why = why.as_db_error().expect("the server says so").message();
        assert!(why.contains("leased by positions"), "{why}");
    });
}
