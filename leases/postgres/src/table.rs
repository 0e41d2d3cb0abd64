//! A table that refuses late writes.

use crate::schema::within;
use spanlock_lease::Token;
use tokio_postgres::{Error, GenericClient};

/// A table of the database that keeps the leases. Each of its rows has a position or a key, and the table refuses every
/// write to a row that is not within an exclusive lease: of whoever writes, in whatever way.
///
/// A trigger looks at the lease itself, and locks it to the end of the transaction. So it is exact, also for rows that
/// the next holder has not touched, and for new ones; and what was allowed is committed before anybody else is granted
/// the range. That is more than a comparison of fences with what each row has seen.
///
/// ```no_run
/// # use tokio_postgres::{Client, Error};
/// # async fn example(client: &mut Client, token: &spanlock_lease::Token) -> Result<(), Error> {
/// use spanlock_lease_postgres::FencedTable;
///
/// let blocks = FencedTable::new("volume-7");
/// blocks.install(client, "blocks", "position").await?; // Once: it is part of the table then.
/// let transaction = client.transaction().await?;
/// blocks.enter(&transaction, token).await?;
/// transaction.execute("update blocks set data = $1 where position = $2", &[&"text", &7_i64]).await?;
/// transaction.commit().await
/// # }
/// ```
///
/// # What it lacks
/// - `truncate` calls no trigger of a row, and the owner of the table may disable triggers.
/// - Reads are not checked.
/// - A transaction that has written keeps its range as long as it is open, also beyond the ttl. Set
///   `idle_in_transaction_session_timeout`.
/// - Positions are those of a `bigint` without negative ones. Keys are those of a `bytea`, `text` or `varchar`. A
///   text counts as its bytes in UTF-8.
///
/// It costs a search for each row that is written.
#[derive(Debug, Clone)]
pub struct FencedTable {
    resource: String,
    schema: String,
}

impl FencedTable {
    /// Tables whose positions are those of a resource.
    #[must_use]
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            schema: "spanlock_lease".to_owned(),
        }
    }

    /// As [`Postgres::in_schema`](crate::Postgres::in_schema).
    #[must_use]
    pub fn in_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// From now on, or rather from when the transaction is committed, the table refuses what no lease allows. Leases
    /// were opened for the resource before.
    ///
    /// # Errors
    /// When the database refuses: there is no such table, or it is somebody else's.
    pub async fn install(
        &self,
        client: &impl GenericClient,
        table: &str,
        position: &str,
    ) -> Result<(), Error> {
        // The server quotes the names; a trigger takes no parameters.
        let text = "select format('create or replace trigger fenced after insert or update or delete on %s for each \
                    row execute function @.fenced(%L, %L, %L)', $1::text::regclass, $2::text, @.enter($3, kind), kind)
            from coalesce((
                select 'keys' from pg_attribute where attrelid = $1::text::regclass and attname = $2::text
                    and atttypid in ('bytea'::regtype, 'text'::regtype, 'varchar'::regtype)
            ), 'positions') kind";
        let text = client
            .query_one(
                &within(&self.schema, text),
                &[&table, &position, &self.resource],
            )
            .await?;
        client.batch_execute(text.get(0)).await
    }

    /// What the transaction writes from now on, it writes under this lease.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn enter<R>(
        &self,
        transaction: &impl GenericClient,
        token: &Token<R>,
    ) -> Result<(), Error> {
        let text = within(&self.schema, "select set_config('@.request', $1, true)");
        transaction
            .execute(&text, &[&token.id().to_string()])
            .await
            .map(drop)
    }

    /// Whether a write failed because no lease allows it: the lease is lost, it does not hold that position, or it is
    /// shared.
    #[must_use]
    pub fn refused(error: &Error) -> bool {
        error.code().is_some_and(|state| state.code() == "SL001")
    }
}
