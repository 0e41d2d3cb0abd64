//! The order of commits beside the order of fences, as the server's own log has them.

use crate::fences::drawing_before;
use crate::server::{LONG, Server, runtime};
use spanlock_lease::{Answer, Engine, Fence, Mode, Request, RequestId, Span};
use spanlock_lease_testkit::server::Server as _;
use std::collections::HashMap;
use std::thread;

const CLIENTS: u64 = 4;
const POSITIONS: u64 = 16;
const SLOT: &str = "committed";

/// What a client was granted.
struct Grant {
    span: Span,
    mode: Mode,
    fence: Fence,
}

/// What the log says of a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Began,
    Ended,
}

/// What is wrong between conflicting leases.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wrong {
    /// The later one has the smaller fence.
    out_of_order: usize,
    /// One began before the other had ended.
    side_by_side: usize,
}

/// Looks at leases in the order in which the server committed them.
fn wrong(log: &[(RequestId, Change)], grants: &HashMap<RequestId, Grant>) -> Wrong {
    let (mut earlier, mut live, mut wrong) = (Vec::new(), Vec::new(), Wrong::default());
    for (id, change) in log {
        if *change == Change::Ended {
            live.retain(|other| other != id);
            continue;
        }
        let grant = &grants[id];
        let conflicts = |other: &&RequestId| {
            let other = &grants[*other];
            other.span.overlaps(grant.span) && other.mode.conflicts(grant.mode)
        };
        let before = earlier.iter().filter(conflicts);
        wrong.out_of_order += before.filter(|id| grants[*id].fence >= grant.fence).count();
        wrong.side_by_side += live.iter().filter(conflicts).count();
        earlier.push(*id);
        live.push(*id);
    }
    wrong
}

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

/// Clients that acquire and release at random. What they were granted.
fn work(server: &Server, times: u32) -> HashMap<RequestId, Grant> {
    let client = |seed: u64| {
        let engine = server.engine();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut grants = Vec::new();
        runtime().block_on(async {
            engine.open().await.expect("it opens");
            for _ in 0..times {
                let first = random.u64(..POSITIONS);
                let last = first + random.u64(..4);
                let request = Request {
                    id: format!("{:x}", random.u128(..)).parse().expect("a number"),
                    span: Span::inclusive(first, last).expect("in order"),
                    mode: match random.u32(..4) {
                        0 => Mode::Shared,
                        _ => Mode::Exclusive,
                    },
                    ttl: LONG,
                    grow: None,
                };
                let answer = engine.acquire(&request).await.expect("it answers");
                if let Answer::Granted { span, fence } = answer {
                    let mode = request.mode;
                    grants.push((request.id, Grant { span, mode, fence }));
                }
                engine.release(request.id).await.expect("it answers");
            }
        });
        server.step();
        grants
    };
    thread::scope(|scope| {
        let seeds = std::iter::repeat_with(|| fastrand::u64(..));
        let client = &client;
        let clients: Vec<_> = seeds
            .take(CLIENTS as usize)
            .map(|seed| scope.spawn(move || client(seed)))
            .collect();
        let grants = clients
            .into_iter()
            .flat_map(|client| client.join().expect("no panic"));
        grants.collect()
    })
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
