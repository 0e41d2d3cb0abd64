//! The order in which leases began and ended, as a server has it, beside the order of their fences.

use crate::server::{LONG, Server, runtime};
use spanlock_lease::{Answer, Engine, Fence, Mode, Request, RequestId, Span};
use std::collections::HashMap;
use std::thread;

const CLIENTS: u64 = 4;
const POSITIONS: u64 = 16;

/// What a client was granted.
#[derive(Debug)]
pub struct Grant {
    /// The range.
    pub span: Span,
    /// How it is held.
    pub mode: Mode,
    /// With which fence.
    pub fence: Fence,
}

/// What has happened to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was granted.
    Began,
    /// It was released.
    Ended,
}

/// What is wrong between conflicting leases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// The later one has the smaller fence.
    pub out_of_order: usize,
    /// One began before the other had ended.
    pub side_by_side: usize,
}

/// Looks at leases in the order in which they changed on the server.
#[must_use]
pub fn wrong<'a>(
    changes: impl IntoIterator<Item = &'a (RequestId, Change)>,
    grants: &HashMap<RequestId, Grant>,
) -> Wrong {
    let (mut earlier, mut live, mut wrong) = (Vec::new(), Vec::new(), Wrong::default());
    for (id, change) in changes {
        if *change == Change::Ended {
            live.retain(|other| other != id);
            continue;
        }
        let grant = &grants[id];
        let conflicts = |other: &&RequestId| {
            let other = &grants[*other];
            other.span.overlaps(grant.span) && other.mode.conflicts(grant.mode)
        };
        let before = earlier.iter().filter(conflicts);
        wrong.out_of_order += before.filter(|id| grants[*id].fence >= grant.fence).count();
        wrong.side_by_side += live.iter().filter(conflicts).count();
        earlier.push(*id);
        live.push(*id);
    }
    wrong
}

/// Clients that acquire and release at random, so many times each. What they were granted.
pub fn work<S: Server>(server: &S, times: u32) -> HashMap<RequestId, Grant> {
    let client = |seed: u64| {
        let engine = server.engine();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut grants = Vec::new();
        runtime().block_on(async {
            engine.open().await.expect("it opens");
            for _ in 0..times {
                let first = random.u64(..POSITIONS);
                let last = first + random.u64(..4);
                let request = Request {
                    id: format!("{:x}", random.u128(..)).parse().expect("a number"),
                    span: Span::inclusive(first, last).expect("in order"),
                    mode: match random.u32(..4) {
                        0 => Mode::Shared,
                        _ => Mode::Exclusive,
                    },
                    ttl: LONG,
                    grow: None,
                };
                let answer = engine.acquire(&request).await.expect("it answers");
                if let Answer::Granted { span, fence } = answer {
                    let mode = request.mode;
                    grants.push((request.id, Grant { span, mode, fence }));
                }
                engine.release(request.id).await.expect("it answers");
            }
        });
        server.step();
        grants
    };
    thread::scope(|scope| {
        let seeds = std::iter::repeat_with(|| fastrand::u64(..));
        let client = &client;
        let clients: Vec<_> = seeds
            .take(CLIENTS as usize)
            .map(|seed| scope.spawn(move || client(seed)))
            .collect();
        let grants = clients
            .into_iter()
            .flat_map(|client| client.join().expect("no panic"));
        grants.collect()
    })
}
