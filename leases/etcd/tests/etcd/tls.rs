//! Connections that are encrypted.

use crate::server::Server;
use spanlock_lease::{Mode, NotOpened, RangeLease};
use spanlock_lease_etcd::status;
use spanlock_lease_testkit::server::{LONG, Server as _, runtime};

/// The member asks for the client's certificate, too. What is not trusted was read from a member that was reached.
pub fn all_connections_are_encrypted(server: &Server) {
    let Some((_, port)) = server.secure() else {
        return;
    };
    let folder = server.folder();
    let trusted = format!("cacert={folder}/certificate.pem");
    let shown = format!("{trusted}&cert={folder}/certificate.pem&key={folder}/key.pem");
    let at = |begin: &str, query: &str| format!("{begin}:{port}{query}");
    let open = |at: &str| RangeLease::open(Server::engine_at(at)).wait();
    let why = |at: &str| match open(at) {
        Err(NotOpened::Engine(why)) => why.to_string(),
        other => panic!("{at}: {other:?}"),
    };
    let said = why(&at("etcd://localhost", ""));
    assert!(said.contains("reached by https://"), "{said}");
    for wrong in [
        at("https://localhost", ""),
        at("https://127.0.0.1", &format!("?{shown}")),
    ] {
        let said = why(&wrong);
        assert!(
            said.contains("certificate") && !said.contains("cannot be reached"),
            "{said}"
        );
    }
    // It says so when the client has begun to write, and closes.
    for _ in 0..20 {
        let said = why(&at("https://localhost", &format!("?{trusted}")));
        let is_named = said.to_lowercase().contains("certificate");
        assert!(is_named && !said.contains("cannot be reached"), "{said}");
    }

    let right = at("https://localhost", &format!("?{shown}"));
    let lease = open(&right).expect("it opens");
    let held = lease.acquire(.., Mode::Exclusive, LONG).wait().unwrap();
    let listed = runtime().block_on(status(&right.parse().expect("it is one")));
    assert_eq!(listed.expect("it answers").len(), 1);
    held.release().wait().unwrap();
}
