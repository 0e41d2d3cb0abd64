//! A cluster for one test.

use spanlock_lease_etcd::Etcd;
use spanlock_lease_testkit::server::{self, script, script_as};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Of one member, if nothing else is said. It is gone when it is dropped.
pub struct Server {
    at: String,
    steps: AtomicU64,
}

impl Server {
    fn started(arguments: &[&str]) -> Result<Self, String> {
        let steps = AtomicU64::default();
        script("etcd", arguments).map(|at| Self { at, steps })
    }

    /// One of three.
    pub fn of_three() -> Self {
        Self::started(&["start", "3"]).expect("one was started before")
    }

    pub fn folder(&self) -> &str {
        let members = self.at.strip_prefix("etcd://");
        let first = members.and_then(|members| members.split(',').next());
        let folder = first.and_then(|first| first.strip_suffix("/1:0"));
        folder.expect("it is reached by sockets")
    }

    /// Does what the script does, and returns what that prints.
    pub fn does(&self, what: &str, arguments: &[&str]) -> String {
        let arguments = [&[what, self.folder()], arguments].concat();
        script("etcd", &arguments).expect("it runs")
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

impl server::Server for Server {
    type Engine = Etcd;

    const NAME: &'static str = "etcd";
    const TTL: Duration = Duration::from_secs(1);

    fn start() -> Result<Self, String> {
        Self::started(&["start"])
    }

    fn at(&self) -> &str {
        &self.at
    }

    fn socket(&self) -> PathBuf {
        Path::new(self.folder()).join("1:0")
    }

    fn at_port(port: u16) -> String {
        format!("etcd://127.0.0.1:{port}")
    }

    fn engine_at(at: &str) -> Etcd {
        Etcd::new(at.parse().expect("it is one"), "resource")
    }

    fn crash(&self) {
        self.does("crash", &[]);
    }

    fn steps(&self) -> &AtomicU64 {
        &self.steps
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is left of one that does not run is in a temporary folder.
        let _ = script("etcd", &["stop", self.folder()]);
    }
}
