//! A server for one test.

pub use spanlock_lease_testkit::server::{LONG, runtime};

use spanlock_lease_postgres::Postgres;
use spanlock_lease_testkit::server::{self, script};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls};

/// It is gone when it is dropped.
pub struct Server {
    /// How to connect.
    pub at: String,
    /// How far a long test has got.
    steps: AtomicU64,
}

impl Server {
    pub fn folder(&self) -> &str {
        let first = self.at.split(' ').next();
        first
            .and_then(|host| host.strip_prefix("host="))
            .expect("it is reached by a socket")
    }

    /// A copy that follows it.
    pub fn standby(&self) -> Self {
        let at = script("postgres", &["standby", self.folder()]).expect("it starts");
        Self {
            at,
            steps: AtomicU64::default(),
        }
    }

    /// It does not come back.
    pub fn stop(&self) {
        script("postgres", &["stop", self.folder()]).expect("it runs");
    }

    /// It goes on with another timeline.
    pub fn promote(&self) {
        script("postgres", &["promote", self.folder()]).expect("it starts again");
    }

    pub fn config(&self) -> Config {
        self.at
            .parse()
            .expect("the script prints what the client reads")
    }

    /// A connection of the test's own.
    pub async fn client(&self) -> Client {
        let (client, connection) = self.config().connect(NoTls).await.expect("the server runs");
        tokio::spawn(connection);
        client
    }

    /// Does SQL that returns one row with one number.
    pub fn number(&self, text: &str) -> i64 {
        runtime().block_on(async {
            let row = self
                .client()
                .await
                .query_one(text, &[])
                .await
                .expect("it is SQL");
            row.get(0)
        })
    }

    /// Does SQL.
    pub fn execute(&self, text: &str) {
        runtime().block_on(async {
            self.client()
                .await
                .batch_execute(text)
                .await
                .expect("it is SQL")
        });
    }
}

impl server::Server for Server {
    type Engine = Postgres;

    const NAME: &'static str = "PostgreSQL";
    const TTL: Duration = Duration::from_millis(400);

    fn start() -> Result<Self, String> {
        script("postgres", &["start"]).map(|at| Self {
            at,
            steps: AtomicU64::default(),
        })
    }

    fn at(&self) -> &str {
        &self.at
    }

    fn socket(&self) -> PathBuf {
        Path::new(self.folder()).join(".s.PGSQL.5432")
    }

    fn at_port(port: u16) -> String {
        format!("host=127.0.0.1 port={port} user=spanlock dbname=postgres")
    }

    fn engine_at(at: &str) -> Postgres {
        let config = at.parse().expect("the script prints what the client reads");
        Postgres::new(config, "resource")
    }

    fn crash(&self) {
        script("postgres", &["crash", self.folder()]).expect("it starts again");
    }

    fn steps(&self) -> &AtomicU64 {
        &self.steps
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped. What is left of it is in a temporary folder.
        let _ = script("postgres", &["stop", self.folder()]);
    }
}
