//! The versions of the schema, and how they are reached.

use std::error::Error;
use std::fmt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// What leads from each version to the next. `@.` stands for the schema's name and a point.
const STEPS: [&str; 4] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// The first version of PostgreSQL that is tested, as its servers say it.
const OLDEST_SERVER: i32 = 150_000;

/// Why the schema cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SchemaError {
    /// A later release of this library has changed it.
    TooNew {
        /// Its version.
        found: i32,
    },
    /// It is older than this program, and only looked at.
    TooOld {
        /// Its version, or 0 if nobody has opened a lease.
        found: usize,
    },
    /// The user may not make it, or bring it to this program's version.
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
            Self::TooNew { found } => {
                let known = STEPS.len();
                write!(
                    f,
                    "the schema of the leases has version {found}, and this program knows versions up to {known}"
                )
            }
            Self::TooOld { found: 0 } => {
                f.write_str("this database has no leases: nobody has opened one in this schema")
            }
            Self::TooOld { found } => {
                let known = STEPS.len();
                write!(
                    f,
                    "the schema of the leases has version {found}; the next program that opens a lease brings it to \
                     {known}"
                )
            }
            Self::NotAllowed { schema } => write!(
                f,
                "this user may neither make the schema {schema} and the extension btree_gist nor change them: let the \
                 database's owner open a lease once, and grant the rights to use what that makes"
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

/// Brings the schema to the latest version. Programs that do so at a time wait for each other.
pub(crate) async fn prepare(
    client: &mut Client,
    schema: &str,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    check_name(schema)?;
    let row = client
        .query_one("select current_setting('server_version_num')::int", &[])
        .await?;
    let found = row.get(0);
    if found < OLDEST_SERVER {
        return Err(SchemaError::OldServer { found }.into());
    }
    // Whoever may not create a schema can use one that is there.
    if version(client, schema).await? == STEPS.len() {
        return Ok(());
    }
    let made = bring_up(client, schema).await;
    made.map_err(
        |error| match error.downcast_ref::<tokio_postgres::Error>() {
            Some(known) if known.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                let schema = schema.to_owned();
                SchemaError::NotAllowed { schema }.into()
            }
            _ => error,
        },
    )
}

/// Makes it, or brings it to the latest version.
async fn bring_up(client: &mut Client, schema: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Not within the transaction, which would go on to see what it has seen before.
    client
        .execute("select pg_advisory_lock(hashtext($1))", &[&schema])
        .await?;
    let transaction = client.transaction().await?;
    let found = version(transaction.client(), schema).await?;
    transaction
        .batch_execute(&format!("create schema if not exists {schema}"))
        .await?;
    transaction
        .batch_execute(&within(
            schema,
            "create table if not exists @.version (number int not null)",
        ))
        .await?;
    for (number, step) in STEPS.iter().enumerate().skip(found) {
        transaction.batch_execute(&within(schema, step)).await?;
        transaction
            .batch_execute(&within(
                schema,
                &format!("insert into @.version values ({})", number + 1),
            ))
            .await?;
    }
    transaction.commit().await?;
    client
        .execute("select pg_advisory_unlock(hashtext($1))", &[&schema])
        .await?;
    Ok(())
}

/// Whether it is what this program knows.
pub(crate) async fn require(
    client: &Client,
    schema: &str,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    check_name(schema)?;
    match version(client, schema).await? {
        found if found == STEPS.len() => Ok(()),
        found => Err(SchemaError::TooOld { found }.into()),
    }
}

async fn version(client: &Client, schema: &str) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let table = within(schema, "@.version");
    let row = client
        .query_one("select to_regclass($1) is not null", &[&table])
        .await?;
    if !row.get::<_, bool>(0) {
        return Ok(0);
    }
    let text = within(schema, "select coalesce(max(number), 0) from @.version");
    let found: i32 = client.query_one(&text, &[]).await?.get(0);
    let version = usize::try_from(found)
        .ok()
        .filter(|&version| version <= STEPS.len());
    version.ok_or_else(|| SchemaError::TooNew { found }.into())
}
