//! Connections that are encrypted.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::{Mode, NotOpened, RangeLease};
use spanlock_lease_postgres::{Config, Postgres, status};
use std::process::Command;
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;

/// Lets the server encrypt, at a port. Its words, which lack the host and how to encrypt, and its certificate.
fn secured(server: &Server) -> Option<(String, String)> {
    server.execute("alter role spanlock password 'right'");
    let (words, _port) = server.secure()?;
    let certificate = format!("{}/certificate.pem", server.folder());
    Some((words + " password=right", certificate))
}

fn opened(words: &str) -> Result<RangeLease, NotOpened> {
    let address = words.parse().expect("they are words");
    RangeLease::open(Postgres::new(address, "resource")).wait()
}

/// Certificates that are wrong were read from a server that was reached.
pub fn certificates_are_checked_as_the_words_say(server: &Server) {
    let Some((words, certificate)) = secured(server) else {
        return;
    };
    let words = |host: &str, mode: &str| format!("host={host} {words} sslmode={mode}");
    let trusted = |host: &str, mode: &str| words(host, mode) + " sslrootcert=" + &certificate;
    for right in [
        words("localhost", "disable"),
        words("localhost", "prefer"),
        words("other", "require"),
        trusted("other", "verify-ca"),
        trusted("localhost", "verify-full"),
    ] {
        drop(opened(&right).expect(&right));
    }
    for wrong in [
        words("localhost", "verify-full") + " sslrootcert=system",
        trusted("other", "verify-full"),
    ] {
        let why = opened(&wrong).expect_err(&wrong).to_string();
        assert!(
            why.contains("certificate") && !why.contains("cannot be reached"),
            "{wrong}: {why}"
        );
    }
    let mut without_tls: Config = words("localhost", "require")
        .parse()
        .expect("they are words");
    let refused = RangeLease::open(Postgres::new(
        without_tls.ssl_mode(SslMode::Require).clone().into(),
        "resource",
    ));
    let why = refused.wait().expect_err("there is no TLS").to_string();
    assert!(
        why.contains("TLS") && !why.contains("cannot be reached"),
        "{why}"
    );
}

/// A server tells a client that its certificate is wrong when the client has begun to write, and closes.
pub fn certificates_of_clients_are_checked(server: &Server) {
    let Some((words, certificate)) = secured(server) else {
        return;
    };
    let words = format!("host=localhost {words} sslmode=verify-full sslrootcert={certificate}");
    let shows =
        |certificate: &str, key: &str| format!("{words} sslcert={certificate} sslkey={key}");
    let own = format!("{}/key.pem", server.folder());
    drop(opened(&shows(&certificate, &own)).expect("it is trusted"));
    let other = ["other", "other.key"].map(|name| format!("{}/{name}", server.folder()));
    let makes = "req -x509 -newkey rsa:2048 -nodes -subj /CN=other".split(' ');
    let files = ["-out", &other[0], "-keyout", &other[1]];
    let made = Command::new("openssl").args(makes).args(files).output();
    assert!(made.expect("it is there").status.success());
    for _ in 0..20 {
        let why = opened(&shows(&other[0], &other[1])).expect_err("it is not trusted");
        let why = why.to_string();
        let is_named = why.contains("fatal alert") && !why.contains("cannot be reached");
        assert!(is_named, "{why}");
    }
}

pub fn all_connections_are_encrypted(server: &Server) {
    let Some((words, certificate)) = secured(server) else {
        return;
    };
    let words = format!("host=localhost {words} sslmode=verify-full sslrootcert={certificate}");
    let open = || opened(&words);
    let (a, b) = (open().expect("it opens"), open().expect("it opens"));
    let held = a
        .acquire(0..10, Mode::Exclusive, LONG)
        .wait()
        .expect("it is free");
    let next = b.acquire(5..6, Mode::Exclusive, LONG).start();
    held.wanted().wait();
    held.renew().wait().expect("it is held");
    held.release().wait().expect("it is held");
    let held = next.wait().expect("it is free");
    let address = words.parse().expect("they are words");
    let listed = runtime().block_on(status(&address, "spanlock_lease"));
    assert_eq!(listed.expect("it answers")[0].id, held.id());

    // Two that ask, two that listen, one that renews, or more.
    let connected = runtime().block_on(async {
        let port = words.split(' ').find(|word| word.starts_with("port="));
        let at = format!("{} {}", server.at, port.expect("it is there"));
        let (client, connection) = tokio_postgres::connect(&at, NoTls).await.expect("it runs");
        tokio::spawn(connection);
        let counts = "select count(*) filter (where ssl), count(*) filter (where not ssl)
            from pg_stat_ssl join pg_stat_activity using (pid)
            where backend_type = 'client backend' and pid <> pg_backend_pid()";
        let row = client.query_one(counts, &[]).await.expect("it is SQL");
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    });
    assert!(connected.0 >= 5 && connected.1 == 0, "{connected:?}");
}
