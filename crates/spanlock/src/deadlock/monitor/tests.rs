//! What looks remember, and what they do with foreign code.

use super::{
    Found, Idle, Key, NotPolled, Remembered, Report, Seen, Wait, Watched, forget, look, new_number,
    watch,
};
use crate::deadlock::{Answer, Deadlock, Detection, HeldRange, on_report};
use crate::range::id::OwnerId;
use crate::range::mode::Mode;
use crate::range::span::Span;
use prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use prim::clock::{Duration, Instant};
use prim::sync::{Arc, Mutex};
use std::fmt;
use std::panic::Location;

/// A queue whose lock is dropped while a look reads it.
struct Dropped {
    number: u64,
    /// Itself, until then.
    lock: Mutex<Option<Arc<Dropped>>>,
    is_gone: Arc<AtomicBool>,
}

impl Watched for Dropped {
    fn number(&self) -> u64 {
        self.number
    }

    fn detection(&self) -> Detection {
        Detection {
            every: Duration::from_millis(1),
            answer: Answer::Report,
        }
    }

    fn look(self: Arc<Self>, _: &mut Seen) -> bool {
        let lock = self.lock.lock().take();
        drop(lock);
        true
    }

    fn refuse(self: Arc<Self>, _: u64, _: &Wait, _: &Deadlock) {}

    fn describe(&self, _: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        forget(self.number);
        self.is_gone.store(true, Ordering::Release);
    }
}

/// It forgets the queue after it has released its own mutex: otherwise this test does not end.
#[test]
fn a_look_may_be_the_last_that_knows_a_queue() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let queue = Arc::new(Dropped {
        number: new_number(),
        lock: Mutex::new(None),
        is_gone: Arc::clone(&is_gone),
    });
    *queue.lock.lock() = Some(Arc::clone(&queue));
    watch(&queue, queue.detection());
    drop(queue);
    while !is_gone.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

/// Each report is told once, so no other may be lost with one.
#[test]
fn a_report_that_nobody_can_print_takes_no_other_along() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    on_report(move |report| {
        // Of no lock that there is.
        if matches!(report, Report::NotPolled(task) if task.lock == 0) {
            count.fetch_add(1, Ordering::Relaxed);
            panic!("it cannot be printed");
        }
    });
    let task = not_polled(Duration::ZERO);
    let found = Found {
        reports: vec![Report::NotPolled(task); 2],
        ..Found::default()
    };
    found.tell(&[]);
    assert_eq!(told.load(Ordering::Relaxed), 2);
}

const PERIOD: Duration = Duration::from_secs(1);

fn not_polled(at_least: Duration) -> NotPolled {
    NotPolled {
        owner: OwnerId::from(1),
        lock: 0,
        span: Span::ALL,
        keys: None,
        mode: Mode::Shared,
        place: Location::caller(),
        at_least,
    }
}

/// A queue with those who are said to wait in it.
struct Said {
    number: u64,
    answer: Answer,
    waits: Mutex<Vec<Wait>>,
    /// Since when a task has not been polled.
    idle: Mutex<Option<Instant>>,
}

impl Watched for Said {
    fn number(&self) -> u64 {
        self.number
    }

    fn detection(&self) -> Detection {
        Detection {
            every: PERIOD,
            answer: self.answer,
        }
    }

    fn look(self: Arc<Self>, seen: &mut Seen) -> bool {
        seen.waits.extend(self.waits.lock().iter().cloned());
        seen.idle.extend(self.idle.lock().map(|since| Idle {
            key: Key::Request(self.number, 0),
            since,
            what: not_polled(PERIOD),
        }));
        true
    }

    fn refuse(self: Arc<Self>, _: u64, _: &Wait, _: &Deadlock) {}

    fn describe(&self, _: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }
}

/// Somebody looks at a queue.
struct Looks {
    remembered: Remembered,
    queue: Arc<Said>,
}

impl Looks {
    fn that(answer: Answer) -> Self {
        Self {
            remembered: Remembered::new(0),
            queue: Arc::new(Said {
                number: new_number(),
                answer,
                waits: Mutex::new(Vec::new()),
                idle: Mutex::new(None),
            }),
        }
    }

    fn look(&mut self) -> Found {
        let queue = Arc::clone(&self.queue);
        look(&mut self.remembered, &[queue], Instant::now())
    }

    /// These owners wait, each with one request, for the next of the pair. Returns who is refused, or is the first of a
    /// ring that is told, at the second look of two and at a third.
    fn found(&mut self, waits: &[(u32, u32)]) -> [Vec<u32>; 2] {
        let wait = |&(owner, next): &(u32, u32)| Wait {
            key: Key::Request(self.queue.number, u64::from(owner)),
            owner: OwnerId::of_owner(owner),
            thread: None,
            lock: 0,
            span: Span::ALL,
            keys: None,
            mode: Mode::Exclusive,
            at: Location::caller(),
            behind: vec![(
                OwnerId::of_owner(next),
                HeldRange::new(Span::ALL, Mode::Exclusive, None),
            )],
        };
        *self.queue.waits.lock() = waits.iter().map(wait).collect();
        self.look();
        [self.look(), self.look()].map(|found| {
            let refused = found.refusals.iter().map(|(wait, _)| wait.owner);
            let told = found.reports.iter().map(|report| match report {
                Report::Deadlock(ring) => ring.steps[0].owner,
                Report::OwnRange(step) => step.owner,
                Report::NotPolled(_) => panic!("{report}"),
            });
            let numbers = refused.chain(told).map(|owner| owner.number());
            let number = |number| number - OwnerId::of_owner(0).number();
            numbers.map(number).collect()
        })
    }
}

/// 1 and 2 are each part of a ring. Their requests wait on when that is broken, and then for each other.
#[test]
fn a_ring_of_requests_that_were_part_of_others() {
    for (answer, [first, second]) in [
        (Answer::Report, [vec![1, 2], vec![1]]),
        (Answer::Refuse, [vec![3, 4], vec![2]]),
    ] {
        let mut looks = Looks::that(answer);
        let rings = [(1, 3), (3, 1), (2, 4), (4, 2)];
        assert_eq!(looks.found(&rings)[0], first);
        assert_eq!(looks.found(&[(1, 2), (2, 1)])[0], second);
        // The same pair once more, after somebody else was in the way of one of them.
        assert!(looks.found(&[(1, 5), (2, 1)])[0].is_empty());
        assert_eq!(looks.found(&[(1, 2), (2, 1)])[0], second);
    }
}

/// A ring is told once. A refusal is repeated while the request waits like that: it was awake when it was refused.
#[test]
fn a_ring_that_lasts() {
    let ring = [(1, 2), (2, 3), (3, 1)];
    assert_eq!(
        Looks::that(Answer::Report).found(&ring),
        [vec![1], Vec::new()]
    );
    let mut looks = Looks::that(Answer::Refuse);
    assert_eq!(looks.found(&ring), [[3], [3]]);
    // Another one of those in the ring is in a second one.
    let mut looks = Looks::that(Answer::Report);
    assert_eq!(looks.found(&ring)[0], [1]);
    assert!(looks.found(&[(1, 2), (2, 3), (3, 1), (4, 3)])[0].is_empty());
    assert_eq!(looks.found(&[(1, 2), (2, 4), (4, 1), (3, 1)])[0], [1]);
}

/// An owner that waits for itself is told once, and not refused: another of its tasks may release that.
#[test]
fn an_owner_that_waits_for_itself() {
    for answer in [Answer::Report, Answer::Refuse] {
        let mut looks = Looks::that(answer);
        assert_eq!(looks.found(&[(1, 1)]), [vec![1], Vec::new()]);
        assert!(looks.look().refusals.is_empty());
    }
}

/// A task that is not polled is told once. When it was polled, and woken once more, it is told once more.
#[test]
fn a_task_that_is_woken_again() {
    let mut looks = Looks::that(Answer::Report);
    let first = Instant::now();
    for woken in [first, first + PERIOD] {
        *looks.queue.idle.lock() = Some(woken);
        assert_eq!(
            [looks.look(), looks.look()].map(|found| found.reports.len()),
            [1, 0]
        );
    }
}
