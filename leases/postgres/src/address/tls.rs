//! TLS below which what the server says last is heard.

use spanlock_lease_tls::Heard;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

type Maker = MakeRustlsConnect;
type Connector = <Maker as MakeTlsConnect<Heard<Socket>>>::TlsConnect;

#[derive(Clone)]
pub(super) struct Tls(pub(super) Maker);

pub(super) struct Connects(Connector);

impl MakeTlsConnect<Socket> for Tls {
    type Stream = <Maker as MakeTlsConnect<Heard<Socket>>>::Stream;
    type TlsConnect = Connects;
    type Error = <Maker as MakeTlsConnect<Heard<Socket>>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connects, Self::Error> {
        MakeTlsConnect::<Heard<Socket>>::make_tls_connect(&mut self.0, host).map(Connects)
    }
}

impl TlsConnect<Socket> for Connects {
    type Stream = <Connector as TlsConnect<Heard<Socket>>>::Stream;
    type Error = <Connector as TlsConnect<Heard<Socket>>>::Error;
    type Future = <Connector as TlsConnect<Heard<Socket>>>::Future;

    fn connect(self, stream: Socket) -> Self::Future {
        self.0.connect(Heard::new(stream))
    }
}
