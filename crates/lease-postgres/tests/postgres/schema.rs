//! The schema.

use crate::server::Server;
use spanlock_lease::{NotOpened, RangeLease};
use spanlock_lease_postgres::SchemaError;
use spanlock_lease_testkit::server::Server as _;
use std::error::Error;

pub fn programs_that_start_together(server: &Server) {
    let opening: Vec<_> = (0..6).map(|_| RangeLease::open(server.engine())).collect();
    for pending in opening {
        pending.wait().unwrap();
    }
    assert_eq!(
        server.number("select count(*) - max(number) from spanlock_lease.version"),
        0
    );
    assert_eq!(
        server.number("select count(*) from spanlock_lease.resource"),
        1
    );
}

pub fn a_later_schema_is_refused(server: &Server) {
    drop(server.lease());
    server.execute("insert into spanlock_lease.version values (999)");
    let refused = |opened: Result<RangeLease, NotOpened>| {
        let error = opened.expect_err("it is refused");
        let source = error
            .source()
            .and_then(|error| error.downcast_ref::<SchemaError>());
        source.expect("the schema is why").to_string()
    };
    let later = refused(RangeLease::open(server.engine()).wait());
    assert!(later.contains("version 999"), "{later}");
    let longer = "a".repeat(41);
    for name in ["a; drop table b", &longer] {
        let told = refused(RangeLease::open(server.engine().in_schema(name)).wait());
        assert!(told.contains(name), "{told}");
    }
}
