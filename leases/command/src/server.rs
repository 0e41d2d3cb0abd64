//! The server of the leases, whichever it is.

use crate::failure::{Failure, Result};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use spanlock_lease::{
    Acquire, Extent, KeySpan, Listed, Mode, NotOpened, Pending, RangeLease, Span, Trouble,
};
use spanlock_lease_etcd::{Config, Etcd};
use spanlock_lease_postgres::{Address, Postgres};
use std::fmt;
use std::time::Duration;
use tokio::runtime::Builder;

#[derive(Args, Clone)]
pub(crate) struct Server {
    /// PostgreSQL: a URL, or words as in `host=/run/postgresql dbname=app`. Or etcd: etcd://HOST:PORT,… and https://….
    ///
    /// PostgreSQL with TLS: sslmode=verify-full sslrootcert=FILE. Its password may be in PGPASSWORD, PGPASSFILE or
    /// ~/.pgpass; no other variable of libpq is read, such as PGSERVICE. etcd with TLS:
    /// https://HOST:PORT?cacert=FILE&cert=FILE&key=FILE.
    #[arg(
        long,
        env = "SPANLOCK_LEASES",
        hide_env_values = true,
        value_name = "CONNECTION",
        value_parser = NonEmptyStringValueParser::new()
    )]
    server: String,
    /// The schema of the leases in PostgreSQL. By default, `spanlock_lease`.
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

/// What it is, and where.
enum Place {
    Postgres {
        address: Box<Address>,
        schema: String,
    },
    Etcd(Config),
}

/// Leases, which are being opened.
pub(crate) type Opening<R> = Pending<Result<RangeLease<R>, NotOpened>>;

/// What resources are leased by: positions, or keys.
pub(crate) trait Places: Extent + Sync {
    /// Begins to open leases of a resource, for a client that people know by this name.
    fn open(server: &Server, resource: &str, client: &str) -> Result<Opening<Self>>;

    /// A request for a range.
    fn acquire(self, lease: &RangeLease<Self>, mode: Mode, ttl: Duration) -> Acquire<'_, Self>;

    /// All leases and wishes.
    fn list(server: &Server) -> Result<Vec<Listed<Self>>>;

    /// How people see a range.
    fn written(&self) -> String;
}

impl Places for Span {
    fn open(server: &Server, resource: &str, client: &str) -> Result<Opening<Self>> {
        Ok(match server.place()? {
            Place::Postgres { address, schema } => {
                let engine = Postgres::new(address.as_client(client), resource);
                RangeLease::open(engine.in_schema(schema))
            }
            Place::Etcd(config) => RangeLease::open(Etcd::new(config, resource).as_client(client)),
        })
    }

    fn acquire(self, lease: &RangeLease, mode: Mode, ttl: Duration) -> Acquire<'_> {
        lease.acquire(self.start()..=self.last(), mode, ttl)
    }

    fn list(server: &Server) -> Result<Vec<Listed>> {
        match server.place()? {
            Place::Postgres { address, schema } => {
                answer(spanlock_lease_postgres::status(&address, &schema))
            }
            Place::Etcd(config) => answer(spanlock_lease_etcd::status(&config)),
        }
    }

    /// As `--range` reads it.
    fn written(&self) -> String {
        match (self.start(), self.last()) {
            (0, u64::MAX) => "..".to_owned(),
            (start, u64::MAX) => format!("{start}.."),
            (start, last) => format!("{start}..={last}"),
        }
    }
}

impl Places for KeySpan {
    fn open(server: &Server, resource: &str, client: &str) -> Result<Opening<Self>> {
        match server.place()? {
            Place::Postgres { address, schema } => {
                let engine = Postgres::over_keys(address.as_client(client), resource);
                Ok(RangeLease::open(engine.in_schema(schema)))
            }
            Place::Etcd(_) => {
                let why = "keys are leased over PostgreSQL only, and etcd leases positions";
                Err(Failure::Arguments(why.to_owned()))
            }
        }
    }

    fn acquire(self, lease: &RangeLease<Self>, mode: Mode, ttl: Duration) -> Acquire<'_, Self> {
        lease.acquire(self, mode, ttl)
    }

    fn list(server: &Server) -> Result<Vec<Listed<Self>>> {
        match server.place()? {
            Place::Postgres { address, schema } => {
                answer(spanlock_lease_postgres::status_of_keys(&address, &schema))
            }
            Place::Etcd(_) => Ok(Vec::new()),
        }
    }

    fn written(&self) -> String {
        self.to_string()
    }
}

impl Server {
    /// Where it is. The text may have a password in it, so it is not repeated.
    fn place(&self) -> Result<Place> {
        let wrong = |why: &dyn fmt::Display| Failure::Arguments(format!("--server: {why}"));
        if self.server.starts_with("etcd:") || self.server.starts_with("https:") {
            let config = self.server.parse().map_err(|error| wrong(&error))?;
            return match self.schema {
                None => Ok(Place::Etcd(config)),
                Some(_) => Err(Failure::Arguments("--schema: etcd has none".to_owned())),
            };
        }
        let address = self.server.parse::<Address>().map_err(|error| {
            wrong(&format_args!(
                "{error} (what is known: a URL, words such as host=… dbname=…, etcd://HOST, or https://HOST of etcd)"
            ))
        })?;
        let address = address.with_password().map_err(|error| wrong(&error))?;
        let schema = self.schema.clone();
        let schema = schema.unwrap_or_else(|| "spanlock_lease".to_owned());
        let address = Box::new(address);
        Ok(Place::Postgres { address, schema })
    }

    /// Lets a role lease.
    pub(crate) fn grant(&self, role: &str) -> Result {
        match self.place()? {
            Place::Postgres { address, schema } => {
                answer(spanlock_lease_postgres::grant(&address, &schema, role))
            }
            Place::Etcd(_) => {
                let why = "etcd has users of its own: let `etcdctl role` grant spanlock/lease/";
                Err(Failure::Arguments(why.to_owned()))
            }
        }
    }
}

fn answer<T>(asks: impl Future<Output = Result<T, Trouble>>) -> Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(asks).map_err(|error| unusable(&error))
}

/// The leases cannot be used.
pub(crate) fn unusable(why: &dyn fmt::Display) -> Failure {
    let (why, code) = (format!("the leases: {why}"), 1);
    Failure::Program { why, code }
}
