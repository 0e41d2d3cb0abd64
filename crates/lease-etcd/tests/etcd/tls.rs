//! Connections that are encrypted.

use crate::server::Server;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use spanlock_lease::{Mode, RangeLease};
use spanlock_lease_etcd::{Config, Etcd, status_with_tls};
use spanlock_lease_testkit::server::{LONG, runtime};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Who trusts these certificates, and no others.
fn trusting(pem: Option<&[u8]>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = pem {
        let certificate = CertificateDer::from_pem_slice(pem).expect("it is one");
        roots.add(certificate).expect("it is one");
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    config.with_no_client_auth()
}

pub fn all_connections_are_encrypted(server: &Server) {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: TLS, because there is no openssl that makes a certificate");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    server.does("secure", &[&port.to_string()]);
    let certificate = Path::new(server.folder()).join("certificate.pem");
    let certificate = std::fs::read(certificate).expect("it was made");

    let config: Config = format!("etcd://localhost:{port}")
        .parse()
        .expect("it is one");
    let refused = |engine, why: &str| {
        let said = RangeLease::open(engine)
            .wait()
            .expect_err("it is refused")
            .to_string();
        assert!(said.contains(why), "{said}");
    };
    let engine = || Etcd::new(config.clone(), "resource");
    refused(engine(), "cannot be reached");
    refused(engine().with_tls(trusting(None)), "certificate");
    let trusting = || trusting(Some(&certificate));
    let lease = RangeLease::open(engine().with_tls(trusting()))
        .wait()
        .unwrap();
    let held = lease.acquire(.., Mode::Exclusive, LONG).wait().unwrap();
    let listed = runtime()
        .block_on(status_with_tls(&config, trusting()))
        .unwrap();
    assert_eq!(listed.len(), 1);
    held.release().wait().unwrap();
}
