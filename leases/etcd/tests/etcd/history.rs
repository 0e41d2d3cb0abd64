//! The history of all leases, as the server tells it to `etcdctl`, beside what clients were granted.

use crate::server::Server;
use spanlock_lease::RequestId;
use spanlock_lease_testkit::order::{Change, Wrong, work, wrong};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// What happened to keys below `held/`, with the transactions: a lease began, or ended. It ends with a key that is none
/// of a lease.
pub fn history(server: &Server) -> Vec<(RequestId, Change, u64)> {
    let below = "spanlock/lease/resource/held/";
    let end = format!("{below}0");
    server.ctl(&["put", &end, ""]);
    let watch = ["watch", "--prefix", "--rev", "1", "-w", "fields", below];
    let mut watch = server
        .ctl_as(&watch)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(watch.stdout.take().expect("it is a pipe")).lines();
    let (mut history, mut change, mut key) = (Vec::new(), Change::Began, String::new());
    for line in lines {
        let line = line.expect("it is text");
        // A line for each field of each event, in this order.
        match line.split_once(" : ").expect("a name and a value") {
            ("\"Type\"", "PUT") => change = Change::Began,
            ("\"Type\"", "DELETE") => change = Change::Ended,
            ("\"Key\"", quoted) => quoted.trim_matches('"').clone_into(&mut key),
            ("\"ModRevision\"", _) if key == end => break,
            ("\"ModRevision\"", revision) => {
                let id = key.strip_prefix(below).expect("it was asked for");
                let id = id.parse().expect("a request");
                history.push((id, change, revision.parse().expect("a number")));
            }
            _ => {}
        }
    }
    watch.kill().expect("it is ours");
    watch.wait().expect("it is ours");
    history
}

/// In the order of the server's transactions, no two leases that conflict are held at a time, and each fence is that of
/// its transaction.
pub fn grants_and_fences_agree(server: &Server) {
    let grants = work(server, 250);
    let history = history(server);
    let began = history
        .iter()
        .filter(|(_, change, _)| *change == Change::Began);
    for (id, _, revision) in began {
        assert_eq!(grants[id].fence.counter, *revision);
    }
    let changes: Vec<_> = history
        .iter()
        .map(|&(id, change, _)| (id, change))
        .collect();
    let count = |of| changes.iter().filter(|(_, change)| *change == of).count();
    assert_eq!(count(Change::Began), grants.len());
    assert_eq!(count(Change::Ended), grants.len());
    assert!(grants.len() > 200, "{} grants", grants.len());
    assert_eq!(wrong(&changes, &grants), Wrong::default());
    println!("{} grants in the history", grants.len());
}
