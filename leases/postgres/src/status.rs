//! Who holds leases, who waits, and who may lease.

use crate::address::Address;
use crate::places::Places;
use crate::schema::{self, within};
use crate::session::{PATIENCE, connect, trouble, trouble_with_schema, within_time};
use spanlock_lease::{KeySpan, Listed, Mode, State, Trouble};
use std::time::Duration;
use tokio_postgres::Row;

/// Lists all leases of positions in a database, the wishes for others, and the resources of which nothing is granted
/// after a standby has taken over, by resources and places, as they are at one moment. It changes nothing. Who asked is
/// the `application_name` of the connection, and its address if there is one; how old they are, the clock of the server
/// says.
///
/// # Errors
/// When the server cannot be reached, or there are no leases: nobody has opened one.
pub async fn status(address: &Address, schema: &str) -> Result<Vec<Listed>, Trouble> {
    list(address, schema).await
}

/// As [`status()`], of leases of byte strings.
///
/// # Errors
/// When the server cannot be reached, or there are no leases: nobody has opened one.
pub async fn status_of_keys(
    address: &Address,
    schema: &str,
) -> Result<Vec<Listed<KeySpan>>, Trouble> {
    list(address, schema).await
}

async fn list<R: Places>(address: &Address, schema: &str) -> Result<Vec<Listed<R>>, Trouble> {
    let client = connect(address).await?;
    let lists = async {
        schema::require(&client, schema)
            .await
            .map_err(trouble_with_schema)?;
        let rows = client.query(&within(schema, LISTS), &[&R::KIND]).await;
        rows.map_err(trouble)
    };
    let rows = within_time(PATIENCE, "answer", lists).await?;
    Ok(rows.iter().map(listed).collect())
}

/// Makes the schema, if it is not there, and lets a role of the database lease.
///
/// # Errors
/// When the server cannot be reached, or the user may not do that.
pub async fn grant(address: &Address, schema: &str, role: &str) -> Result<(), Trouble> {
    let mut client = connect(address).await?;
    let grants = async {
        schema::prepare(&mut client, schema).await?;
        schema::grant(&client, schema, role).await
    };
    let grants = async { grants.await.map_err(trouble_with_schema) };
    within_time(PATIENCE, "answer", grants).await
}

const LISTS: &str = "
    select r.name, state, lower(span) as lo, upper(span) as behind, alone, client, request::text,
        (1000 * extract(epoch from clock_timestamp() - since))::bigint as age,
        (1000 * extract(epoch from expires - clock_timestamp()))::bigint as left
    from (
        select res, 0 as state, span, alone <> 0 as alone, client, request, since, expires from @.lease
        union all select res, 1, span, alone, client, request, since, expires from @.wish
        union all select id, 2, '(,)'::@.strings, true, '', null, grants_from - interval '1 minute', grants_from
            from @.era cross join @.resource where timeline = @.timeline()
    ) as l join @.resource r on r.id = l.res
    where r.kind = $1 and expires >= clock_timestamp() order by r.name, state, span, since";

fn listed<R: Places>(row: &Row) -> Listed<R> {
    let milliseconds =
        |column| Duration::from_millis(row.get::<_, i64>(column).try_into().unwrap_or(0));
    let state = match row.get("state") {
        0 => State::Held,
        1 => State::Awaited,
        _ => {
            let (age, left) = (milliseconds("age"), milliseconds("left"));
            return Listed::grace(row.get("name"), R::all(), age, left);
        }
    };
    let id = row.get::<_, &str>("request").replace('-', "");
    Listed {
        resource: row.get("name"),
        state,
        span: R::of(row),
        mode: match row.get("alone") {
            true => Mode::Exclusive,
            false => Mode::Shared,
        },
        client: row.get("client"),
        id: id.parse().expect("a uuid has 32 digits"),
        age: milliseconds("age"),
        left: milliseconds("left"),
    }
}
