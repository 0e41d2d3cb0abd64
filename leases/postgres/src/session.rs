//! Connections: one that asks, or one that listens.

use crate::address::Address;
use crate::places::Places;
use crate::schema::{Failed, within};
use spanlock_lease::{News, Trouble};
use std::error::Error as _;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::iter;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::select;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Error, SimpleQueryMessage, Statement};

/// No call takes longer than this, or its connection is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that is silent for so long is asked whether it still is one.
const SILENCE: Duration = Duration::from_secs(5);

/// A server that waits for a lock of somebody who has stopped in a transaction gives up earlier. Leases that a server
/// may lose in a crash are of no use, whatever the database's own setting is.
const SETTINGS: &str = "set lock_timeout = '2s'; set statement_timeout = '8s';
    set idle_in_transaction_session_timeout = '8s';
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'";

/// A connection with its statements.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The number of the resource.
    pub(crate) resource: i64,
    pub(crate) acquire: Statement,
    pub(crate) renew: Statement,
    pub(crate) release: Statement,
}

/// Connects. Its task ends with the client, or with the connection.
pub(crate) async fn connect(address: &Address) -> Result<Client, Trouble> {
    let connects = async {
        let (client, mut messages) = address.connects().await?;
        // What ends it is told to who asks next.
        tokio::spawn(async move {
            while let Some(Ok(_)) = poll_fn(|context| messages(context)).await {}
        });
        client.batch_execute(SETTINGS).await?;
        Ok(client)
    };
    within_time(PATIENCE, "connect", async {
        connects.await.map_err(trouble)
    })
    .await
}

/// What is had within a time, or what the server did not do in it.
pub(crate) async fn within_time<T>(
    time: Duration,
    what: &str,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    timeout(time, work).await.unwrap_or_else(|_late| {
        let why = format!("the server did not {what} within {} s", time.as_secs());
        Err(Trouble::Unreachable(why.into()))
    })
}

impl Session {
    /// On a schema that is prepared.
    pub(crate) async fn new<R: Places>(
        client: Client,
        schema: &str,
        resource: &str,
    ) -> Result<Self, Error> {
        let row = client
            .query_one(
                &within(schema, "select @.enter($1, $2)"),
                &[&resource, &R::KIND],
            )
            .await?;
        let prepare = async |text| client.prepare(&within(schema, text)).await;
        let spans = R::SPANS;
        let acquire = format!(
            "select granted, lower(got) as lo, upper(got) as behind, epoch, fence, wait
            from @.admit($1, {spans}, $2, $3::text::uuid, $4, $5)"
        );
        let (acquire, renew, release) = (
            prepare(&acquire).await?,
            prepare("select kept, wanted from @.renew($1::text::uuid, $2)").await?,
            prepare("select @.release($1::text::uuid)").await?,
        );
        Ok(Self {
            resource: row.get(0),
            client,
            acquire,
            renew,
            release,
        })
    }
}

/// Listens until nobody wants the news, over as many connections as it takes. Each is left when one that asks has been:
/// the other server may be the one that grants now.
pub(crate) async fn listen(
    address: Address,
    channel: String,
    news: mpsc::UnboundedSender<News>,
    left: Arc<Notify>,
) {
    let listens = async {
        loop {
            // What is lost meanwhile is found out by polling, and by renewals.
            select! {
                _ended = listen_once(&address, &channel, &news) => {}
                () = left.notified() => {}
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    select! {
        () = listens => {}
        () = news.closed() => {}
    }
}

/// Listens over one connection.
async fn listen_once(
    address: &Address,
    channel: &str,
    news: &mpsc::UnboundedSender<News>,
) -> Result<(), Error> {
    let Ok(connected) = timeout(PATIENCE, address.connects()).await else {
        return Ok(());
    };
    let (client, mut messages) = connected?;
    let mut listens = pin!(async {
        let listen = format!("listen \"{channel}\"");
        match timeout(PATIENCE, client.batch_execute(&listen)).await {
            Ok(listening) => listening?,
            Err(_late) => return Ok(()),
        }
        // Whoever is told too much asks once more.
        let _ = news.send(News::Missed);
        // One that loses what is sent, without a word, is left: its server may know better for hours. So is a server
        // that takes no more writes, since who releases has gone elsewhere.
        loop {
            sleep(SILENCE).await;
            let asks = client.simple_query("show transaction_read_only");
            match timeout(PATIENCE, asks).await {
                Ok(answer) => match takes_writes(&answer?) {
                    true => {}
                    false => return Ok::<(), Error>(()),
                },
                Err(_late) => return Ok(()),
            }
        }
    });
    loop {
        let message = select! {
            ended = &mut listens => return ended,
            message = poll_fn(|context| messages(context)) => message,
        };
        match message {
            Some(Ok(AsyncMessage::Notification(note))) => {
                if let Ok(id) = note.payload().replace('-', "").parse() {
                    let _ = news.send(News::About(id));
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => return Ok(()),
        }
    }
}

fn takes_writes(answer: &[SimpleQueryMessage]) -> bool {
    let off = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("off"));
    answer.iter().any(off)
}

/// What the client's error says with all its causes. By itself it says only that there was one.
#[derive(Debug)]
struct Told(Error);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = self.0.as_db_error() {
            return f.write_str(server.message());
        }
        let mut error: &dyn std::error::Error = &self.0;
        write!(f, "{error}")?;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}

impl std::error::Error for Told {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// What is wrong with the schema, or with the way to it.
pub(crate) fn trouble_with_schema(error: Failed) -> Trouble {
    match error.downcast::<Error>() {
        Ok(clients) => trouble(*clients),
        Err(other) => Trouble::Refused(other),
    }
}

/// What a pool of connections makes of prepared statements: the session that has them is another client's.
const STRANDED: [SqlState; 2] = [
    SqlState::INVALID_SQL_STATEMENT_NAME,
    SqlState::DUPLICATE_PSTATEMENT,
];

/// What pools do that leases cannot be had through.
pub(crate) const POOLED: &str = "the way to the server is a pool that gives each transaction another session, such as PgBouncer with \
    pool_mode = transaction: leases need pool_mode = session, or the server's own port";

/// Whether to ask again.
pub(crate) fn trouble(error: Error) -> Trouble {
    let Some(state) = error.code().cloned() else {
        return match was_reached(&error) {
            true => Trouble::Refused(Told(error).into()),
            false => Trouble::Unreachable(Told(error).into()),
        };
    };
    if STRANDED.contains(&state) {
        return Trouble::Refused(POOLED.into());
    }
    // Lost connections, transactions to be repeated, too little of something, a lock that was not had in time, a server
    // that stops, and one that is a standby: each may be over soon.
    let passing = ["08", "40", "53", "55", "57", "25"];
    let passes = passing.iter().any(|class| state.code().starts_with(class))
        || state == SqlState::NO_DATA_FOUND;
    if passes {
        Trouble::Unreachable(Told(error).into())
    } else {
        Trouble::Refused(Told(error).into())
    }
}

/// Whether the server was there, and the client did not like what it said: it has no TLS, or not the certificate that
/// is trusted, or wants a password.
fn was_reached(error: &Error) -> bool {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    let mut inputs = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    let said = error.to_string();
    let disagrees = [
        "TLS handshake",
        "authentication error",
        "invalid configuration",
        "communicating with the server",
    ];
    disagrees.iter().any(|what| said.contains(what))
        && inputs.all(|cause| cause.kind() == io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::{PATIENCE, connect};
    use crate::address::Address;
    use spanlock_lease::Trouble;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;
    use tokio::time::{pause, timeout};

    /// It lets a client in first. The time after that is simulated.
    #[test]
    fn a_server_that_falls_silent_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, is_asked) = oneshot::channel();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            client.read_exact(&mut length).unwrap();
            let mut rest = vec![0; u32::from_be_bytes(length) as usize - length.len()];
            client.read_exact(&mut rest).unwrap();
            client
                .write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")
                .unwrap();
            client.read_exact(&mut length).unwrap();
            asked.send(()).unwrap();
            // Until the client has gone.
            let _ = client.read_to_end(&mut rest);
        });
        let address: Address = format!("host=127.0.0.1 port={port} user=a sslmode=disable")
            .parse()
            .unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connects = tokio::spawn(async move { connect(&address).await });
            is_asked.await.unwrap();
            pause();
            let connected = timeout(2 * PATIENCE, connects).await;
            match connected.expect("it is given up").unwrap() {
                Err(Trouble::Unreachable(why)) => assert!(why.to_string().contains("10 s")),
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("nobody has answered"),
            }
        });
        drop(runtime);
        server.join().unwrap();
    }
}
