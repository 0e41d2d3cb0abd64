//! Requests that are repeated, and what people see of them.

use crate::server::{Engines, LONG, Server, request, runtime};
use spanlock_lease::Mode::{Exclusive, Shared};
use spanlock_lease::{Answer, Engine, RangeLease, Renewal, Span, State, Wanted};

/// By whoever knows its name.
pub fn a_repeated_request_is_granted_again<S: Engines>(server: &S) {
    runtime().block_on(async {
        let (one, other) = (server.opened().await, server.opened().await);
        let asked = request(0..10);
        let mut before = None;
        for engine in [&one, &other, &one] {
            match engine.acquire(&asked).await.unwrap() {
                Answer::Granted { span, fence } => {
                    assert!(span == asked.span && before <= Some(fence));
                    before = Some(fence);
                }
                busy @ Answer::Busy { .. } => panic!("{busy:?}"),
            }
        }
        let kept = Renewal::Kept { wanted: Wanted::No };
        assert_eq!(other.renew(asked.id, asked.ttl).await.unwrap(), kept);
        other.release(asked.id).await.unwrap();
        assert_eq!(one.renew(asked.id, asked.ttl).await.unwrap(), Renewal::Gone);
    });
}

/// Or is refused.
pub fn a_resource_has_a_name<S: Server>(server: &S) {
    let refused = RangeLease::open(S::engine_of(&server.at, "")).wait();
    let why = refused.expect_err("it has none").to_string();
    assert!(why.contains("needs a name"), "{why}");
}

/// With its range, how it is held, and by whom.
pub fn who_holds_and_who_waits_is_listed<S: Server>(server: &S) {
    let lease = server.lease();
    assert!(server.listed().is_empty());
    let held = lease.acquire(5.., Exclusive, LONG).wait().unwrap();
    let waits = server.lease().acquire(..=7, Shared, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    let listed = server.listed();
    let [holder, waiter] = &listed[..] else {
        panic!("{listed:?}");
    };
    assert_eq!(holder.id, held.id());
    for (listed, state, span, mode) in [
        (holder, State::Held, Span::of(5..), Exclusive),
        (waiter, State::Awaited, Span::of(..=7), Shared),
    ] {
        assert_eq!(
            (listed.state, Some(listed.span), listed.mode),
            (state, span, mode)
        );
        let own = format!("[{}]@", std::process::id());
        let is_named = listed.client.contains(&own) && listed.resource == "resource";
        assert!(is_named && listed.left <= LONG, "{listed:?}");
    }
    drop(waits);
}
