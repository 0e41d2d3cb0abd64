//! A server that is lost for good, and a standby that lacks the latest leases.

use crate::server::{LONG, Server};
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Lost, Options, RangeLease};
use spanlock_lease_postgres::Postgres;
use spanlock_lease_testkit::child::Client;
use spanlock_lease_testkit::server::Server as _;
use spanlock_lease_testkit::store::{Checks, Store};
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
    let both = || Postgres::new(both.parse().expect("it connects"), "resource");
    let mut options = Options::default();
    options.poll = LONG;
    let lease = RangeLease::open_with(both(), options).wait().unwrap();
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
    server.stop();
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
    let wait = "select ceil(extract(epoch from grants_from - clock_timestamp()))::bigint from spanlock_lease.era";
    assert!((30..=60).contains(&standby.number(wait)));
    standby.execute("update spanlock_lease.era set grants_from = clock_timestamp()");
    let next = RangeLease::open(both()).wait().unwrap();
    let next = next.acquire(8..12, Exclusive, LONG).wait().unwrap();
    let (old, new) = (missing.fence(), next.fence());
    assert!(
        new.counter < old.counter,
        "{old}, then {new}: they did not go back"
    );
    assert!(new > old);
    let mut client = Client::new(store.socket.to_str().unwrap());
    let seen = client.read(&next).expect("its fence is the largest");
    assert!(client.write(&next, &seen));
    assert!(!late.write(&missing, &read));
    drop((late, client, kept));
    assert_eq!(store.refused(), 1);
    store.is_explained();
}
