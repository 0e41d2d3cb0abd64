//! A cluster for one test.

use spanlock_lease::{Engine, Listed, News};
use spanlock_lease_etcd::{Etcd, status};
use spanlock_lease_testkit::server::{self, Engines, Server as _, Started, runtime, script_as};
use std::ops::Deref;
use std::process::Command;
use std::time::Duration;

/// Of one member, if nothing else is said. It is gone when it is dropped.
pub struct Server(Started);

impl Server {
    /// One of three.
    pub fn of_three() -> Self {
        let started = Started::new("etcd", &["start", "3"]);
        started.expect("one was started before").into()
    }

    /// Asks `etcdctl`.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        self.does("ctl", arguments)
    }

    /// `etcdctl`, to be run.
    pub fn ctl_as(&self, arguments: &[&str]) -> Command {
        script_as("etcd", &[&["ctl", self.folder()], arguments].concat())
    }

    /// The keys of the tests' resource that begin so.
    pub fn keys(&self, begin: &str) -> Vec<String> {
        let begin = format!("spanlock/lease/resource/{begin}");
        let listed = self.ctl(&["get", "--prefix", "--keys-only", &begin]);
        listed.split_whitespace().map(str::to_owned).collect()
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
    type Engine = Etcd;

    fn engine(&self) -> Etcd {
        Self::engine_at(&self.at)
    }

    async fn hears(engine: &Etcd) {
        while !matches!(engine.news().await, News::Missed) {}
    }
}

impl server::Server for Server {
    const NAME: &'static str = "etcd";
    const SCRIPT: &'static str = "etcd";
    const SOCKET: &'static str = "1:0";
    const TTL: Duration = Duration::from_secs(1);

    fn at_port(port: u16) -> String {
        format!("etcd://127.0.0.1:{port}")
    }

    fn engine_of(at: &str, resource: &str) -> Etcd {
        Etcd::new(at.parse().expect("it is one"), resource)
    }

    fn listed(&self) -> Vec<Listed> {
        let config = self.at.parse().expect("it is one");
        runtime().block_on(status(&config)).expect("it answers")
    }
}
