//! Who may lease.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::{Mode, RangeLease};
use spanlock_lease_postgres::{Postgres, grant, status};

/// Who may not make the schema is told who may, and what lets him lease.
pub fn a_role_leases_what_it_is_granted(server: &Server) {
    server.execute("create role \"a stranger\" login");
    let mut stranger = server.config();
    stranger.user("a stranger");
    let open = || RangeLease::open(Postgres::new(stranger.clone().into(), "resource")).wait();
    let why = open().expect_err("it may not").to_string();
    let expected = "may not make the schema spanlock_lease";
    assert!(
        why.contains(expected) && why.contains("`spanlock-lease grant`"),
        "{why}"
    );
    runtime()
        .block_on(grant(&server.address(), "spanlock_lease", "a stranger"))
        .expect("the owner may");
    let lease = open().expect("it may");
    let held = lease.acquire(.., Mode::Exclusive, LONG).wait();
    let waits = lease.acquire(.., Mode::Shared, LONG).start();
    held.expect("it is free")
        .release()
        .wait()
        .expect("it is held");
    drop(waits.wait().expect("it is free"));
    let listed = runtime().block_on(status(&stranger.into(), "spanlock_lease"));
    assert!(listed.expect("it may").is_empty());
}
