//! A table that refuses late writes.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::Token;
use spanlock_lease_postgres::FencedTable;
use spanlock_lease_testkit::server::Engines as _;
use std::time::Duration;
use tokio_postgres::{Client, Error};

async fn installed(server: &Server) -> (FencedTable, Client) {
    let client = server.client().await;
    let table = "create table blocks (position bigint primary key, data text);
        insert into blocks select number, '' from generate_series(0, 99) number";
    client.batch_execute(table).await.unwrap();
    let fenced = FencedTable::new("resource");
    fenced.install(&client, "blocks", "position").await.unwrap();
    (fenced, client)
}

async fn write(
    fenced: &FencedTable,
    client: &mut Client,
    token: &Token,
    text: &str,
) -> Result<u64, Error> {
    let transaction = client.transaction().await?;
    fenced.enter(&transaction, token).await?;
    let written = transaction.execute(text, &[]).await?;
    transaction.commit().await?;
    Ok(written)
}

pub fn refuses_what_no_lease_allows(server: &Server) {
    runtime().block_on(async {
        let lease = spanlock_lease::RangeLease::open(server.engine())
            .await
            .unwrap();
        let (fenced, mut client) = installed(server).await;
        let alone = lease.acquire(10..20, Exclusive, LONG).await.unwrap();
        let shared = lease.acquire(30..40, Shared, LONG).await.unwrap();

        let inside = "update blocks set data = 'x' where position between 10 and 19";
        assert_eq!(
            write(&fenced, &mut client, &alone, inside).await.unwrap(),
            10
        );
        let new = "delete from blocks where position = 15; insert into blocks values (15, 'new')";
        for text in new.split("; ") {
            assert_eq!(write(&fenced, &mut client, &alone, text).await.unwrap(), 1);
        }
        for (token, text) in [
            (
                &alone,
                "update blocks set data = 'x' where position between 10 and 20",
            ),
            (&alone, "insert into blocks values (100, '')"),
            (&alone, "delete from blocks where position = 9"),
            (
                &alone,
                "update blocks set position = 200 where position = 10",
            ),
            (&shared, "update blocks set data = 'x' where position = 30"),
        ] {
            let error = write(&fenced, &mut client, token, text)
                .await
                .expect_err(text);
            assert!(FencedTable::refused(&error), "{error:?}");
        }
        let nobody = client
            .execute(inside, &[])
            .await
            .expect_err("it names no lease");
        assert!(FencedTable::refused(&nobody), "{nobody:?}");

        // What others make of a row before counts.
        let moves = "create function moved() returns trigger language plpgsql as
                $$ begin new.position := new.position + 900; return new; end $$;
            create trigger moves before insert on blocks for each row execute function moved()";
        client.batch_execute(moves).await.unwrap();
        let text = "delete from blocks where position = 15; insert into blocks values (15, '')";
        let (delete, insert) = text.split_once("; ").unwrap();
        assert_eq!(
            write(&fenced, &mut client, &alone, delete).await.unwrap(),
            1
        );
        let moved = write(&fenced, &mut client, &alone, insert).await;
        let moved = moved.expect_err("it would be at 915");
        assert!(FencedTable::refused(&moved), "{moved:?}");
        client
            .batch_execute("drop trigger moves on blocks")
            .await
            .unwrap();
        assert_eq!(
            write(&fenced, &mut client, &alone, insert).await.unwrap(),
            1
        );

        // Several leases of one transaction.
        let other = lease.acquire(50..60, Exclusive, LONG).await.unwrap();
        let transaction = client.transaction().await.unwrap();
        let names = format!("{},{}", other.id(), alone.id());
        let enters = "select set_config('spanlock_lease.request', $1, true)";
        transaction.execute(enters, &[&names]).await.unwrap();
        let both = "update blocks set data = 'x' where position in (10, 55)";
        assert_eq!(transaction.execute(both, &[]).await.unwrap(), 2);
        transaction.commit().await.unwrap();

        // Its holder does not know that it has run out, and nobody has written since.
        client
            .execute(
                "update spanlock_lease.lease set expires = clock_timestamp()",
                &[],
            )
            .await
            .unwrap();
        let late = write(&fenced, &mut client, &alone, inside)
            .await
            .expect_err("it is late");
        assert!(FencedTable::refused(&late), "{late:?}");
    });
}

/// The range is nobody else's before the write is committed, although the lease has run out. Renewals do not wait.
pub fn keeps_the_lease_while_a_write_is_open(server: &Server) {
    runtime().block_on(async {
        let (lease, other) = (server.engine(), server.engine());
        let lease = spanlock_lease::RangeLease::open(lease).await.unwrap();
        let other = spanlock_lease::RangeLease::open(other).await.unwrap();
        let (fenced, mut client) = installed(server).await;
        let second = server.client().await;
        let token = lease.acquire(10..20, Exclusive, LONG).await.unwrap();

        let transaction = client.transaction().await.unwrap();
        fenced.enter(&transaction, &token).await.unwrap();
        transaction
            .execute("update blocks set data = 'x' where position = 10", &[])
            .await
            .unwrap();
        token.renew().await.unwrap();
        let expires = "update spanlock_lease.lease set expires = clock_timestamp()";
        second.execute(expires, &[]).await.unwrap();
        let early = other
            .acquire(10..20, Exclusive, LONG)
            .within(Duration::from_millis(300))
            .await;
        assert!(early.is_err(), "{early:?}");
        transaction.commit().await.unwrap();
        drop(other.acquire(10..20, Exclusive, LONG).await.unwrap());
    });
}
