//! Tests of the queue.

mod costs;

use super::{Duration, Entry, HolderId, Instant, Queue, Request, RequestId, Stage};
use crate::range::order::QueueOrder;
use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::range::wait::entry::Sleeper;
use crate::range::wait::watched::Origin;
use crate::range::wait::{Fairness, Patience};
use crate::wait::{WakerId, Wakeups};
use std::ops::Range;
use std::panic::Location;
use std::task::Waker;

fn asleep(id: RequestId, range: Range<u64>, behind: HolderId) -> Entry {
    let request = Request::new(Span::of(range).unwrap(), Mode::Exclusive, 1);
    Entry {
        id,
        request,
        origin: Origin {
            at: Location::caller(),
            thread: None,
            is_endless: true,
        },
        sleeper: Sleeper::Thread(Box::leak(Box::default())),
        turn_ends: None,
        wants: false,
        line: None,
        reserved: None,
        asks: false,
        patience: Patience::NONE,
        due: Some(Instant::now()),
        holds: false,
        shares: None,
        gave_way: None,
        stage: Stage::BehindHolder(behind),
        behind: request,
    }
}

/// A wide request came first. Requests for either half of it come and go, so that one of them is awake whenever the
/// wide one might be woken. The wide request must be woken in the end.
#[test]
fn a_first_comer_is_not_put_behind_later_ones_for_ever() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let wide = 1;
    let mut holders = [1000, 2000];
    queue.sleep(asleep(wide, 0..2, holders[0]), &mut Wakeups::default());
    queue.sleep(asleep(2, 1..2, holders[1]), &mut Wakeups::default());
    let mut at = 1;
    for next in 3..100 {
        let other = 1 - at;
        let narrow = other as u64..other as u64 + 1;
        let mut wakeups = Wakeups::default();
        let newcomer = asleep(next, narrow, holders[other]);
        queue.sleep(newcomer, &mut wakeups);
        queue.holder_left(holders[at], &mut wakeups);
        queue.holder_left(holders[other], &mut wakeups);
        // Woken, the newcomer asks for admission.
        let first = queue.reservation_ahead_of(Some(next), &newcomer.request, |_| false);
        if let Some(stage) = first.map(|first| {
            let turn = queue.turn(&newcomer.request, Instant::now());
            Stage::GivingWay(first.id, turn.expect("the first turn is long"))
        }) {
            queue.sleep(Entry { stage, ..newcomer }, &mut wakeups);
        }
        if stage(&queue, wide) == Stage::Awake {
            return;
        }
        holders[at] += 1;
        queue.granted(next - 1, &mut Wakeups::default(), |_| holders[at]);
        at = other;
    }
    panic!("the wide request was never woken");
}

/// While many requests want one range some always overtake others. If each of those reserved, all would sleep for
/// ever: see `overtake`.
#[test]
fn a_sleeper_that_is_overtaken_reserves_when_its_patience_has_ended() {
    let now = Instant::now();
    let later = now.checked_add(Duration::from_secs(3600));
    for (due, reservations) in [(Some(now), 1), (later, 0), (None, 0)] {
        let mut queue = Queue::new(QueueOrder::Positions, None);
        let mut wakeups = Wakeups::default();
        let first = Entry {
            due,
            ..asleep(1, 0..2, 1000)
        };
        queue.sleep(first, &mut wakeups);
        queue.sleep(asleep(2, 1..2, 2000), &mut wakeups);
        queue.holder_left(2000, &mut wakeups);
        queue.holder_left(1000, &mut wakeups);
        assert_eq!(stage(&queue, 1), Stage::BehindRequest(2));
        assert_eq!(queue.reservations(), reservations, "due {due:?}");
    }
}

/// Otherwise reservations would be in force all the time where all wait for long: see `reservation.rs`.
#[test]
fn reservations_pause_and_come_together() {
    let patience = Patience::of(Fairness::After(Duration::from_secs(3600)));
    let longest = patience.pause(Duration::MAX);
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    // Its patience has ended.
    let entry = |id| Entry {
        patience,
        // Not in one line.
        ..asleep(id, 0..2, 1000 + id as HolderId)
    };
    let reserves = |id| Entry {
        reserved: Some(Instant::now()),
        ..entry(id)
    };
    let reserved = |queue: &Queue| {
        queue
            .places
            .reserved()
            .map(|entry| entry.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(queue.reserve(reserves(1)), None);
    queue.sleep(entry(2), &mut wakeups);
    for id in 3..6 {
        let refused = queue.sleep(reserves(id), &mut wakeups);
        assert!(refused.is_some_and(|pause| pause <= longest));
    }
    queue.gave_up(5, &mut wakeups);
    assert_eq!(reserved(&queue), [1]);
    assert_eq!(queue.reserve(reserves(1)), None, "it has one");
    queue.paused_until = 0;
    // The second request has not been overtaken, so it has not asked. The third sleeps again, and has.
    queue.sleep(entry(3), &mut wakeups);
    assert_eq!(queue.sleep(reserves(6), &mut wakeups), None);
    assert_eq!(reserved(&queue), [1, 3, 4, 6]);
    for id in [1, 3, 4] {
        queue.granted(id, &mut Wakeups::default(), |_| 1000);
        assert!(queue.pauses_for() > longest / 2, "one is in force");
    }
    queue.granted(6, &mut Wakeups::default(), |_| 1000);
    assert!(queue.pauses_for() < longest / 2, "as long as it lasted");
}

#[test]
fn reservations_are_counted() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let reserved = Entry {
        reserved: Some(Instant::now()),
        ..asleep(1, 0..1, 7)
    };
    queue.sleep(reserved, &mut wakeups);
    queue.sleep(asleep(1, 0..1, 8), &mut wakeups);
    assert_eq!(
        queue.reservations(),
        1,
        "a reservation stays when its request sleeps again"
    );
    queue.sleep(asleep(2, 0..1, 8), &mut wakeups);
    queue.reserve(reserved);
    assert_eq!(queue.reservations(), 1);
    assert!(!queue.granted(1, &mut Wakeups::default(), |_| 9));
    assert_eq!(queue.reservations(), 0);
}

/// A time so far ahead that a reservation granted then is in its first turn all the time.
fn far_ahead() -> Instant {
    Instant::now()
        .checked_add(Duration::from_secs(3600))
        .unwrap()
}

fn reserve_since(queue: &mut Queue, id: RequestId, since: Option<Instant>) {
    queue.places.change(id, |entry| entry.reserved = since);
}

fn stage(queue: &Queue, id: RequestId) -> Stage {
    queue.places.stage(id)
}

/// Otherwise each sleeper would be woken only to find that it has to give way, and sleep again.
#[test]
fn a_sleeper_that_would_give_way_follows_one_that_does() {
    let (wide, other) = (1000, 2000);
    // Who gives way gives up, or its turn ends; or what it gives way to is granted.
    for end in ["gives up", "turn ends", "is granted"] {
        let mut queue = Queue::new(QueueOrder::Positions, None);
        let mut wakeups = Wakeups::default();
        queue.sleep(asleep(1, 0..2, wide), &mut wakeups);
        for id in 2..4 {
            queue.sleep(asleep(id, 1..2, other), &mut wakeups);
        }
        let holds = true;
        let holder = Entry {
            holds,
            ..asleep(4, 0..2, other)
        };
        queue.sleep(holder, &mut wakeups);
        reserve_since(&mut queue, 1, Some(far_ahead()));
        queue.holder_left(other, &mut wakeups);
        assert_eq!(stage(&queue, 2), Stage::Awake, "nobody gives way so far");
        assert_eq!(stage(&queue, 3), Stage::BehindRequest(2));
        let request = queue.places.of(2).request;
        let turn = queue.turn(&request, Instant::now()).unwrap();
        let leader = Entry {
            stage: Stage::GivingWay(1, turn),
            ..asleep(2, 1..2, other)
        };
        queue.sleep(leader, &mut wakeups);
        assert_eq!(stage(&queue, 3), Stage::Following(1));
        assert_eq!(stage(&queue, 4), Stage::Awake, "it may be waited for");
        queue.sleep(holder, &mut wakeups);
        match end {
            "gives up" => {
                queue.gave_up(2, &mut wakeups);
                assert_eq!(stage(&queue, 3), Stage::Awake, "it gives way instead");
            }
            "turn ends" => {
                queue.turn_ended(2, turn, &mut wakeups);
                assert_eq!(stage(&queue, 3), Stage::BehindRequest(2));
                assert_eq!(queue.gave_way(3), Some(turn), "it has given way, too");
                queue.sleep(leader, &mut wakeups);
                assert_eq!(stage(&queue, 3), Stage::Awake, "once in a round");
            }
            _ => {
                queue.granted(1, &mut Wakeups::default(), |_| 3000);
                let behind = Stage::BehindHolder(3000);
                assert_eq!((stage(&queue, 2), stage(&queue, 3)), (behind, behind));
            }
        }
    }
}

/// A request may give way to an old reservation, too, which the other request has nothing to do with. Its turns are
/// long.
#[test]
fn nobody_follows_one_that_gives_way_for_longer() {
    let (old, held, other) = (1000, 2000, 3000);
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    queue.sleep(asleep(1, 4..8, old), &mut wakeups);
    queue.sleep(asleep(2, 0..4, held), &mut wakeups);
    queue.sleep(asleep(3, 1..2, other), &mut wakeups);
    let since = far_ahead();
    reserve_since(&mut queue, 1, Some(since));
    reserve_since(&mut queue, 2, since.checked_add(Duration::from_secs(1)));
    let both = asleep(4, 3..5, other);
    let long = queue.turn(&both.request, Instant::now()).unwrap();
    let own = queue.turn(&queue.places.of(3).request, Instant::now());
    assert_ne!(Some(long), own);
    let stage_of_both = Stage::GivingWay(2, long);
    let leader = Entry {
        stage: stage_of_both,
        ..both
    };
    queue.sleep(leader, &mut wakeups);
    queue.holder_left(other, &mut wakeups);
    assert_eq!(stage(&queue, 3), Stage::Awake);
    assert_eq!(stage(&queue, 4), stage_of_both);
}

/// Reservations that are connected share their turns, also if only a request's own range connects them.
#[test]
fn connected_reservations_share_their_turns() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let at = |number: u64| far_ahead().checked_add(Duration::from_secs(number));
    for (id, range) in [(1, 8..10), (2, 0..2), (3, 4..6), (4, 1..5)] {
        queue.sleep(asleep(id, range, 1000), &mut wakeups);
        reserve_since(&mut queue, id, at(id));
    }
    let since = |range: Range<u64>| {
        let request = asleep(9, range, 1000).request;
        let turn = queue.turn(&request, Instant::now())?;
        let mut reserved = queue.places.reserved();
        reserved.position(|entry| entry.reserved == Some(turn.since))
    };
    // The second, third and fourth are connected; the second is their first in the queue.
    let all = [
        (6..8, None),
        (7..9, Some(0)),
        (5..6, Some(1)),
        (2..3, Some(1)),
        (5..9, Some(0)),
    ];
    for (range, first) in all {
        assert_eq!(since(range.clone()), first, "{range:?}");
    }
}

/// Owners that share a range and want some of it alone.
#[test]
fn each_wants_what_the_other_shares() {
    let upgrade = |id: RequestId, shared: Range<u64>, wish: Range<u64>| {
        let shared = Span::of(shared).unwrap();
        Entry {
            shares: Some(Request::new(shared, Mode::Shared, 1)),
            ..asleep(id, wish, 1000)
        }
    };
    let mut queue = Queue::new(QueueOrder::Positions, None);
    queue.sleep(upgrade(1, 0..10, 5..10), &mut Wakeups::default());
    queue.sleep(asleep(2, 0..20, 1000), &mut Wakeups::default());
    let second = |shared, wish| queue.would_wait_for_each_other(&upgrade(3, shared, wish));
    assert!(second(5..20, 5..6));
    // It waits for the first one, which does not wait for it.
    assert!(!second(0..5, 0..1));
    // The first one waits for it, and not the other way round.
    assert!(!second(5..20, 12..15));
    assert!(!second(10..20, 10..12));
    // Itself, again.
    assert!(!queue.would_wait_for_each_other(&upgrade(1, 0..10, 5..10)));
    assert!(!queue.would_wait_for_each_other(&asleep(3, 0..10, 1000)));
}

/// Who sleeps behind a request that wants the same does not wake when that one meets another holder.
#[test]
fn a_line_waits_with_its_first() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    for id in 1..4 {
        queue.sleep(asleep(id, 0..2, 1000), &mut wakeups);
    }
    queue.holder_left(1000, &mut wakeups);
    assert_eq!(
        [1, 2, 3].map(|id| stage(&queue, id)),
        [
            Stage::Awake,
            Stage::BehindRequest(1),
            Stage::BehindRequest(1)
        ]
    );
    queue.sleep(asleep(1, 0..2, 2000), &mut wakeups);
    assert_eq!(
        [1, 2, 3].map(|id| stage(&queue, id)),
        [Stage::BehindHolder(2000); 3]
    );
    queue.sleep(asleep(4, 0..2, 2000), &mut wakeups);
    queue.holder_left(2000, &mut wakeups);
    assert_eq!(stage(&queue, 1), Stage::Awake, "it keeps its place");
    queue.gave_up(1, &mut wakeups);
    assert_eq!(stage(&queue, 2), Stage::Awake);
    assert_eq!(stage(&queue, 4), Stage::BehindRequest(2));
}

/// The first in a line reserves for all, and the next inherits what it has.
#[test]
fn the_next_in_line_inherits_the_reservation() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let since = Instant::now();
    for id in 1..4 {
        let reserves = Entry {
            reserved: Some(since),
            ..asleep(id, 0..2, 1000)
        };
        assert_eq!(queue.sleep(reserves, &mut wakeups), None);
    }
    assert_eq!(queue.reservations(), 1);
    queue.holder_left(1000, &mut wakeups);
    assert_eq!(queue.places.of(2).reserved, Some(since));
    queue.granted(1, &mut wakeups, |_| 2000);
    assert_eq!(queue.reservations(), 1);
}

/// A task gives way, another request follows it and wants the same. When the turn ends the task may never be polled.
#[test]
fn who_has_followed_a_task_waits_for_no_longer_than_its_turn() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let now = Instant::now();
    queue.named = 3;
    let first = Entry {
        reserved: Some(now),
        ..asleep(1, 0..4, 1000)
    };
    queue.sleep(first, &mut wakeups);
    let turn = queue.turn(&first.request, now).expect("it is in force");
    let task = Entry {
        sleeper: Sleeper::Task {
            waker: WakerId::numbered(2),
            deadline: None,
        },
        stage: Stage::GivingWay(1, turn),
        due: None,
        ..asleep(2, 0..2, 0)
    };
    queue.wakers.insert(2, Waker::noop().clone());
    queue.sleep(task, &mut wakeups);
    let follower = Entry {
        stage: Stage::Following(1),
        due: None,
        ..asleep(3, 0..2, 0)
    };
    queue.sleep(follower, &mut wakeups);
    queue.watch(&mut wakeups);
    queue.ring(turn.ends, &mut wakeups);
    assert_eq!(stage(&queue, 2), Stage::Awake);
    assert_eq!(stage(&queue, 3), Stage::BehindRequest(2));
    let alarm = queue.places.first_alarm();
    queue.ring(alarm.expect("its turn ends"), &mut wakeups);
    assert_eq!(stage(&queue, 2), Stage::Idle);
    assert_eq!(stage(&queue, 3), Stage::Awake);
}

/// It would be given to all that have asked, and newcomers would give way to a task that may never be polled.
#[test]
fn a_task_that_is_not_polled_in_its_turn_does_not_get_what_it_has_asked_for() {
    let patience = Patience::of(Fairness::After(Duration::from_secs(3600)));
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let reserves = |id, holder| Entry {
        patience,
        reserved: Some(Instant::now()),
        ..asleep(id, 0..2, holder)
    };
    assert_eq!(queue.reserve(reserves(1, 1000)), None);
    let task = Entry {
        sleeper: Sleeper::Task {
            waker: WakerId::numbered(2),
            deadline: None,
        },
        ..reserves(2, 2000)
    };
    queue.wakers.insert(2, Waker::noop().clone());
    assert!(queue.sleep(task, &mut wakeups).is_some(), "they pause");
    queue.granted(1, &mut wakeups, |_| 1000);
    queue.sleep(asleep(3, 0..1, 2000), &mut wakeups);
    queue.holder_left(2000, &mut wakeups);
    assert_eq!(stage(&queue, 3), Stage::BehindRequest(2));
    queue.watch(&mut wakeups);
    let alarm = queue.places.first_alarm();
    queue.ring(alarm.expect("its turn ends"), &mut wakeups);
    assert_eq!(stage(&queue, 2), Stage::Idle);
    queue.paused_until = 0;
    assert_eq!(queue.sleep(reserves(4, 3000), &mut wakeups), None);
    let reserved: Vec<_> = queue.places.reserved().map(|entry| entry.id).collect();
    assert_eq!(reserved, [4]);
}
