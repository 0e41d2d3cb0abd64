//! How long is waited, and where not.

use crate::{LONG, open, within_the_watchdog};
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Memory, Refused, SHORTEST};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::runtime::Builder;

const SOON: Duration = Duration::from_millis(50);

#[test]
fn what_is_not_known_in_time_is_given_back() {
    within_the_watchdog(|| {
        let engine = Memory::new();
        let (a, b) = (open(engine.clone()), open(engine));
        let held = a.acquire(.., Exclusive, LONG).wait().unwrap();
        let next = b.acquire(.., Exclusive, LONG).start();
        let next = next.wait_within(SOON).expect_err("it is held");
        held.release().wait().unwrap();
        drop(next.wait_within(LONG).expect("it is free").unwrap());
    });
}

#[test]
fn who_blocks_a_runtime_is_told_to_await() {
    within_the_watchdog(|| {
        let engine = Memory::new();
        let lease = open(engine);
        let waits: [&dyn Fn(); 2] = [&|| drop(lease.acquire(.., Exclusive, LONG).wait()), &|| {
            drop(lease.acquire(.., Exclusive, LONG).start().wait_within(LONG))
        }];
        let runtime = Builder::new_current_thread().build().unwrap();
        for wait in waits {
            let panics = runtime.block_on(async { catch_unwind(AssertUnwindSafe(wait)) });
            let why = panics.expect_err("it panics");
            let why = why.downcast_ref::<&str>().expect("it is text");
            assert!(why.contains("`.await` instead"), "{why}");
        }
    });
}

#[test]
fn a_ttl_that_no_renewal_can_keep_is_refused() {
    within_the_watchdog(|| {
        let lease = open(Memory::new());
        let below = SHORTEST - Duration::from_millis(1);
        let refused = lease.acquire(.., Exclusive, below).wait().unwrap_err();
        assert!(
            matches!(refused, Refused::TtlTooShort { ttl, least } if (ttl, least) == (below, SHORTEST))
        );
        drop(lease.acquire(.., Exclusive, SHORTEST).wait().unwrap());
    });
}
