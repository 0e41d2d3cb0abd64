//! An order among those who wait. Engines do not ask by themselves, so nobody gets on who is not told.

use crate::server::{Engines, LONG, request, runtime};
use spanlock_lease::Mode::Exclusive;
use spanlock_lease::{Answer, Engine, Fence, News, Request, Span, Wanted};
use std::time::{Duration, Instant};

/// A request gives way for so long to one that came a moment before it.
const GIVES_WAY: Duration = Duration::from_secs(1);

/// The fence, if it is granted.
async fn asks(engine: &impl Engine<Range = Span>, request: &Request) -> Option<Fence> {
    match engine.acquire(request).await.expect("it answers") {
        Answer::Granted { fence, .. } => Some(fence),
        Answer::Busy { .. } => None,
    }
}

/// Waits for news about a request.
pub async fn is_told(engine: &impl Engine<Range = Span>, request: &Request) {
    while !matches!(engine.news().await, News::About(id) if id == request.id) {}
}

/// The first of three holds 0..5, and the second one waits for it. The third one gives way to that, although what it
/// asks for is free. The engines are of the first two, and of the third.
async fn who_gives_way<S: Engines>(server: &S) -> (S::Engine, S::Engine, [Request; 3]) {
    let (one, other) = (server.opened().await, server.opened().await);
    let all = [request(0..5), request(0..10), request(5..10)];
    assert!(asks(&one, &all[0]).await.is_some());
    assert!(asks(&one, &all[1]).await.is_none());
    assert!(asks(&other, &all[2]).await.is_none(), "it gives way");
    (one, other, all)
}

/// Also if the other one asks in between.
pub fn who_came_first_is_served_first<S: Engines>(server: &S) {
    runtime().block_on(async {
        let (one, other, [_, first, second]) = loop {
            let start = Instant::now();
            let (one, other, all) = who_gives_way(server).await;
            one.release(all[0].id).await.unwrap();
            is_told(&one, &all[1]).await;
            if asks(&other, &all[2]).await.is_none() {
                break (one, other, all);
            }
            assert!(start.elapsed() >= GIVES_WAY, "it gives way");
            one.release(all[1].id).await.unwrap();
            other.release(all[2].id).await.unwrap();
        };
        let fence = asks(&one, &first).await.expect("it came first");
        assert!(asks(&other, &second).await.is_none());
        one.release(first.id).await.unwrap();
        is_told(&other, &second).await;
        assert!(asks(&other, &second).await > Some(fence));
    });
}

/// By itself, when the other one has waited for 1, 2, 4, … seconds. Otherwise two could wait for each other, who hold
/// what the other one wants.
pub fn who_has_given_way_for_long_passes<S: Engines>(server: &S) {
    let (a, b) = (server.lease(), server.lease());
    let held = a.acquire(0..5, Exclusive, LONG).wait().unwrap();
    let mut first = a.acquire(0..10, Exclusive, LONG).start();
    assert_eq!(held.wanted().wait(), Wanted::Yes);
    let passed = b.acquire(5..10, Exclusive, LONG).wait().unwrap();
    assert!(first.try_wait().is_none());
    passed.release().wait().unwrap();
    held.release().wait().unwrap();
    drop(first.wait().unwrap());
}

/// And is granted what is free.
pub fn who_gave_way_is_told_that_the_other_gave_up<S: Engines>(server: &S) {
    runtime().block_on(async {
        let (one, other, [_held, first, second]) = who_gives_way(server).await;
        one.release(first.id).await.unwrap();
        is_told(&other, &second).await;
        assert!(asks(&other, &second).await.is_some());
    });
}

/// At once, and not only when it renews.
pub fn who_is_granted_what_another_waits_for_is_told<S: Engines>(server: &S) {
    runtime().block_on(async {
        let (one, _other, [held, first, _second]) = who_gives_way(server).await;
        one.release(held.id).await.unwrap();
        is_told(&one, &first).await;
        assert!(asks(&one, &first).await.is_some());
        is_told(&one, &first).await;
    });
}

/// It asks for a block, and gets what nobody wishes for.
pub fn blocks_leave_out_what_is_wished_for<S: Engines>(server: &S) {
    runtime().block_on(async {
        let engine = server.opened().await;
        assert!(asks(&engine, &request(16..17)).await.is_some());
        assert!(asks(&engine, &request(8..17)).await.is_none());
        let mut grows = request(0..1);
        grows.grow = Some(20);
        match engine.acquire(&grows).await.unwrap() {
            Answer::Granted { span, .. } => assert_eq!(Some(span), Span::of(0..8)),
            busy @ Answer::Busy { .. } => panic!("{busy:?}"),
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::{failures, requests};
    use spanlock_lease::Memory;
    use spanlock_testkit::watchdog::{HANG, watched};

    #[test]
    fn the_engine_in_memory_does_as_others_do() {
        let tests: [fn(&Memory); 7] = [
            super::who_came_first_is_served_first,
            super::who_has_given_way_for_long_passes,
            super::who_gave_way_is_told_that_the_other_gave_up,
            super::who_is_granted_what_another_waits_for_is_told,
            super::blocks_leave_out_what_is_wished_for,
            failures::a_release_wakes_who_waits,
            requests::a_repeated_request_is_granted_again,
        ];
        let all = || tests.iter().for_each(|test| test(&Memory::new()));
        watched(HANG, || (), |()| "nothing happens".to_owned(), all);
    }
}
