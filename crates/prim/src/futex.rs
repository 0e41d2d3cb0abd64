//! Futexes: a thread sleeps until a word changes, and another thread wakes it.

use crate::atomic::AtomicU32;
use crate::clock::Instant;

#[cfg(any(not(target_os = "linux"), test))]
mod fallback;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
use fallback as system;
#[cfg(target_os = "linux")]
use linux as system;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The word differed, a waker called, or the wake-up was spurious. The caller loads the word again.
    Recheck,
    /// The deadline passed.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, until woken or until `deadline`. It may return at any time.
///
/// No wake-up is lost if the waker changes the word first and then calls [`wake_all`].
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    system::wait(word, expected, deadline)
}

/// Wakes at least one of the threads that sleep on `word`. Returns whether one slept there; where the system does not
/// tell, `false`.
pub fn wake_one(word: &AtomicU32) -> bool {
    system::wake_one(word)
}

/// Wakes all threads that sleep on `word`. The memory may have been freed: only the address matters.
pub fn wake_all(word: &AtomicU32) {
    system::wake_all(word);
}

#[cfg(test)]
mod tests {
    use super::{Woken, fallback, system};
    use crate::atomic::{AtomicU32, Ordering};
    use crate::clock::{Duration, Instant};

    type Wake = fn(&AtomicU32);
    type Wait = fn(&AtomicU32, u32, Option<Instant>) -> Woken;
    const BOTH: [(Wait, Wake); 2] = [
        (system::wait, system::wake_all),
        (fallback::wait, fallback::wake_all),
    ];
    const EACH: [(Wait, Wake); 4] = [
        BOTH[0],
        BOTH[1],
        (system::wait, |word| _ = system::wake_one(word)),
        (fallback::wait, |word| _ = fallback::wake_one(word)),
    ];

    #[test]
    fn a_word_that_differs_does_not_wait() {
        for (wait, _) in BOTH {
            assert_eq!(wait(&AtomicU32::new(1), 0, None), Woken::Recheck);
        }
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        for (wait, _) in BOTH {
            let word = AtomicU32::new(0);
            let deadline = Instant::now() + Duration::from_millis(2);
            while wait(&word, 0, Some(deadline)) == Woken::Recheck {}
            assert!(Instant::now() >= deadline);
        }
    }

    #[test]
    fn a_deadline_in_the_past_times_out() {
        for (wait, _) in BOTH {
            let word = AtomicU32::new(0);
            assert_eq!(wait(&word, 0, Some(Instant::now())), Woken::TimedOut);
        }
    }

    #[test]
    fn a_deadline_too_far_for_32_bits_of_seconds_does_not_end_the_wait() {
        for (wait, wake) in BOTH {
            let word = &AtomicU32::new(0);
            // If the seconds were cut to their last 32 bits, a tenth of a second would remain.
            let deadline = Instant::now() + Duration::new(1 << 32, 100_000_000);
            let ends: Vec<Woken> = std::thread::scope(|scope| {
                let sleeper = scope.spawn(move || {
                    let mut ends = Vec::new();
                    while word.load(Ordering::Acquire) == 0 {
                        ends.push(wait(word, 0, Some(deadline)));
                    }
                    ends
                });
                std::thread::sleep(Duration::from_millis(200));
                word.store(1, Ordering::Release);
                wake(word);
                sleeper.join().unwrap()
            });
            assert!(!ends.contains(&Woken::TimedOut), "{ends:?}");
        }
    }

    #[test]
    fn a_change_followed_by_a_wake_is_never_lost() {
        for (wait, wake) in EACH {
            let word = &AtomicU32::new(0);
            std::thread::scope(|scope| {
                for round in 0..200 {
                    let sleeper = scope.spawn(move || {
                        while word.load(Ordering::Acquire) == round {
                            wait(word, round, None);
                        }
                    });
                    word.store(round + 1, Ordering::Release);
                    wake(word);
                    sleeper.join().unwrap();
                }
            });
        }
    }

    #[test]
    fn nobody_was_woken_where_nobody_sleeps() {
        let word = AtomicU32::new(0);
        assert!(!system::wake_one(&word) && !fallback::wake_one(&word));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_sleeps_was_woken() {
        let word = &AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while word.load(Ordering::Acquire) == 0 {
                    system::wait(word, 0, None);
                }
            });
            // It sleeps sooner or later.
            while !system::wake_one(word) {
                std::thread::yield_now();
            }
            word.store(1, Ordering::Release);
            system::wake_all(word);
        });
    }
}
