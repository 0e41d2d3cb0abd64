//! The calls.

use crate::address::Address;
use crate::places::Places;
use crate::schema;
use crate::session::{
    PATIENCE, POOLED, Session, connect, listen, trouble, trouble_with_schema, within_time,
};
use spanlock_lease::{
    Answer, Engine, Fence, KeySpan, Mode, News, Renewal, Request, RequestId, Span, Trouble, Wanted,
};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

/// For how long a wish counts that nobody repeats. Requests that wait repeat theirs each half second.
const WISH: Duration = Duration::from_secs(5);

/// An opening takes no longer. It may make the schema, or wait for others who do.
const OPENS: Duration = Duration::from_secs(60);

/// An opening waits no longer for who listens.
const LISTENS: Duration = Duration::from_secs(2);

/// Leases of one resource, as rows of a database: of positions, or of byte strings.
pub struct Postgres<R = Span> {
    address: Address,
    listens: Address,
    resource: String,
    schema: String,
    asks: Line,
    renews: Line,
    news: Mutex<Option<mpsc::UnboundedReceiver<News>>>,
    /// A connection that asks was left.
    left: Arc<Notify>,
    leased_by: PhantomData<fn() -> R>,
}

/// A connection, once there is one.
type Line = Mutex<Option<Arc<Session>>>;

impl Postgres {
    /// The resource with this name, in the database that `address` leads to. It is reached by
    /// [`RangeLease::open`](spanlock_lease::RangeLease::open).
    #[must_use]
    pub fn new(address: Address, resource: impl Into<String>) -> Self {
        Self::at(address, resource.into())
    }
}

impl Postgres<KeySpan> {
    /// As [`new`](Postgres::new), for a resource that is leased by byte strings of up to 1024 bytes. It is reached by
    /// [`KeyLease::open`](spanlock_lease::KeyLease). No resource is leased by both.
    #[must_use]
    pub fn over_keys(address: Address, resource: impl Into<String>) -> Self {
        Self::at(address, resource.into())
    }
}

impl<R> Postgres<R> {
    fn at(address: Address, resource: String) -> Self {
        Self {
            listens: address.clone(),
            address,
            resource,
            schema: "spanlock_lease".to_owned(),
            asks: Mutex::default(),
            renews: Mutex::default(),
            news: Mutex::default(),
            left: Arc::default(),
            leased_by: PhantomData,
        }
    }

    /// In another schema than `spanlock_lease`: a name of up to 40 small letters, digits and `_`.
    #[must_use]
    pub fn in_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Listens by another way than it asks.
    #[must_use]
    pub fn listening(mut self, direct: Address) -> Self {
        self.listens = direct;
        self
    }
}

impl<R: Places> Postgres<R> {
    async fn session(&self, line: &Line) -> Result<Arc<Session>, Trouble> {
        let mut line = line.lock().await;
        match line.as_ref() {
            Some(session) if !session.client.is_closed() => return Ok(Arc::clone(session)),
            Some(_ended) => self.left.notify_one(),
            None => {}
        }
        let client = connect(&self.address).await?;
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
                self.left.notify_one();
            }
        }
        answer
    }
}

/// Whether a report comes through. Who listens by a pool that takes its session away hears nothing.
///
/// A way that fails now may be there later, so who does not listen by now is not waited for.
async fn hears(
    session: &Session,
    channel: &str,
    news: &mut mpsc::UnboundedReceiver<News>,
) -> Result<(), Trouble> {
    if timeout(LISTENS, news.recv()).await.is_err() {
        return Ok(());
    }
    let tells = async {
        let tell = "select pg_notify($1, '0')"; // About no request.
        session.client.execute(tell, &[&channel]).await
    };
    if let Ok(told) = timeout(PATIENCE, tells).await {
        told.map_err(trouble)?;
    }
    match timeout(PATIENCE, news.recv()).await {
        Ok(_heard) => Ok(()),
        Err(_deaf) => Err(Trouble::Refused(POOLED.into())),
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
        if self.resource.is_empty() {
            return Err(Trouble::Refused("a resource needs a name".into()));
        }
        let mut client = connect(&self.address).await?;
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
        let (sender, mut news) = mpsc::unbounded_channel();
        let (address, left) = (self.listens.clone(), Arc::clone(&self.left));
        tokio::spawn(listen(address, channel.clone(), sender, left));
        hears(&session, &channel, &mut news).await?;
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
                epoch: u32::try_from(epoch).expect("there are not so many epochs"),
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
