//! The engine, as users make it.

use crate::config::Config;
use crate::engine::{Core, Known, refused};
use crate::interests::Interests;
use crate::keys::Keys;
use crate::link::{Cluster, Line, PATIENCE};
use crate::watch::watch;
use spanlock_lease::{
    Answer, Engine, News, Renewal, Request, RequestId, Span, Trouble, client_name,
};
use std::fmt;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

/// Below this all keys are, unless another prefix is named.
pub(crate) const PREFIX: &str = "spanlock/lease";

/// Leases of one resource, as keys of a cluster.
pub struct Etcd {
    cluster: Arc<Cluster>,
    prefix: String,
    resource: String,
    client: String,
    opened: OnceLock<Opened>,
}

struct Opened {
    core: Core<Line>,
    news: Mutex<mpsc::UnboundedReceiver<News>>,
}

impl Etcd {
    /// The resource with this name, in the cluster that `config` leads to. It is reached by
    /// [`RangeLease::open`](spanlock_lease::RangeLease::open).
    #[must_use]
    pub fn new(config: Config, resource: impl Into<String>) -> Self {
        Self {
            cluster: Arc::new(Cluster::new(config)),
            prefix: PREFIX.to_owned(),
            resource: resource.into(),
            client: client_name(),
            opened: OnceLock::new(),
        }
    }

    /// With its keys below another prefix than `spanlock/lease`.
    #[must_use]
    pub fn under(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// By which name people see this client. Without it, it is [`client_name`].
    #[must_use]
    pub fn as_client(mut self, name: impl Into<String>) -> Self {
        self.client = name.into();
        self
    }

    fn opened(&self) -> Result<&Opened, Trouble> {
        let opened = self.opened.get();
        opened.ok_or_else(|| refused("the engine was not opened"))
    }
}

impl Engine for Etcd {
    type Range = Span;

    async fn open(&self) -> Result<(), Trouble> {
        if self.resource.is_empty() {
            return Err(refused("a resource needs a name"));
        }
        let (interests, news) = Interests::new();
        let interests = Arc::new(interests);
        let keys = Keys::new(&self.prefix, &self.resource);
        let core = Core {
            calls: Line::new(Arc::clone(&self.cluster)),
            keys: keys.clone(),
            client: self.client.clone(),
            interests: Arc::clone(&interests),
            known: Known::default(),
        };
        core.read(Instant::now() + PATIENCE).await?;
        if self
            .opened
            .set(Opened {
                core,
                news: Mutex::new(news),
            })
            .is_ok()
        {
            tokio::spawn(watch(Arc::clone(&self.cluster), keys, interests));
        }
        Ok(())
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        self.opened()?.core.acquire(request).await
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        self.opened()?.core.renew(id, ttl).await
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        self.opened()?.core.release(id).await
    }

    async fn news(&self) -> News {
        let Ok(opened) = self.opened() else {
            return pending().await;
        };
        match opened.news.lock().await.recv().await {
            Some(news) => news,
            None => pending().await,
        }
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Etcd");
        debug
            .field("resource", &self.resource)
            .field("prefix", &self.prefix);
        debug.finish_non_exhaustive()
    }
}
