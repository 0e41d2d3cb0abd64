//! What a departure costs, by how many wait.

use super::*;

/// What it costs to wake the next one, in requests that a dispatch looks at, among so many that want these ranges.
fn looks_each(requests: &[Request], task: impl Fn(RequestId) -> Sleeper) -> usize {
    let mut queue = Queue::new(QueueOrder::Positions, None);
    let everything = Request::new(Span::ALL, Mode::Exclusive, 1);
    let mut holder = 1;
    let mut wakeups = Wakeups::default();
    for &request in requests {
        let id = queue.new_id();
        let sleeper = task(id);
        if let Sleeper::Task { .. } = sleeper {
            queue.wakers.insert(id, Waker::noop().clone());
        }
        let entry = Entry {
            request,
            sleeper,
            due: None,
            behind: everything,
            ..asleep(id, 0..1, holder)
        };
        queue.sleep(entry, &mut wakeups);
    }
    queue.looks = 0;
    queue.holders_left([holder], &mut wakeups);
    let (mut left, mut most) = (requests.len(), queue.looks);
    while left > 0 {
        let awake = |entry: &&Entry| entry.stage == Stage::Awake;
        let awake: Vec<_> = queue
            .places
            .all()
            .filter(awake)
            .map(|entry| entry.id)
            .take(100)
            .collect();
        for id in awake {
            holder += 1;
            queue.granted(id, &mut wakeups, |_| holder);
            queue.looks = 0;
            queue.holders_left([holder], &mut wakeups);
            most = most.max(queue.looks);
            left -= 1;
        }
        if left + 50 < requests.len() {
            break; // The rest is as these.
        }
    }
    most
}

/// Whom a departure wakes is found without a look at those who wait for the same, or for something else.
#[test]
fn ten_thousand_cost_what_ten_do() {
    let task = |id: RequestId| Sleeper::Task {
        waker: WakerId::numbered(id),
        deadline: None,
    };
    let alone = |range: Range<u64>| Request::new(Span::of(range).unwrap(), Mode::Exclusive, 1);
    for many in [10, 10_000] {
        let same: Vec<_> = (0..many).map(|_| alone(0..10)).collect();
        // The first is woken, and one to spare, and the third is put behind the first with the rest.
        assert_eq!(looks_each(&same, task), 3, "{many} want one range");
        let five: Vec<_> = (0..many)
            .map(|id| alone(id % 5 * 10..id % 5 * 10 + 10))
            .collect();
        assert!(looks_each(&five, task) <= 11, "{many} want five ranges");
    }
}

/// A departure looks at each of those who slept behind the holder, if they want different ranges.
#[test]
fn a_holder_of_all_wakes_those_who_want_different_ranges() {
    let alone = |at: u64| Request::new(Span::of(at..at + 1).unwrap(), Mode::Exclusive, 1);
    let all: Vec<_> = (0..100).map(alone).collect();
    let thread = |_| Sleeper::Thread(Box::leak(Box::default()));
    assert_eq!(looks_each(&all, thread), 100);
}
