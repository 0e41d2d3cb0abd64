//! With the feature `send_guard`: guards go to other threads.

use super::*;

for_each! {
    [
        futex: FutexRwLock::<WritersFirst>::new(),
        futex_readers_first: FutexRwLock::<ReadersFirst>::new(),
        ticket: PhaseFairTicket::new(),
        queue: PhaseFairQueue::new(),
        cohort: CohortRwLock::<2>::new(),
        per_cpu: PerCpu::<FutexRwLock, 4>::new(),
        mutex: MutexRwLock::from_mutex(FutexMutex::new()),
        bravo_adaptive: bravo::<FutexRwLock>(Bias::Adaptive),
        bravo_eager: bravo::<FutexRwLock>(Bias::Eager),
        bravo_off: bravo::<FutexRwLock>(Bias::Off),
        bravo_ticket: bravo::<PhaseFairTicket>(Bias::Eager),
        bravo_queue: bravo::<PhaseFairQueue>(Bias::Eager),
        bravo_cohort: bravo::<CohortRwLock<2>>(Bias::Eager),
        bravo_per_cpu: bravo::<PerCpu<FutexRwLock, 4>>(Bias::Eager),
        bravo_mutex: bravo::<MutexRwLock<FutexMutex>>(Bias::Eager),
    ]
    {
        a_guard_may_be_dropped_elsewhere,
        who_sent_a_guard_away_may_wait_for_it,
    }
}

fn a_guard_may_be_dropped_elsewhere<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLock<SharedGuard: Send, ExclusiveGuard: Send> + Sync,
{
    for _ in 0..10 {
        let reading = lock.read();
        elsewhere(move || drop(reading));
        let writing = lock.write();
        elsewhere(move || drop(writing));
    }
    assert!(lock.try_write().is_some());
}

/// A thread waits for what it acquired and another holds now: it does not wait for itself.
fn who_sent_a_guard_away_may_wait_for_it<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLock<SharedGuard: Send, ExclusiveGuard: Send> + Sync,
{
    for round in 0..10 {
        thread::scope(|scope| {
            let writing = lock.write();
            scope.spawn(move || {
                linger(round);
                drop(writing);
            });
            drop(lock.write());
            let reading = lock.read();
            scope.spawn(move || {
                linger(round);
                drop(reading);
            });
            drop(lock.write());
        });
    }
}
