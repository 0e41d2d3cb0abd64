//! A pool of connections between clients and the server.

use crate::server::{LONG, Server};
use spanlock_lease::{Mode, NotOpened, RangeLease, Wanted};
use spanlock_lease_testkit::server::{Engines as _, Server as _};
use std::process::Command;

/// Leases over a pool, unless there is no program for one.
fn open(server: &Server, mode: &str) -> Option<Result<RangeLease, NotOpened>> {
    if Command::new("pgbouncer").arg("--version").output().is_err() {
        println!("skipped: there is no pgbouncer");
        return None;
    }
    let pool = Server::engine_at(&server.does("pool", &[mode]));
    Some(RangeLease::open(pool).wait())
}

pub fn sessions_that_are_kept_do(server: &Server) {
    let Some(pooled) = open(server, "session") else {
        return;
    };
    let (a, b) = (pooled.expect("it opens"), server.lease());
    for (holder, waiter) in [(&a, &b), (&b, &a)] {
        let held = holder.acquire(.., Mode::Exclusive, LONG).wait().unwrap();
        let next = waiter.acquire(.., Mode::Exclusive, LONG).start();
        assert_eq!(held.wanted().wait(), Wanted::Yes);
        held.release().wait().unwrap();
        drop(next.wait().unwrap());
    }
}

/// Nobody would be told of a release.
pub fn sessions_that_change_are_refused(server: &Server) {
    if let Some(pooled) = open(server, "transaction") {
        let why = pooled.expect_err("nothing would be heard").to_string();
        assert!(why.contains("pool_mode = session"), "{why}");
    }
}
