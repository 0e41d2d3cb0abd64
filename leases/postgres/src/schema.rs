//! The schema: how it is made, who may use it, and whether it is the one that this program knows.

use std::error::Error;
use std::fmt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// What makes it. `@.` stands for the schema's name and a point.
const SCHEMA: &str = include_str!("schema.sql");

/// Its version, which that writes.
const VERSION: i32 = 1;

/// What lets another user lease. `$` stands for his name.
const GRANTS: &str = "grant usage on schema @ to $;
    grant select, insert, update, delete on all tables in schema @ to $;
    grant usage on all sequences in schema @ to $";

/// The first version of PostgreSQL that is tested, as its servers say it.
const OLDEST_SERVER: i32 = 150_000;

/// Why the schema cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SchemaError {
    /// Another release of this library has made it.
    Foreign {
        /// Its version.
        found: i32,
    },
    /// Nobody has opened a lease.
    Missing,
    /// The user may not make it.
    NotAllowed {
        /// The schema.
        schema: String,
    },
    /// The server is older than PostgreSQL 15.
    OldServer {
        /// Its version, as servers say it.
        found: i32,
    },
    /// It is not a name of up to 40 small letters, digits and `_` that begins with a letter.
    Name(String),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { found } => write!(
                f,
                "the schema of the leases has version {found}, and this program knows version {VERSION}"
            ),
            Self::Missing => {
                f.write_str("this database has no leases: nobody has opened one in this schema")
            }
            Self::NotAllowed { schema } => write!(
                f,
                "this user may not make the schema {schema} and the extension btree_gist: let the database's owner do \
                 that, by `spanlock-lease grant` with this user's name"
            ),
            Self::OldServer { found } => write!(
                f,
                "the server's version is {found}; leases need PostgreSQL 15"
            ),
            Self::Name(name) => write!(f, "{name:?} cannot be the schema of the leases"),
        }
    }
}

impl Error for SchemaError {}

/// What goes wrong with the schema, or on the way to it.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// Text of SQL, in the schema.
pub(crate) fn within(schema: &str, text: &str) -> String {
    text.replace("@.", &format!("{schema}."))
}

/// A channel has the schema's name, a point and the number of a resource, in 63 bytes.
const LONGEST: usize = 40;

/// It becomes part of SQL.
fn check_name(schema: &str) -> Result<(), SchemaError> {
    let is_letter = |c: char| c.is_ascii_lowercase();
    let is_name = |c: char| is_letter(c) || c.is_ascii_digit() || c == '_';
    match schema.starts_with(is_letter) && schema.chars().all(is_name) && schema.len() <= LONGEST {
        true => Ok(()),
        false => Err(SchemaError::Name(schema.to_owned())),
    }
}

/// Makes it, if it is not there. Programs that do so at a time wait for each other.
pub(crate) async fn prepare(client: &mut Client, schema: &str) -> Result<(), Failed> {
    check_name(schema)?;
    let row = client
        .query_one("select current_setting('server_version_num')::int", &[])
        .await?;
    let found = row.get(0);
    if found < OLDEST_SERVER {
        return Err(SchemaError::OldServer { found }.into());
    }
    // Whoever may not create a schema can use one that is there.
    if is_there(client, schema).await? {
        return Ok(());
    }
    make(client, schema).await.map_err(|error| {
        let known = error.downcast_ref::<tokio_postgres::Error>();
        match known.and_then(tokio_postgres::Error::code) {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => SchemaError::NotAllowed {
                schema: schema.to_owned(),
            }
            .into(),
            _ => error,
        }
    })
}

async fn make(client: &mut Client, schema: &str) -> Result<(), Failed> {
    // Not within the transaction, which would go on to see what it has seen before.
    client
        .execute("select pg_advisory_lock(hashtext($1))", &[&schema])
        .await?;
    let transaction = client.transaction().await?;
    if !is_there(transaction.client(), schema).await? {
        let create = format!("create schema if not exists {schema}");
        transaction.batch_execute(&create).await?;
        transaction.batch_execute(&within(schema, SCHEMA)).await?;
    }
    transaction.commit().await?;
    client
        .execute("select pg_advisory_unlock(hashtext($1))", &[&schema])
        .await?;
    Ok(())
}

/// Lets a user lease.
pub(crate) async fn grant(client: &Client, schema: &str, role: &str) -> Result<(), Failed> {
    let role = client.query_one("select quote_ident($1)", &[&role]).await?;
    let grants = GRANTS.replace('@', schema).replace('$', role.get(0));
    Ok(client.batch_execute(&grants).await?)
}

/// Whether it is what this program knows.
pub(crate) async fn require(client: &Client, schema: &str) -> Result<(), Failed> {
    check_name(schema)?;
    match is_there(client, schema).await? {
        true => Ok(()),
        false => Err(SchemaError::Missing.into()),
    }
}

/// Whether it is there. One of another version cannot be used.
async fn is_there(client: &Client, schema: &str) -> Result<bool, Failed> {
    let table = within(schema, "@.version");
    let row = client
        .query_one("select to_regclass($1) is not null", &[&table])
        .await?;
    if !row.get::<_, bool>(0) {
        return Ok(false);
    }
    let text = within(schema, "select coalesce(max(number), 0) from @.version");
    match client.query_one(&text, &[]).await?.get(0) {
        VERSION => Ok(true),
        found => Err(SchemaError::Foreign { found }.into()),
    }
}
