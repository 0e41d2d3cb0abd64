//! Connections that are encrypted.

use crate::server::{LONG, Server, runtime};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use spanlock_lease::{Mode, RangeLease};
use spanlock_lease_postgres::{Config, Postgres, status_with_tls};
use spanlock_lease_testkit::server::Server as _;
use std::net::TcpListener;
use std::process::Command;
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Of the server's folder, as its user. The certificate signs itself.
const MAKES_A_CERTIFICATE: &str = r"
    create temporary table said (line text);
    copy said from program
        $$printf '[req]\ndistinguished_name=d\nx509_extensions=e\n[d]\n[e]\nsubjectAltName=DNS:localhost\n' >c$$;
    copy said from program 'openssl req -x509 -config c -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -keyout server.key -out server.crt 2>&1';
    copy said from program 'chmod 600 server.key'";

/// Who trusts these certificates, and no others.
fn trusting(pem: Option<&str>) -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = pem {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is one");
        roots.add(certificate).expect("it is one");
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    MakeRustlsConnect::new(config.with_no_client_auth())
}

pub fn all_connections_are_encrypted(server: &Server) {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl, which makes a certificate");
        return;
    }
    server.execute(MAKES_A_CERTIFICATE);
    let pem = runtime().block_on(async {
        let client = server.client().await;
        let row = client.query_one("select pg_read_file('server.crt')", &[]);
        row.await.expect("it was made").get::<_, String>(0)
    });
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    for setting in [
        "ssl = on",
        "listen_addresses = '127.0.0.1'",
        &format!("port = {port}"),
    ] {
        server.execute(&format!("alter system set {setting}"));
    }
    server.crash();

    let mut config: Config =
        format!("host=localhost hostaddr=127.0.0.1 port={port} user=spanlock dbname=postgres")
            .parse()
            .expect("it connects");
    config.ssl_mode(SslMode::Require);
    let engine = || Postgres::new(config.clone(), "resource");
    let refused = |engine| {
        let opened = RangeLease::open(engine).wait();
        opened.expect_err("it is refused").to_string()
    };
    let why = refused(engine());
    assert!(why.contains("TLS"), "{why}");
    let why = refused(engine().with_tls(trusting(None)));
    assert!(why.contains("certificate"), "{why}");

    let open = || RangeLease::open(engine().with_tls(trusting(Some(&pem)))).wait();
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
    let tls = trusting(Some(&pem));
    let listed = runtime().block_on(status_with_tls(&config, "spanlock_lease", tls));
    assert_eq!(listed.expect("it answers")[0].id, held.id());

    // Two that ask, two that listen, one that renews, or more.
    let connected = runtime().block_on(async {
        let at = format!("{} port={port}", server.at);
        let (client, connection) = at
            .parse::<Config>()
            .expect("it connects")
            .connect(NoTls)
            .await
            .expect("it runs");
        tokio::spawn(connection);
        let counts = "select count(*) filter (where ssl), count(*) filter (where not ssl)
            from pg_stat_ssl join pg_stat_activity using (pid)
            where backend_type = 'client backend' and pid <> pg_backend_pid()";
        let row = client.query_one(counts, &[]).await.expect("it is SQL");
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    });
    assert!(connected.0 >= 5 && connected.1 == 0, "{connected:?}");
}
