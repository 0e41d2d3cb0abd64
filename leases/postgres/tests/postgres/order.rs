//! The order of commits beside the order of fences, as the server's own log has them.

use crate::fences::drawing_before;
use crate::server::{Server, runtime};
use spanlock_lease::RequestId;
use spanlock_lease_testkit::order::{Change, Wrong, work, wrong};
use spanlock_lease_testkit::server::{Engines as _, Server as _};

const SLOT: &str = "committed";

/// Begins to keep the log of what is committed.
fn begin_log(server: &Server) {
    server.execute("alter system set wal_level = logical");
    server.crash();
    drop(server.lease());
    server.execute("alter table spanlock_lease.lease replica identity full");
    server.execute(&format!(
        "select pg_create_logical_replication_slot('{SLOT}', 'test_decoding')"
    ));
}

/// What was committed since the last look.
fn log(server: &Server) -> Vec<(RequestId, Change)> {
    let text = format!(
        "select data from pg_logical_slot_get_changes('{SLOT}', null, null) where data like 'table%'"
    );
    let rows = runtime()
        .block_on(async { server.client().await.query(&text, &[]).await })
        .expect("it is SQL");
    let rows = rows.iter().map(|row| row.get::<_, String>(0));
    let of_leases = rows.filter_map(|line| {
        let line = line.strip_prefix("table spanlock_lease.lease: ")?;
        let change = match line.split(':').next()? {
            "INSERT" => Change::Began,
            "DELETE" => Change::Ended,
            _ => return None,
        };
        let id = line.split("request[uuid]:'").nth(1)?.split('\'').next()?;
        Some((id.replace('-', "").parse().expect("a uuid"), change))
    });
    of_leases.collect()
}

pub fn commits_and_fences_agree(server: &Server) {
    begin_log(server);
    let grants = work(server, 400);
    let log = log(server);
    let began = log.iter().filter(|(_, change)| *change == Change::Began);
    assert_eq!(began.count(), grants.len());
    assert!(grants.len() > 300, "{} grants", grants.len());
    println!("{} grants in the log", grants.len());
    assert_eq!(wrong(&log, &grants), Wrong::default());
}

/// The same clients, the same look at the log, and the schema with the one change.
pub fn drawn_before_is_in_the_log(server: &Server) {
    begin_log(server);
    server.execute(&drawing_before("pg_sleep(random() * 0.003)::text"));
    for round in 1..=20 {
        let grants = work(server, 100);
        let wrong = wrong(&log(server), &grants);
        assert_eq!(wrong.side_by_side, 0);
        if wrong.out_of_order > 0 {
            println!(
                "found in round {round}: {wrong:?} of {} grants",
                grants.len()
            );
            return;
        }
    }
    panic!("the mutant lives");
}
