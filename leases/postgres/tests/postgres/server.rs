//! A server for one test.

pub use spanlock_lease_testkit::server::{LONG, runtime};

use spanlock_lease::Listed;
use spanlock_lease_postgres::{Address, Postgres, status};
use spanlock_lease_testkit::server::{self, Engines, Server as _, Started};
use std::ops::Deref;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls};

/// It is gone when it is dropped.
pub struct Server(Started);

impl Server {
    /// A copy that follows it.
    pub fn standby(&self) -> Self {
        Started::new("postgres", &["standby", self.folder()])
            .expect("it starts")
            .into()
    }

    pub fn config(&self) -> Config {
        self.at
            .parse()
            .expect("the script prints what the client reads")
    }

    pub fn address(&self) -> Address {
        self.config().into()
    }

    /// A connection of the test's own.
    pub async fn client(&self) -> Client {
        let (client, connection) = self.config().connect(NoTls).await.expect("the server runs");
        tokio::spawn(connection);
        client
    }

    /// Does SQL that returns one row with one number.
    pub fn number(&self, text: &str) -> i64 {
        let row = async { self.client().await.query_one(text, &[]).await };
        runtime().block_on(row).expect("it is SQL").get(0)
    }

    /// Does SQL.
    pub fn execute(&self, text: &str) {
        let done = async { self.client().await.batch_execute(text).await };
        runtime().block_on(done).expect("it is SQL");
    }
}

impl From<Started> for Server {
    fn from(started: Started) -> Self {
        Self(started)
    }
}

impl Deref for Server {
    type Target = Started;

    fn deref(&self) -> &Started {
        &self.0
    }
}

impl Engines for Server {
    type Engine = Postgres;

    fn engine(&self) -> Postgres {
        Self::engine_at(&self.at)
    }
}

impl server::Server for Server {
    const NAME: &'static str = "PostgreSQL";
    const SCRIPT: &'static str = "postgres";
    const SOCKET: &'static str = ".s.PGSQL.5432";
    const TTL: Duration = Duration::from_millis(400);

    fn at_port(port: u16) -> String {
        format!("host=127.0.0.1 port={port} user=spanlock dbname=postgres")
    }

    fn engine_of(at: &str, resource: &str) -> Postgres {
        let config = at.parse().expect("the script prints what the client reads");
        Postgres::new(config, resource)
    }

    fn listed(&self) -> Vec<Listed> {
        let listed = runtime().block_on(status(&self.address(), "spanlock_lease"));
        listed.expect("it answers")
    }
}
