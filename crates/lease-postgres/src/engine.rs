//! The calls.

use crate::places::Places;
use crate::schema;
use crate::session::{
    Connector, PATIENCE, Session, listen, trouble, trouble_with_schema, within_time,
};
use spanlock_lease::{
    Answer, Engine, Fence, KeySpan, Mode, News, Renewal, Request, RequestId, Span, Trouble, Wanted,
};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Error, NoTls, Row, Socket};

/// For how long a wish counts that nobody repeats. Requests that wait repeat theirs each half second.
const WISH: Duration = Duration::from_secs(5);

/// An opening takes no longer. It may bring the schema up, or wait for others who do.
const OPENS: Duration = Duration::from_secs(60);

/// Leases of one resource, as rows of a database: of positions, or of byte strings.
pub struct Postgres<R = Span> {
    config: Config,
    listens: Config,
    connector: Connector,
    resource: String,
    schema: String,
    asks: Line,
    renews: Line,
    news: Mutex<Option<mpsc::UnboundedReceiver<News>>>,
    leased_by: PhantomData<fn() -> R>,
}

/// A connection, once there is one.
type Line = Mutex<Option<Arc<Session>>>;

impl Postgres {
    /// The resource with this name, in the database that `config` leads to. It is reached by
    /// [`RangeLease::open`](spanlock_lease::RangeLease::open).
    #[must_use]
    pub fn new(config: Config, resource: impl Into<String>) -> Self {
        Self::at(config, resource.into())
    }
}

impl Postgres<KeySpan> {
    /// As [`new`](Postgres::new), for a resource that is leased by byte strings of up to 1024 bytes. It is reached by
    /// [`KeyLease::open`](spanlock_lease::KeyLease). No resource is leased by both.
    #[must_use]
    pub fn over_keys(config: Config, resource: impl Into<String>) -> Self {
        Self::at(config, resource.into())
    }
}

impl<R> Postgres<R> {
    fn at(config: Config, resource: String) -> Self {
        Self {
            listens: config.clone(),
            config,
            connector: Connector::new(NoTls),
            resource,
            schema: "spanlock_lease".to_owned(),
            asks: Mutex::default(),
            renews: Mutex::default(),
            news: Mutex::default(),
            leased_by: PhantomData,
        }
    }

    /// In another schema than `spanlock_lease`: a name of up to 40 small letters, digits and `_`.
    #[must_use]
    pub fn in_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Listens by another way than it asks: a pool of connections does not forward what the server reports.
    #[must_use]
    pub fn listening(mut self, direct: Config) -> Self {
        self.listens = direct;
        self
    }

    /// Connections are encrypted by `tls`, which a library such as `tokio-postgres-rustls` or `postgres-native-tls`
    /// makes: it has the certificates that are trusted. Whether one without encryption will do says the `sslmode` of
    /// the [`Config`]; unless it says `require`, a server without it is talked to in the clear. Connections by a socket
    /// of this machine never have it.
    #[must_use]
    pub fn with_tls<T>(mut self, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.connector = Connector::new(tls);
        self
    }
}

impl<R: Places> Postgres<R> {
    async fn session(&self, line: &Line) -> Result<Arc<Session>, Trouble> {
        let mut line = line.lock().await;
        if let Some(session) = line.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let client = self.connector.connect(&self.config).await?;
        let session = Session::new::<R>(client, &self.schema, &self.resource)
            .await
            .map_err(trouble)?;
        Ok(Arc::clone(line.insert(Arc::new(session))))
    }

    /// One round trip, within a time.
    async fn call(
        &self,
        line: &Line,
        patience: Duration,
        asks: impl AsyncFnOnce(&Session) -> Result<Row, Error>,
    ) -> Result<Row, Trouble> {
        let mut used = None;
        let answer = timeout(patience, async {
            let session = used.insert(self.session(line).await?);
            asks(session).await.map_err(trouble)
        });
        let answer = answer.await.unwrap_or_else(|_late| {
            let why = match used {
                None => "no connection to the server in time",
                Some(_) => "the server did not answer in time",
            };
            Err(Trouble::Unreachable(why.into()))
        });
        if let (Err(Trouble::Unreachable(_)), Some(used)) = (&answer, used) {
            // A server that closes, or has become a standby, is left. Calls that are under way end first. Whoever
            // makes another connection at this moment has left this one, and is not waited for.
            if let Ok(mut line) = line.try_lock()
                && line.as_ref().is_some_and(|now| Arc::ptr_eq(now, &used))
            {
                *line = None;
            }
        }
        answer
    }
}

/// How long an answer is waited for. One that comes after the ttl is of no use, and a connection that loses what is
/// sent says nothing.
fn patience(ttl: Duration) -> Duration {
    ttl.clamp(Duration::from_secs(1), PATIENCE)
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl<R: Places> Engine for Postgres<R> {
    type Range = R;

    async fn open(&self) -> Result<(), Trouble> {
        let mut client = self.connector.connect(&self.config).await?;
        let opens = async {
            schema::prepare(&mut client, &self.schema)
                .await
                .map_err(trouble_with_schema)?;
            Session::new::<R>(client, &self.schema, &self.resource)
                .await
                .map_err(trouble)
        };
        let session = within_time(OPENS, "answer", opens).await?;
        let channel = schema::within(&self.schema, &format!("@.{}", session.resource));
        let (sender, news) = mpsc::unbounded_channel();
        tokio::spawn(listen(
            self.connector.clone(),
            self.listens.clone(),
            channel,
            sender,
        ));
        *self.news.lock().await = Some(news);
        *self.asks.lock().await = Some(Arc::new(session));
        Ok(())
    }

    async fn acquire(&self, request: &Request<R>) -> Result<Answer<R>, Trouble> {
        let alone = request.mode == Mode::Exclusive;
        let (id, ttl, wish) = (
            request.id.to_string(),
            milliseconds(request.ttl),
            milliseconds(WISH),
        );
        let range = request.span.parameters(request.grow);
        let row = self
            .call(&self.asks, patience(request.ttl), async |session| {
                let Session {
                    client,
                    resource,
                    acquire,
                    ..
                } = session;
                let mut parameters: Vec<&(dyn ToSql + Sync)> =
                    vec![resource, &alone, &id, &ttl, &wish];
                parameters.extend(range.iter().map(|one| &**one));
                client.query_one(acquire, &parameters).await
            })
            .await?;
        if !row.get::<_, bool>("granted") {
            let wait: Option<i64> = row.get("wait");
            // What runs out now is swept by somebody, or used by a write, for a moment.
            let expires = wait.map(|wait| Duration::from_millis(wait.max(50).cast_unsigned()));
            return Ok(Answer::Busy { expires });
        }
        let (epoch, counter): (i64, i64) = (row.get("epoch"), row.get("fence"));
        Ok(Answer::Granted {
            span: R::of(&row),
            fence: Fence {
                epoch: u32::try_from(epoch).expect("a timeline has 32 bits"),
                counter: counter.cast_unsigned(),
            },
        })
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        let (id, milliseconds) = (id.to_string(), milliseconds(ttl));
        // Time for another attempt, on another connection, is left.
        let patience = PATIENCE.min(ttl / 4);
        let row = self
            .call(&self.renews, patience, async |session| {
                session
                    .client
                    .query_one(&session.renew, &[&id, &milliseconds])
                    .await
            })
            .await?;
        if !row.get::<_, bool>("kept") {
            return Ok(Renewal::Gone);
        }
        let wanted = if row.get("wanted") {
            Wanted::Yes
        } else {
            Wanted::No
        };
        Ok(Renewal::Kept { wanted })
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        let id = id.to_string();
        let released = self.call(&self.asks, PATIENCE, async |session| {
            session.client.query_one(&session.release, &[&id]).await
        });
        released.await.map(drop)
    }

    async fn news(&self) -> News {
        let mut news = self.news.lock().await;
        match news.as_mut() {
            Some(news) => match news.recv().await {
                Some(news) => news,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

impl<R> fmt::Debug for Postgres<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Postgres");
        debug
            .field("resource", &self.resource)
            .field("schema", &self.schema);
        debug.finish_non_exhaustive()
    }
}
