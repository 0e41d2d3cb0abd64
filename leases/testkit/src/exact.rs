//! What is granted.

use crate::server::{LONG, Server, random_id, runtime};
use spanlock_lease::{Answer, Engine, Memory, Mode, Request, Span};

/// Positions at which signs, ends and blocks may be mistaken.
const EDGES: [u64; 12] = [
    0,
    1,
    2,
    63,
    64,
    65,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    u64::MAX - 2,
    u64::MAX - 1,
    u64::MAX,
];

fn random_span() -> Span {
    let edge = || EDGES[fastrand::usize(..EDGES.len())];
    let (a, b) = (edge(), edge());
    Span::inclusive(a.min(b), a.max(b)).expect("it is in order")
}

fn random_request() -> Request {
    Request {
        id: random_id(),
        span: random_span(),
        mode: [Mode::Shared, Mode::Exclusive][fastrand::usize(..2)],
        ttl: LONG,
        grow: fastrand::bool().then(|| fastrand::u32(..64)),
    }
}

/// The same requests and releases, to both engines.
pub fn agrees_with_the_engine_in_memory<S: Server>(server: &S) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::seed(seed);
    runtime().block_on(async {
        let (ours, model) = (server.engine(), Memory::new());
        ours.open().await.unwrap();
        let (mut held, mut granted, mut refused) = (Vec::new(), 0, 0);
        for _ in 0..1500 {
            if held.len() > 5 || fastrand::u32(..4) == 0 {
                if !held.is_empty() {
                    let id = held.swap_remove(fastrand::usize(..held.len()));
                    ours.release(id).await.unwrap();
                    model.release(id).await.unwrap();
                }
                continue;
            }
            let request = random_request();
            let ask = async || {
                let answer = ours.acquire(&request).await.unwrap();
                (answer, model.acquire(&request).await.unwrap())
            };
            let mut answers = ask().await;
            // Until when a request gives way depends on the time, which has passed between the two.
            if let (Answer::Granted { .. }, Answer::Busy { .. })
            | (Answer::Busy { .. }, Answer::Granted { .. }) = answers
            {
                answers = ask().await;
            }
            match answers {
                (Answer::Granted { span, .. }, Answer::Granted { span: expected, .. }) => {
                    assert_eq!(span, expected, "{request:?}");
                    granted += 1;
                    held.push(request.id);
                }
                (Answer::Busy { .. }, Answer::Busy { .. }) => {
                    refused += 1;
                    // Now and then it goes on wishing, which blocks may not ignore.
                    if fastrand::bool() {
                        held.push(request.id);
                    } else {
                        ours.release(request.id).await.unwrap();
                        model.release(request.id).await.unwrap();
                    }
                }
                (answer, expected) => panic!("{answer:?} instead of {expected:?} for {request:?}"),
            }
        }
        assert!(
            granted > 100 && refused > 100,
            "{granted} granted, {refused} refused"
        );
    });
}
