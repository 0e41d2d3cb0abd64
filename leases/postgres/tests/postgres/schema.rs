//! The schema.

use crate::server::Server;
use spanlock_lease::{NotOpened, RangeLease};
use spanlock_lease_postgres::SchemaError;
use spanlock_lease_testkit::server::Engines as _;
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

pub fn a_schema_of_another_version_is_refused(server: &Server) {
    drop(server.lease());
    server.execute("update spanlock_lease.version set number = 999");
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

/// What is in the way is found by an index, however many leases and wishes there are.
pub fn no_call_looks_at_all_leases(server: &Server) {
    drop(server.lease());
    server.execute(
        "insert into spanlock_lease.lease select 1, spanlock_lease.span(9 * i, 9 * i), i, gen_random_uuid(),
            now() + interval '1 hour' from generate_series(1, 2000) i;
         insert into spanlock_lease.wish (res, span, alone, request, expires)
            select res, span, true, gen_random_uuid(), expires from spanlock_lease.lease;
         analyze spanlock_lease.lease; analyze spanlock_lease.wish",
    );
    let scans = || {
        server.number(
            "select sum(seq_scan)::bigint from pg_stat_all_tables
                where schemaname = 'spanlock_lease' and relname in ('lease', 'wish')",
        )
    };
    let before = scans();
    // A plan for all parameters is made after five calls. What is counted is kept back for a second otherwise.
    server.execute(
        "do $$ declare request uuid; begin
            for i in 1..20 loop
                request := gen_random_uuid();
                perform spanlock_lease.admit(
                    1, spanlock_lease.spans(9 * i + 1, 9 * i + 2, 1), true, request, 60000, 5000
                );
                perform spanlock_lease.renew(request, 60000);
                perform spanlock_lease.release(request);
            end loop;
            perform pg_stat_force_next_flush();
        end $$",
    );
    assert_eq!(scans() - before, 0, "times that all were looked at");
}
