//! A server for one test.

use crate::network::Network;
use spanlock_lease::{Options, RangeLease};
use spanlock_lease_postgres::Postgres;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Config, NoTls};

/// So long that nothing happens by it in a test.
pub const LONG: Duration = Duration::from_secs(60);

/// It is gone when it is dropped.
pub struct Server {
    /// How to connect.
    pub at: String,
    /// How far a long test has got.
    pub steps: AtomicU64,
}

fn script(arguments: &[&str]) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(script)
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

impl Server {
    pub fn start() -> Result<Self, String> {
        script(&["start"]).map(|at| Self {
            at,
            steps: AtomicU64::default(),
        })
    }

    pub fn folder(&self) -> &str {
        let first = self.at.split(' ').next();
        first
            .and_then(|host| host.strip_prefix("host="))
            .expect("it is reached by a socket")
    }

    /// Its processes are killed, and it starts again.
    pub fn crash(&self) {
        script(&["crash", self.folder()]).expect("it starts again");
    }

    /// A copy that follows it.
    pub fn standby(&self) -> Self {
        let at = script(&["standby", self.folder()]).expect("it starts");
        Self {
            at,
            steps: AtomicU64::default(),
        }
    }

    /// It does not come back.
    pub fn stop(&self) {
        script(&["stop", self.folder()]).expect("it runs");
    }

    /// A way to it that may fail.
    pub fn network(&self) -> Network {
        Network::new(Path::new(self.folder()).join(".s.PGSQL.5432"))
    }

    /// It goes on with another timeline.
    pub fn promote(&self) {
        script(&["promote", self.folder()]).expect("it starts again");
    }

    pub fn config(&self) -> Config {
        self.at
            .parse()
            .expect("the script prints what the client reads")
    }

    pub fn engine(&self) -> Postgres {
        Postgres::new(self.config(), "resource")
    }

    /// A client that asks when it is told, and not from time to time.
    pub fn lease(&self) -> RangeLease {
        let mut options = Options::default();
        options.poll = LONG;
        RangeLease::open_with(self.engine(), options)
            .wait()
            .expect("it opens")
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

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped. What is left of it is in a temporary folder.
        let _ = script(&["stop", self.folder()]);
    }
}

pub fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system has what it needs")
}
