//! How requests and leases end when the engine is slow, or does not answer.

use super::simulate;
use super::stalling::{Calls, SILENCE, Stalling};
use crate::Mode::Exclusive;
use crate::clock::{Moment, now};
use crate::{Cache, End, Lost, Refused, Token, Wanted};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::time::sleep;

const TTL: Duration = Duration::from_secs(10);

/// The end of a ttl that began then, less the drift.
fn end(began: Moment) -> Moment {
    began + TTL / 100 * 99
}

#[test]
fn a_release_does_not_wait_for_a_renewal() {
    simulate(async {
        let engine = Stalling::default();
        let (lease, other) = (engine.client().await, engine.client().await);
        let token = lease.acquire(.., Exclusive, TTL).await.unwrap();
        engine.renewals_are(Calls::Unanswered);
        let renewed = token.renew();
        sleep(SILENCE / 2).await;
        let before = now();
        assert_eq!(token.release().await, Ok(()));
        assert_eq!(renewed.await, Err(Lost));
        drop(other.acquire(.., Exclusive, TTL).await.unwrap());
        assert_eq!(now(), before);
    });
}

/// Who asks while a renewal is under way is told of one that began after that.
#[test]
fn a_token_is_heard_while_it_is_renewed() {
    simulate(async {
        let engine = Stalling::default();
        let (lease, other) = (engine.client().await, engine.client().await);
        let token = lease.acquire(.., Exclusive, TTL).await.unwrap();
        let waits = other.acquire(.., Exclusive, TTL).start();
        assert_eq!(token.wanted().await, Wanted::Yes);
        engine.renewals_are(Calls::Lost);
        let renewed = token.renew();
        sleep(SILENCE / 2).await;
        let before = now();
        assert_eq!(token.wanted().await, Wanted::Yes);
        assert_eq!(now(), before);
        engine.renewals_are(Calls::Answered);
        engine.takes(SILENCE);
        let again = token.renew();
        assert_eq!(renewed.await, Ok(()));
        let before = now();
        assert_eq!(again.await, Ok(()));
        assert_eq!(now(), before + SILENCE);
        drop((token, waits));
    });
}

/// The reason may pass, such as a certificate that is renewed. Until its end, the lease is held.
#[test]
fn a_renewal_that_is_refused_loses_nothing() {
    simulate(async {
        let engine = Stalling::default();
        let lease = engine.client().await;
        let token = lease.acquire(.., Exclusive, TTL).await.unwrap();
        engine.renewals_are(Calls::Refused);
        let renewed = token.renew();
        sleep(TTL / 2).await;
        assert_eq!(token.check(), Ok(()));
        engine.renewals_are(Calls::Answered);
        assert_eq!(renewed.await, Ok(()));
        engine.renewals_are(Calls::Refused);
        assert_eq!(token.lost().await, End::Lost);
    });
}

/// A renewal that succeeds after the token was closed opens it again.
#[test]
fn a_token_is_closed_and_opened_again_and_lost() {
    simulate(async {
        let engine = Stalling::default();
        let lease = engine.client().await;
        let token = lease.acquire(.., Exclusive, TTL).await.unwrap();
        let told = token.lost();
        engine.renewals_are(Calls::Lost);
        sleep(TTL / 100 * 74).await;
        assert_eq!(token.check(), Ok(()));
        sleep(TTL / 100).await;
        assert_eq!(token.check(), Err(Lost));
        engine.renewals_are(Calls::Answered);
        assert_eq!(token.renew().await, Ok(()));
        assert_eq!(token.check(), Ok(()));
        engine.renewals_are(Calls::Lost);
        let renewed = now();
        assert_eq!(told.await, End::Lost);
        assert!(now() >= end(renewed) && now() <= end(renewed) + Duration::from_millis(2));
        assert_eq!(token.renew().await, Err(Lost));
        assert_eq!(token.release().await, Err(Lost));
    });
}

/// What a token says when this is woken for the first time.
struct Looks(Arc<Token>, OnceLock<Result<(), Lost>>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.1.get_or_init(|| self.0.check());
    }
}

/// By an engine that has lost it, or panics.
#[test]
fn a_lease_is_closed_before_its_loss_is_told() {
    for renewals in [Calls::Answered, Calls::Panics] {
        simulate(async move {
            let engine = Stalling::default();
            let lease = engine.client().await;
            let token = Arc::new(lease.acquire(.., Exclusive, TTL).await.unwrap());
            engine.forgets(&token).await;
            engine.renewals_are(renewals);
            let looks = Arc::new(Looks(Arc::clone(&token), OnceLock::new()));
            let waker = Waker::from(Arc::clone(&looks));
            let (mut end, mut renewed) = (token.lost(), token.renew());
            let mut context = Context::from_waker(&waker);
            assert!(pin!(&mut end).poll(&mut context).is_pending());
            assert!(pin!(&mut renewed).poll(&mut context).is_pending());
            sleep(SILENCE).await;
            assert_eq!(looks.1.get(), Some(&Err(Lost)));
            assert_eq!((renewed.await, end.await), (Err(Lost), End::Lost));
        });
    }
}

#[test]
fn a_lost_block_is_told_and_acquired_anew() {
    simulate(async {
        let engine = Stalling::default();
        let cache = Cache::new(engine.client().await, 6, TTL);
        let held = cache.lock(0..10, Exclusive).await.unwrap();
        engine.renewals_are(Calls::Lost);
        sleep(TTL).await;
        assert_eq!((held.check(), cache.blocks()), (Err(Lost), 0));
        engine.renewals_are(Calls::Answered);
        let fence = held.fence();
        drop(held);
        let anew = cache.lock(20..30, Exclusive).await.unwrap();
        assert!(anew.fence() > fence && anew.check().is_ok());
    });
}

/// One whose answer was lost has its lease, and one that is nearly over when it is known is not taken.
#[test]
fn a_request_is_repeated_under_its_name() {
    simulate(async {
        let engine = Stalling::default();
        let lease = engine.client().await;
        engine.requests_are(Calls::Unanswered);
        let asked = lease.acquire(0..10, Exclusive, TTL).start();
        sleep(SILENCE / 2).await;
        engine.requests_are(Calls::Answered);
        let token = asked.await.unwrap();
        assert_eq!((engine.acquisitions(), token.fence().counter), (2, 1));
        engine.takes(TTL);
        let asked = lease.acquire(10..20, Exclusive, TTL).start();
        sleep(SILENCE).await;
        engine.takes(Duration::ZERO);
        assert_eq!(asked.await.unwrap().check(), Ok(()));
        assert_eq!(engine.acquisitions(), 4);
    });
}

/// The engine does all it is asked for, and says nothing. So it may have renewed the lease since we know of.
#[test]
fn a_release_that_is_not_answered_ends_with_the_ttl() {
    simulate(async {
        let engine = Stalling::default();
        let (lease, other) = (engine.client().await, engine.client().await);
        let began = now();
        let token = lease.acquire(.., Exclusive, TTL).await.unwrap();
        let next = other.acquire(.., Exclusive, TTL).start();
        engine.renewals_are(Calls::Unanswered);
        engine.releases_are(Calls::Lost);
        sleep(TTL / 2).await;
        let (gate, told) = (Arc::clone(&token.gate), token.lost());
        let released = token.release();
        sleep(Duration::from_millis(1)).await;
        assert!(!gate.is_open());
        assert_eq!(released.await, Err(Lost));
        assert!(now() >= end(began) && now() <= end(began) + Duration::from_millis(2));
        assert_eq!(told.await, End::Lost);
        // The engine is told of the end, as soon as it can be.
        engine.releases_are(Calls::Answered);
        drop(next.await.unwrap());
        assert!(now() <= end(began) + 3 * SILENCE, "{:?}", now());
    });
}

/// Neither the engine nor the keeper has anything left of those that it did not hear of.
#[test]
fn lost_leases_are_forgotten() {
    simulate(async {
        let engine = Stalling::default();
        let lease = engine.client().await;
        engine.renewals_are(Calls::Lost);
        engine.releases_are(Calls::Lost);
        let mut ends = Vec::new();
        let mut tokens = Vec::new();
        for at in 0..1000 {
            let token = lease.acquire(at..=at, Exclusive, TTL).await.unwrap();
            ends.push(token.lost());
            tokens.push(token);
        }
        assert_eq!(engine.known(), 1000);
        for end in ends {
            assert_eq!(end.await, End::Lost);
        }
        // Others may have the ranges when the drift has passed as well, and not before.
        assert_eq!(engine.known(), 1000);
        sleep(TTL / 50).await;
        assert_eq!(engine.known(), 0);
        drop(tokens);
    });
}

#[test]
fn a_ttl_that_is_too_short_is_refused() {
    simulate(async {
        let engine = Stalling::default();
        let lease = engine.client().await;
        engine.takes(SILENCE);
        let refused = lease.acquire(.., Exclusive, SILENCE).await.unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("1.0s") && said.contains("4.0s"), "{said}");
        assert!(
            matches!(refused, Refused::TtlTooShort { ttl, least } if (ttl, least) == (SILENCE, 4 * SILENCE))
        );
        assert_eq!(engine.acquisitions(), 5);
        // What it says is enough.
        let token = lease.acquire(.., Exclusive, 4 * SILENCE).await.unwrap();
        assert_eq!(token.renew().await, Ok(()));
    });
}

#[test]
fn who_is_late_hears_why() {
    simulate(async {
        let engine = Stalling::default();
        let lease = engine.client().await;
        let soon = async |limit| {
            let asks = lease.acquire(.., Exclusive, TTL).within(limit);
            asks.await.unwrap_err()
        };
        engine.requests_are(Calls::Lost);
        assert!(matches!(soon(SILENCE / 2).await, Refused::NotAnswered));
        let said = soon(3 * SILENCE).await.to_string();
        assert!(
            said.contains("cannot be reached: it was told to stall"),
            "{said}"
        );
        engine.requests_are(Calls::Answered);
        let held = lease.acquire(.., Exclusive, TTL).await.unwrap();
        assert!(matches!(soon(3 * SILENCE).await, Refused::TimedOut));
        held.release().await.unwrap();
        engine.takes(TTL);
        let late = soon(3 * TTL).await;
        assert!(matches!(late, Refused::TtlTooShort { least, .. } if least == 4 * TTL));
    });
}
