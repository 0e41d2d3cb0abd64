//! Tests of the queue.

mod costs;

use super::{Duration, Entry, HolderId, Instant, Queue, Request, RequestId, Stage, clock};
use crate::range::mode::Mode;
use crate::range::order::QueueOrder;
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
        shares: None,
        is_piece: false,
        has_given_way: false,
        stage: Stage::BehindHolder(behind),
        behind: request,
    }
}

/// A queue that wakes nobody who conflicts with an awake request.
fn without_spare() -> Queue {
    Queue {
        spare: 0,
        ..Queue::new(QueueOrder::Positions, None)
    }
}

/// If the first does not run yet when its range is free, the second may.
#[test]
fn a_departure_wakes_one_to_spare() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    for id in 1..5 {
        queue.sleep(asleep(id, 0..2, 1000), &mut wakeups);
    }
    queue.holders_left([1000], &mut wakeups);
    let (awake, behind) = (Some(Stage::Awake), Some(Stage::BehindRequest(1)));
    let stages =
        |queue: &Queue| [1, 2, 3, 4].map(|id| queue.places.get(id).map(|_| stage(queue, id)));
    assert_eq!(stages(&queue), [awake, awake, behind, behind]);
    queue.granted(2, &mut wakeups, |_| unreachable!("nobody is behind it"));
    queue.granted(1, &mut wakeups, |_| 2000);
    queue.holders_left([2000], &mut wakeups);
    assert_eq!(stages(&queue), [None, None, awake, awake]);
}

/// Each sleeps behind a segment of its own, and all are left at once.
#[test]
fn a_departure_from_many_segments_wakes_one_to_spare() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    for id in 1..=4 {
        queue.sleep(asleep(id, id..9, id as HolderId), &mut wakeups);
    }
    queue.holders_left(1..=4, &mut wakeups);
    let behind = Stage::BehindRequest(1);
    let stages = [1, 2, 3, 4].map(|id| stage(&queue, id));
    assert_eq!(stages, [Stage::Awake, Stage::Awake, behind, behind]);
}

/// What its owner holds is in the way of others who want the same as a piece of it, and not in the way of the piece. It
/// is released only after the piece is granted.
#[test]
fn a_piece_is_never_moved_behind_what_it_replaces() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let (first, spare, piece) = (1, 2, 3);
    for id in [first, spare, piece] {
        let is_piece = id == piece;
        let entry = asleep(id, 0..5, 1000);
        queue.sleep(Entry { is_piece, ..entry }, &mut wakeups);
    }
    queue.holders_left([1000], &mut wakeups);
    assert_eq!(stage(&queue, piece), Stage::BehindRequest(first));
    // Both are blocked by what the owner holds.
    for id in [first, spare] {
        queue.sleep(asleep(id, 0..5, 2000), &mut wakeups);
    }
    assert_eq!(stage(&queue, piece), Stage::Awake);
}

/// A task is blocked again, or overtaken, and was polled for the last time meanwhile.
#[test]
fn a_task_that_goes_on_does_not_lose_the_end_of_its_turn() {
    let mut queue = without_spare();
    let mut wakeups = Wakeups::default();
    let sleeper = Sleeper::Task {
        waker: WakerId::numbered(1),
        deadline: None,
    };
    let task = Entry {
        sleeper,
        ..asleep(1, 0..5, 1000)
    };
    queue.sleep(task, &mut wakeups);
    queue.wakers.insert(1, Waker::noop().clone());
    queue.sleep(asleep(2, 0..5, 1000), &mut wakeups);
    queue.holders_left([1000], &mut wakeups);
    let ends = queue.places.first_alarm().expect("2 waits for it");
    // Reservations pause.
    queue.paused_until = u64::MAX;
    let awake = Entry {
        stage: Stage::Awake,
        reserved: Some(Instant::now()),
        ..task
    };
    assert!(queue.reserve(awake).is_some());
    assert_eq!(queue.places.first_alarm(), Some(ends));
    queue.alarm.set(ends);
    queue.ring(ends, &mut wakeups);
    assert_eq!(stage(&queue, 1), Stage::Idle);
    assert_eq!(stage(&queue, 2), Stage::Awake);
}

/// A task may never be polled, and says nothing about processors.
#[test]
fn threads_that_were_woken_are_idle_until_they_go_on() {
    let mut queue = without_spare();
    let mut wakeups = Wakeups::default();
    let task = Sleeper::Task {
        waker: WakerId::numbered(1),
        deadline: None,
    };
    for (id, sleeper) in [(1, Some(task)), (2, None), (3, None)] {
        let thread = asleep(id, id..id + 1, id as HolderId);
        let sleeper = sleeper.unwrap_or(thread.sleeper);
        queue.sleep(Entry { sleeper, ..thread }, &mut wakeups);
    }
    queue.wakers.insert(1, Waker::noop().clone());
    queue.holders_left([1], &mut wakeups);
    assert_eq!(queue.places.idle_since(), None);
    let before = clock::nanoseconds();
    queue.holders_left([2], &mut wakeups);
    let first = queue.places.idle_since().expect("one is to go on");
    assert!(first >= before);
    queue.holders_left([3], &mut wakeups);
    assert_eq!(queue.places.idle_since(), Some(first), "nor has the other");
    queue.granted(2, &mut wakeups, |_| 4);
    assert!(queue.places.idle_since() >= Some(first), "one has gone on");
    queue.gave_up(3, &mut wakeups);
    assert_eq!(queue.places.idle_since(), None);
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
        queue.holders_left([holders[at]], &mut wakeups);
        queue.holders_left([holders[other]], &mut wakeups);
        // Woken, the newcomer asks for admission.
        let now = Instant::now();
        let ahead = queue.reservation_ahead_of(Some(next), &newcomer.request, now, |_| false);
        if let Some(stage) = ahead.map(|(first, ends)| Stage::GivingWay(first.id, ends)) {
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
        let mut queue = without_spare();
        let mut wakeups = Wakeups::default();
        let first = Entry {
            due,
            ..asleep(1, 0..2, 1000)
        };
        queue.sleep(first, &mut wakeups);
        queue.sleep(asleep(2, 1..2, 2000), &mut wakeups);
        queue.holders_left([2000], &mut wakeups);
        queue.holders_left([1000], &mut wakeups);
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
    queue.granted(1, &mut Wakeups::default(), |_| {
        unreachable!("nobody is behind it")
    });
    assert_eq!(queue.reservations(), 0);
}

/// After its turn it tries for its range, whatever is in force. Once it has slept again it gives way again.
#[test]
fn who_has_given_way_tries_first() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    queue.sleep(asleep(1, 0..2, 1000), &mut wakeups);
    let since = Instant::now();
    queue.places.change(1, |entry| entry.reserved = Some(since));
    let second = asleep(2, 0..2, 1000);
    let ahead = |queue: &Queue| {
        let ahead = queue.reservation_ahead_of(Some(2), &second.request, since, |_| false);
        ahead.map(|(first, ends)| Stage::GivingWay(first.id, ends))
    };
    let stage = ahead(&queue).expect("it gives way");
    queue.sleep(Entry { stage, ..second }, &mut wakeups);
    queue.turn_ended(2);
    assert_eq!(ahead(&queue), None);
    queue.sleep(second, &mut wakeups);
    assert_eq!(ahead(&queue), Some(stage));
}

fn stage(queue: &Queue, id: RequestId) -> Stage {
    queue.places.stage(id)
}

/// A request gives way to the first reservation in its way that is in force. In the second turn only newcomers do.
#[test]
fn each_reservation_has_turns_of_its_own() {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let mut wakeups = Wakeups::default();
    let begin = Instant::now();
    let after = |halves: u32| begin.checked_add(Duration::from_millis(5) * halves);
    // In force, in force for newcomers, and suspended, by halves of a first turn.
    for (id, range, halves) in [(1, 0..2, 4), (2, 4..6, 2), (3, 8..10, 0)] {
        queue.sleep(asleep(id, range, 1000), &mut wakeups);
        queue
            .places
            .change(id, |entry| entry.reserved = after(halves));
    }
    let ahead = |id: Option<RequestId>, range: Range<u64>| {
        let request = asleep(9, range, 1000).request;
        let now = after(5).expect("it is soon");
        let ahead = queue.reservation_ahead_of(id, &request, now, |_| false);
        ahead.map(|(first, _)| first.id)
    };
    for (range, newcomer, queued) in [
        (2..4, None, None),
        (1..2, Some(1), Some(1)),
        (5..6, Some(2), None),
        (9..10, None, None),
        (0..10, Some(1), Some(1)),
        (5..10, Some(2), None),
    ] {
        assert_eq!(ahead(None, range.clone()), newcomer, "{range:?}");
        assert_eq!(ahead(Some(9), range.clone()), queued, "{range:?}");
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
    let mut queue = without_spare();
    let mut wakeups = Wakeups::default();
    for id in 1..4 {
        queue.sleep(asleep(id, 0..2, 1000), &mut wakeups);
    }
    queue.holders_left([1000], &mut wakeups);
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
    queue.holders_left([2000], &mut wakeups);
    assert_eq!(stage(&queue, 1), Stage::Awake, "it keeps its place");
    queue.gave_up(1, &mut wakeups);
    assert_eq!(stage(&queue, 2), Stage::Awake);
    assert_eq!(stage(&queue, 4), Stage::BehindRequest(2));
}

/// The first in a line reserves for all, and the next inherits what it has.
#[test]
fn the_next_in_line_inherits_the_reservation() {
    let mut queue = without_spare();
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
    queue.holders_left([1000], &mut wakeups);
    assert_eq!(queue.places.of(2).reserved, Some(since));
    queue.granted(1, &mut wakeups, |_| 2000);
    assert_eq!(queue.reservations(), 1);
}

/// It would be given to all that have asked, and newcomers would give way to a task that may never be polled.
#[test]
fn a_task_that_is_not_polled_in_its_turn_does_not_get_what_it_has_asked_for() {
    let patience = Patience::of(Fairness::After(Duration::from_secs(3600)));
    let mut queue = without_spare();
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
    queue.holders_left([2000], &mut wakeups);
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
