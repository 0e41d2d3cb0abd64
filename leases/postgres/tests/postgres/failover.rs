//! A server that is lost for good, and a standby that lacks the latest leases.

use crate::server::{LONG, Server};
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Lost, RangeLease, State, Wanted};
use spanlock_lease_testkit::child::Client;
use spanlock_lease_testkit::server::{self, Engines as _, Server as _};
use spanlock_lease_testkit::store::{Checks, Store};
use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;

pub fn a_standby_that_lags_takes_over(server: &Server) {
    let first = server.lease();
    let kept = first.acquire(0..4, Exclusive, LONG).wait().unwrap();
    let standby = server.standby();
    let both = format!(
        "host={},{} user=spanlock dbname=postgres target_session_attrs=read-write",
        server.folder(),
        standby.folder()
    );
    let both = || Server::engine_at(&both);
    let lease = server::lease(both());
    let kept_too = lease.acquire(4..8, Exclusive, LONG).wait().unwrap();
    let until = |standby: &Server, text: &str| {
        while standby.number(text) == 0 {
            thread::sleep(Duration::from_millis(20));
        }
    };
    until(
        &standby,
        "select (count(*) = 2)::int::bigint from spanlock_lease.lease",
    );

    // From now on the standby gets nothing. More fences are drawn than a server's log has in advance, so they go back.
    standby.execute("alter system set primary_conninfo = ''");
    standby.execute("select pg_reload_conf()");
    until(
        &standby,
        "select (count(*) = 0)::int::bigint from pg_stat_wal_receiver",
    );
    for _ in 0..40 {
        let passing = lease.acquire(8..12, Exclusive, LONG).wait().unwrap();
        passing.release().wait().unwrap();
    }
    let missing = lease.acquire(8..12, Exclusive, LONG).wait().unwrap();
    let store = Store::new(Checks::Fences);
    let mut late = Client::new(store.socket.to_str().unwrap());
    let read = late.read(&missing).expect("its fence is the largest");
    server.does("stop", &[]);
    standby.execute("select pg_promote()");

    // What the standby has is kept, and what it lacks is lost, which its holder is told.
    assert_eq!(kept_too.renew().wait(), Ok(()));
    assert_eq!(missing.renew().wait(), Err(Lost));
    assert_eq!(missing.check(), Err(Lost));
    // The holder may have been stopped meanwhile, and not know it. Nobody else has its range before its ttl is over.
    let early = lease
        .acquire(8..12, Exclusive, LONG)
        .within(Duration::from_millis(500))
        .wait();
    assert!(early.is_err(), "{early:?}");
    let mut listed = standby.listed().into_iter();
    let grace = listed.find(|listed| listed.state == State::Grace).unwrap();
    assert_eq!(grace.resource, "resource");
    assert!(grace.left > LONG / 2 && grace.left <= LONG, "{grace:?}");
    standby.execute("update spanlock_lease.era set grants_from = clock_timestamp()");
    let next = RangeLease::open(both()).wait().unwrap();
    let next = next.acquire(8..12, Exclusive, LONG).wait().unwrap();
    let (old, new) = (missing.fence(), next.fence());
    assert!(
        new.counter < old.counter,
        "{old}, then {new}: they did not go back"
    );
    assert_eq!(new.epoch, old.epoch + 1);
    let mut client = Client::new(store.socket.to_str().unwrap());
    let seen = client.read(&next).expect("its fence is the largest");
    assert!(client.write(&next, &seen));
    assert!(!late.write(&missing, &read));
    drop((late, client, kept));
    assert_eq!(store.refused(), 1);
    assert_eq!(store.holders_follow_each_other(), Ok(()));
}

/// As where a dump is restored, or the server is upgraded: its timelines begin again.
pub fn another_server_begins_another_epoch(server: &Server) {
    let first = server.lease();
    let old = first.acquire(0..4, Exclusive, LONG).wait().unwrap();
    server.execute("update spanlock_lease.era set system = 7, timeline = 9, epoch = 9");
    let lease = server.lease();
    let early = lease.acquire(8..12, Exclusive, LONG);
    let early = early.within(Duration::from_millis(500)).wait();
    assert!(early.is_err(), "{early:?}");
    server.execute("update spanlock_lease.era set grants_from = clock_timestamp()");
    let next = server
        .lease()
        .acquire(8..12, Exclusive, LONG)
        .wait()
        .unwrap();
    assert_eq!((old.fence().epoch, next.fence().epoch), (1, 10));
}

/// With two clients that were there before, as a planned switch-over goes, and back. The old server runs on, and takes
/// no writes. Nobody polls, so who is not told waits for the end of the ttl.
pub fn a_release_is_heard_after_each_switch_over(server: &Server) {
    let standby = server.standby();
    let names = ["one", "two"].map(|name| format!("{}/{name}", server.folder()));
    let point = |name: &str, to: &Server| {
        let _ = fs::remove_file(name);
        symlink(to.folder(), name).expect("the folder is there");
    };
    point(&names[0], server);
    point(&names[1], &standby);
    let at = format!(
        "host={},{} user=spanlock dbname=postgres target_session_attrs=read-write",
        names[0], names[1]
    );
    let open = || server::lease(Server::engine_at(&at));
    let (a, b) = (open(), open());
    hands_over(&a, &b);
    switches(server, &standby);
    hands_over(&a, &b);
    let back = standby.standby();
    point(&names[0], &back);
    switches(&standby, &back);
    hands_over(&a, &b);
}

fn switches(from: &Server, to: &Server) {
    from.execute("alter system set default_transaction_read_only = on");
    from.execute("select pg_reload_conf()");
    to.execute("select pg_promote()");
    // Nothing is missing, so the minute in which nothing is granted is not needed.
    to.execute(
        "update spanlock_lease.era
            set epoch = epoch + 1, timeline = spanlock_lease.timeline(), grants_from = clock_timestamp()",
    );
}

/// A holder hears of a wish long before it renews, and who waits of a release long before the lease would end.
fn hands_over(a: &RangeLease, b: &RangeLease) {
    for _ in 0..3 {
        let held = a.acquire(0..10, Exclusive, LONG).wait().unwrap();
        let next = b.acquire(5..20, Exclusive, LONG).start();
        let wanted = held.wanted().wait_within(LONG / 6);
        assert!(matches!(wanted, Ok(Wanted::Yes)), "the wish is not heard");
        held.release().wait().unwrap();
        let next = next.wait_within(LONG / 3).expect("the release is heard");
        next.unwrap().release().wait().unwrap();
    }
}
