//! Leases as their clients see them.

use crate::{LONG, open, within_the_watchdog};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{Cancel, Lost, Memory, RangeLease, Refused, Token};
use std::ops::{Range, RangeBounds};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(60);

/// Two clients of one engine, as two machines are.
fn two() -> (RangeLease, RangeLease) {
    let engine = Memory::new();
    (open(engine.clone()), open(engine))
}

fn is_free(lease: &RangeLease, range: impl RangeBounds<u64>) -> bool {
    match lease
        .acquire(range, Exclusive, LONG)
        .within(Duration::ZERO)
        .wait()
    {
        Ok(token) => token.release().wait().is_ok(),
        Err(Refused::TimedOut) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn conflicting_ranges_exclude_each_other_and_no_others_do() {
    within_the_watchdog(|| {
        let (a, b) = two();
        let _reads = a.acquire(10..20, Shared, LONG).wait().unwrap();
        let _too = b.acquire(15..=u64::MAX, Shared, LONG).wait().unwrap();
        assert!(is_free(&b, 0..10));
        assert!(!is_free(&b, 0..11));
        assert!(!is_free(&a, 19..20));
        assert!(!is_free(&a, u64::MAX..=u64::MAX));
    });
}

#[test]
fn a_dropped_token_is_released() {
    within_the_watchdog(|| {
        let (a, b) = two();
        let held = a.acquire(.., Exclusive, LONG).wait().unwrap();
        let next = b.acquire(.., Exclusive, LONG).start();
        drop(held);
        drop(next.wait().unwrap());
    });
}

#[test]
fn a_request_ends_when_it_is_cancelled_dropped_or_late() {
    within_the_watchdog(|| {
        let (a, b) = two();
        let held = a.acquire(.., Exclusive, LONG).wait().unwrap();
        let cancel = Cancel::new();
        let waits = b.acquire(.., Exclusive, LONG).cancelled_by(&cancel).start();
        cancel.cancel();
        assert!(matches!(waits.wait(), Err(Refused::Cancelled)));
        let late = b.acquire(.., Exclusive, LONG).within(SHORT).wait();
        assert!(matches!(late, Err(Refused::TimedOut)));
        drop(b.acquire(0..5, Exclusive, LONG).start());
        held.release().wait().unwrap();
        // None of them holds anything, or goes on wishing for it.
        let all = a.acquire(.., Exclusive, LONG).wait().unwrap();
        assert_eq!(all.renew().wait(), Ok(()));
    });
}

#[test]
fn ranges_of_nothing_are_refused_and_reversed_ones_panic() {
    let (a, _) = two();
    let nothing = a.acquire(3..3, Exclusive, LONG).wait();
    assert!(matches!(nothing, Err(Refused::Empty)));
    let reversed = || _ = a.acquire(Range { start: 4, end: 3 }, Shared, LONG);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(reversed));
    assert!(panic.is_err());
}

#[test]
fn a_block_is_granted_where_it_is_free() {
    within_the_watchdog(|| {
        let (a, b) = two();
        let grown = |token: &Token| (token.span().start(), token.span().last());
        let _one = a.acquire(128..129, Exclusive, LONG).wait().unwrap();
        let token = b.acquire(3..6, Exclusive, LONG).grown(10).wait().unwrap();
        assert_eq!(grown(&token), (0, 127));
        let token = b
            .acquire(u64::MAX.., Shared, LONG)
            .grown(63)
            .wait()
            .unwrap();
        assert_eq!(grown(&token), (1 << 63, u64::MAX));
        // The engine over a database has no larger blocks.
        let (free, _) = two();
        let token = free
            .acquire(3..6, Exclusive, LONG)
            .grown(u32::MAX)
            .wait()
            .unwrap();
        assert_eq!(grown(&token), (0, u64::MAX >> 1));
    });
}

/// A machine that stalls for long may lose a lease, and tells its user; the next one endures more.
#[test]
fn a_lease_is_kept_for_longer_than_its_ttl() {
    within_the_watchdog(|| {
        let (lease, _) = two();
        let is_kept = |ttl| {
            let token = lease.acquire(.., Exclusive, ttl).wait().unwrap();
            thread::sleep(3 * ttl);
            let is_open = token.check().is_ok();
            let renewed = token.renew().wait();
            assert!(renewed.is_ok() || token.check() == Err(Lost));
            is_open && renewed.is_ok()
        };
        assert!((1..).any(|times| is_kept(times * SHORT)));
    });
}

/// The future waits without a runtime of tokio.
#[test]
fn any_executor_polls_it() {
    within_the_watchdog(|| {
        let (a, b) = two();
        let held = a.acquire(.., Exclusive, LONG).wait().unwrap();
        let mut next = pin!(IntoFuture::into_future(b.acquire(.., Exclusive, LONG)));
        let this = thread::current();
        let waker = Waker::from(Arc::new(Unparks(this)));
        let mut context = Context::from_waker(&waker);
        assert!(next.as_mut().poll(&mut context).is_pending());
        drop(held);
        loop {
            match next.as_mut().poll(&mut context) {
                Poll::Ready(token) => break drop(token.unwrap()),
                Poll::Pending => thread::park(),
            }
        }
    });
}

struct Unparks(thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
