//! Clerks move money between accounts of one table, from any number of machines: `clerks NAME 'host=… dbname=…'`.
//!
//! A clerk holds the accounts that he reads and writes. He may be stopped at any moment, and go on when others have the
//! accounts: the table refuses what he writes then (`SL001`), and he begins anew. So the sum stays what it was.

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use spanlock_lease::{Mode, RangeLease};
    use spanlock_lease_postgres::{FencedTable, Postgres};
    use std::time::Duration;

    const ACCOUNTS: u64 = 100;
    const TRANSFERS: u32 = 200;
    let mut arguments = std::env::args().skip(1);
    let (Some(clerk), Some(at)) = (arguments.next(), arguments.next()) else {
        return Err(
            "expected a name, and how to connect: scripts/postgres start prints that".into(),
        );
    };
    let lease = RangeLease::open(Postgres::new(at.parse()?, "accounts")).await?;
    let (mut client, connection) = tokio_postgres::connect(&at, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);

    // The first clerk makes the table.
    let accounts = FencedTable::new("accounts");
    let everything = lease
        .acquire(.., Mode::Exclusive, Duration::from_secs(10))
        .await?;
    let is_new = "select to_regclass('accounts') is null";
    if client.query_one(is_new, &[]).await?.get(0) {
        let table = "create table accounts (number bigint primary key, money bigint not null);
            insert into accounts select number, 100 from generate_series(0, 99) number";
        client.batch_execute(table).await?;
        accounts.install(&client, "accounts", "number").await?;
    }
    everything.release().await?;

    let mut refused = 0;
    for _ in 0..TRANSFERS {
        let from = fastrand::u64(..ACCOUNTS - 1);
        let to = fastrand::u64(from + 1..ACCOUNTS);
        loop {
            let token = lease
                .acquire(from..=to, Mode::Exclusive, Duration::from_secs(2))
                .await?;
            let transaction = client.transaction().await?;
            accounts.enter(&transaction, &token).await?;
            let moves = "update accounts set money = money + case number when $1 then -1 else 1 end
                where number in ($1, $2)";
            let moved = transaction
                .execute(moves, &[&from.cast_signed(), &to.cast_signed()])
                .await;
            match moved {
                Ok(_) => {
                    transaction.commit().await?;
                    token.release().await?;
                    break;
                }
                Err(error) if FencedTable::refused(&error) => refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
    let row = client
        .query_one("select sum(money)::bigint from accounts", &[])
        .await?;
    let sum: i64 = row.get(0);
    println!("{clerk}: {TRANSFERS} transfers, {refused} refused; all accounts together have {sum}");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
