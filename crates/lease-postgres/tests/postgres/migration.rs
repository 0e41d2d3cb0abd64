//! The third version of the schema, which had positions alone, is brought up while programs of that time run.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::{Mode, RangeLease, Span, State};
use spanlock_lease_postgres::{FencedTable, Postgres, status};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

fn old_schema(server: &Server) {
    let steps = [
        include_str!("../../src/schema/1.sql"),
        include_str!("../../src/schema/2.sql"),
        include_str!("../../src/schema/3.sql"),
    ];
    let steps = steps.join("").replace("@.", "spanlock_lease.");
    server.execute(&format!(
        "create schema spanlock_lease; create table spanlock_lease.version (number int not null);
         insert into spanlock_lease.version values (1), (2), (3); {steps}"
    ));
    server.execute("select spanlock_lease.enter('resource')");
}

/// A connection of an old program, with its statements.
struct Old {
    client: Client,
    acquire: Statement,
    renew: Statement,
    release: Statement,
}

impl Old {
    async fn new(server: &Server) -> Self {
        let client = server.client().await;
        let acquire = "select granted, lo, last, epoch, fence, wait
            from spanlock_lease.acquire($1, $2, $3, $4, $5, $6::text::uuid, $7, $8)";
        let renew = "select kept, wanted from spanlock_lease.renew($1::text::uuid, $2)";
        let release = "select spanlock_lease.release($1::text::uuid)";
        Self {
            acquire: client.prepare(acquire).await.unwrap(),
            renew: client.prepare(renew).await.unwrap(),
            release: client.prepare(release).await.unwrap(),
            client,
        }
    }

    /// What it is granted.
    async fn acquires(&self, [lo, last]: [i64; 2], grow: i32, id: u128) -> Option<[i64; 2]> {
        let (id, alone, ttl) = (format!("{id:032x}"), true, 60_000_i64);
        let parameters: [&(dyn ToSql + Sync); 8] =
            [&1_i64, &lo, &last, &alone, &grow, &id, &ttl, &ttl];
        let row = self.client.query_one(&self.acquire, &parameters).await;
        let row = row.unwrap();
        row.get::<_, bool>("granted")
            .then(|| [row.get("lo"), row.get("last")])
    }

    /// Whether it has it on, and whether others wish for it.
    async fn renews(&self, id: u128) -> (bool, bool) {
        let (id, ttl) = (format!("{id:032x}"), 60_000_i64);
        let row = self.client.query_one(&self.renew, &[&id, &ttl]).await;
        let row = row.unwrap();
        (row.get("kept"), row.get("wanted"))
    }

    async fn releases(&self, id: u128) {
        let id = format!("{id:032x}");
        let row = self.client.query_one(&self.release, &[&id]).await;
        row.unwrap();
    }
}

/// Leases and wishes stay, and the statements of a connection that has used the old functions work on.
pub fn who_holds_and_who_waits_goes_on(server: &Server) {
    old_schema(server);
    runtime().block_on(async {
        let old = Old::new(server).await;
        let (first, last, middle) = ([i64::MIN; 2], [i64::MAX - 1, i64::MAX], [-1, 0]);
        assert_eq!(old.acquires(first, -1, 1).await, Some(first));
        assert_eq!(old.acquires(last, -1, 2).await, Some(last));
        assert_eq!(old.acquires(middle, -1, 3).await, Some(middle));
        assert_eq!(old.acquires([16, 17], 4, 4).await, Some([16, 31]));
        assert_eq!(old.acquires([0, 1], -1, 5).await, None);
        assert_eq!(old.renews(3).await, (true, true));
        old.releases(4).await;

        let new = RangeLease::open(Postgres::new(server.config(), "resource"))
            .await
            .unwrap();
        let listed = status(&server.config(), "spanlock_lease").await.unwrap();
        let listed: Vec<_> = listed.iter().map(|it| (it.state, it.span)).collect();
        let span = |start, last| Span::inclusive(start, last).expect("in order");
        let middle_of_all = 1 << 63;
        let expected = [
            (State::Held, span(0, 0)),
            (State::Held, span(middle_of_all - 1, middle_of_all)),
            (State::Held, span(u64::MAX - 1, u64::MAX)),
            (State::Awaited, span(middle_of_all, middle_of_all + 1)),
        ];
        assert_eq!(listed, expected);

        // The old program, beside one of today.
        assert_eq!(old.renews(3).await, (true, true));
        let token = new.acquire(100..200, Mode::Exclusive, LONG).await.unwrap();
        let place = 150_u64.cast_signed() ^ i64::MIN;
        assert_eq!(old.acquires([place; 2], -1, 6).await, None);
        token.release().await.unwrap();
        assert_eq!(old.acquires([place; 2], -1, 6).await, Some([place; 2]));
        let soon = std::time::Duration::from_millis(1);
        let busy = new
            .acquire(150..=150, Mode::Shared, LONG)
            .within(soon)
            .await;
        assert!(busy.is_err(), "{busy:?}");
        // What ends there wakes who waits there.
        let waits = new.acquire(middle_of_all + 1.., Mode::Shared, LONG).start();
        old.releases(5).await;
        old.releases(2).await;
        let token = waits.await.unwrap();
        assert_eq!(token.span(), span(middle_of_all + 1, u64::MAX));
        token.release().await.unwrap();
        // Blocks are what they were.
        assert_eq!(old.acquires([16, 17], 4, 7).await, Some([16, 31]));
        assert_eq!(old.acquires([33, 33], 63, 8).await, Some([32, 63]));
    });
}

/// By the trigger that it had.
pub fn a_table_stays_guarded(server: &Server) {
    old_schema(server);
    let guarded = "create table blocks (position numeric, data text);
        create trigger fenced before insert or update or delete on blocks for each row
            execute function spanlock_lease.fenced('position', '1')";
    server.execute(guarded);
    runtime().block_on(async {
        let mut client = server.client().await;
        // It has called the old function.
        let refused = client
            .batch_execute("insert into blocks values (3, '')")
            .await;
        assert!(FencedTable::refused(
            &refused.expect_err("there is no lease")
        ));
        let lease = RangeLease::open(Postgres::new(server.config(), "resource"))
            .await
            .unwrap();
        let token = lease.acquire(3..5, Mode::Exclusive, LONG).await.unwrap();
        let fenced = FencedTable::new("resource");
        for (position, is_allowed) in [(3, true), (4, true), (5, false), (2, false)] {
            let transaction = client.transaction().await.unwrap();
            fenced.enter(&transaction, &token).await.unwrap();
            let insert = format!("insert into blocks values ({position}, '')");
            match transaction.batch_execute(&insert).await {
                Ok(()) => assert!(is_allowed, "{position}"),
                Err(why) => assert!(!is_allowed && FencedTable::refused(&why), "{why:?}"),
            }
            // What is refused ends the transaction.
            let _ = transaction.commit().await;
        }
    });
}
