//! Leases as their clients see them.

use crate::faulty::Faulty;
use crate::{LONG, open, within_the_watchdog};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{
    Answer, Cancel, End, Engine, Fence, Lost, Memory, News, RangeLease, Refused, Request, Span,
    Token, Wanted,
};
use std::ops::{Range, RangeBounds};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(60);

/// Two clients of one engine, as two machines are.
fn two() -> (RangeLease, RangeLease) {
    let engine = Memory::new();
    (open(engine.clone()), open(engine))
}

fn faulty() -> (RangeLease, Faulty) {
    let engine = Faulty::default();
    (open(engine.clone()), engine)
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
fn a_release_lets_the_next_one_go_on_with_a_larger_fence() {
    within_the_watchdog(|| {
        let (a, b) = two();
        let first = a.acquire(.., Exclusive, LONG).wait().unwrap();
        let fence = first.fence();
        let second = b.acquire(5..6, Shared, LONG).start();
        assert_eq!(first.wanted().wait(), Wanted::Yes);
        let end = first.lost();
        first.release().wait().unwrap();
        assert_eq!(end.wait(), End::Released);
        assert!(second.wait().unwrap().fence() > fence);
    });
}

/// At once, and not only when it renews or when the other one asks again.
#[test]
fn who_is_granted_what_another_waits_for_is_told() {
    let engine = Memory::new();
    let request = |number: u32, range: Range<u64>| Request {
        id: number.to_string().parse().expect("a number"),
        span: Span::of(range).expect("it is not empty"),
        mode: Exclusive,
        ttl: LONG,
        grow: None,
    };
    let (first, second, third) = (request(1, 0..5), request(2, 0..10), request(3, 5..10));
    let asks = async {
        for request in [first, second, third] {
            engine.acquire(&request).await.unwrap();
        }
        engine.release(first.id).await.unwrap();
        engine.acquire(&second).await.unwrap()
    };
    // What this engine answers it answers at once.
    let mut context = Context::from_waker(Waker::noop());
    let answer = pin!(asks).poll(&mut context);
    assert!(matches!(answer, Poll::Ready(Answer::Granted { .. })));
    let mut told = Vec::new();
    while let Poll::Ready(News::About(id)) = pin!(engine.news()).poll(&mut context) {
        told.push(id);
    }
    // The first one was wished for; the second one might be had then, and is wished for since.
    assert_eq!(told, [first.id, second.id, second.id]);
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

#[test]
fn a_lease_is_kept_for_longer_than_its_ttl() {
    within_the_watchdog(|| {
        let (lease, engine) = faulty();
        // For six thirds of the ttl. A machine that stalls for long may lose a lease, and tells its user; the next one
        // endures more.
        let is_kept = |ttl| {
            let token = lease.acquire(.., Exclusive, ttl).wait().unwrap();
            let before = engine.renewals();
            while engine.renewals() < before + 6 && token.check() != Err(Lost) {
                thread::yield_now();
            }
            let renewed = token.renew().wait();
            assert!(renewed.is_ok() || token.check() == Err(Lost));
            renewed.is_ok()
        };
        assert!((1..).any(|times| is_kept(times * SHORT)));
    });
}

/// The token is closed first, and lost then, although the engine says nothing.
#[test]
fn a_lease_that_cannot_be_renewed_is_closed_and_then_lost() {
    within_the_watchdog(|| {
        let (lease, engine) = faulty();
        let token = lease.acquire(.., Exclusive, 10 * SHORT).wait().unwrap();
        engine.fail();
        let end = token.lost();
        while token.check().is_ok() {
            thread::yield_now();
        }
        assert_eq!(end.wait(), End::Lost);
        assert_eq!(token.renew().wait(), Err(Lost));
        assert_eq!(token.release().wait(), Err(Lost));
    });
}

#[test]
fn a_lease_that_is_gone_is_told_at_the_next_renewal() {
    within_the_watchdog(|| {
        let (lease, engine) = faulty();
        let token = lease.acquire(.., Exclusive, LONG).wait().unwrap();
        let end = token.lost();
        engine.forget();
        assert_eq!(token.renew().wait(), Err(Lost));
        assert_eq!(token.check(), Err(Lost));
        assert_eq!(end.wait(), End::Lost);
    });
}

/// Also when the engine panics: whoever is told looks at the token when he is woken.
#[test]
fn a_lease_is_closed_before_its_loss_is_told() {
    within_the_watchdog(|| {
        for how in [Faulty::forget as fn(&Faulty), Faulty::panic] {
            let (lease, engine) = faulty();
            let token = Arc::new(lease.acquire(.., Exclusive, LONG).wait().unwrap());
            let mut end = token.lost();
            let (looks, looked) = mpsc::channel();
            let waker = Waker::from(Arc::new(Looks(Arc::clone(&token), looks)));
            let mut context = Context::from_waker(&waker);
            assert!(pin!(&mut end).poll(&mut context).is_pending());
            how(&engine);
            let mut renewed = token.renew();
            let _ = pin!(&mut renewed).poll(&mut context);
            assert_eq!(looked.recv(), Ok(Err(Lost)));
            assert_eq!(end.wait(), End::Lost);
        }
    });
}

/// Sends what a token says when this is woken.
struct Looks(Arc<Token>, mpsc::Sender<Result<(), Lost>>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        // The first one is waited for.
        let _ = self.1.send(self.0.check());
    }
}

/// A renewal that succeeds after the token was closed opens it again.
#[test]
fn a_late_renewal_opens_the_token_again() {
    within_the_watchdog(|| {
        let (lease, engine) = faulty();
        let token = lease.acquire(.., Exclusive, 30 * SHORT).wait().unwrap();
        engine.fail();
        while token.check().is_ok() {
            thread::yield_now();
        }
        engine.mend();
        // It was lost only if the machine stalled for a quarter of the ttl.
        if token.renew().wait().is_ok() {
            assert_eq!(token.check(), Ok(()));
        } else {
            assert_eq!(token.lost().wait(), End::Lost);
        }
    });
}

/// A grant that is known only when its ttl is nearly over is asked for again.
#[test]
fn an_answer_that_comes_too_late_is_not_taken() {
    within_the_watchdog(|| {
        let (lease, engine) = faulty();
        engine.delay_the_next(4 * SHORT);
        let token = lease.acquire(.., Exclusive, 4 * SHORT).wait().unwrap();
        assert!(engine.acquisitions() > 1);
        drop(token);
    });
}

#[test]
fn who_cannot_reach_the_engine_asks_again_with_the_same_name() {
    within_the_watchdog(|| {
        let (lease, engine) = faulty();
        engine.lose_the_next_answer();
        let token = lease.acquire(.., Exclusive, LONG).wait().unwrap();
        assert_eq!(engine.acquisitions(), 2);
        // The first attempt was granted, and the second one found that.
        assert_eq!(
            token.fence(),
            Fence {
                epoch: 0,
                counter: 1
            }
        );
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
