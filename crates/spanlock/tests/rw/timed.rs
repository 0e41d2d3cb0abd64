//! Acquisitions that may give up.

use super::*;

for_every_lock! {
    {
        a_timed_acquisition_is_granted_when_the_lock_is_left,
        a_timed_acquisition_gives_up,
        a_timed_acquisition_of_a_free_lock_is_granted_at_any_deadline,
        a_writer_that_gives_up_stops_nobody,
    }
}

fn a_timed_acquisition_gives_up<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLockTimed<Instant = Instant, Duration = Duration> + Sync,
{
    let reading = lock.read();
    elsewhere(|| {
        assert!(lock.try_write_for(SHORT).is_none());
        assert!(lock.try_write_until(Instant::now() + SHORT).is_none());
    });
    drop(reading);
    let writing = lock.write();
    elsewhere(|| {
        assert!(lock.try_write_for(SHORT).is_none());
        assert!(lock.try_read_for(SHORT).is_none());
        assert!(lock.try_read_until(Instant::now() + SHORT).is_none());
    });
    drop(writing);
}

fn a_timed_acquisition_is_granted_when_the_lock_is_left<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLockTimed<Instant = Instant, Duration = Duration> + Sync,
{
    for round in 0..20 {
        thread::scope(|scope| {
            let reading = lock.read();
            let writer = scope.spawn(|| lock.try_write_for(HANG).map(|mut value| *value += 1));
            linger(round);
            drop(reading);
            writer.join().unwrap().expect("it was left in time");
        });
        thread::scope(|scope| {
            let writing = lock.write();
            let reader = scope.spawn(|| lock.try_read_for(HANG).map(|value| *value));
            let writer = scope.spawn(|| lock.try_write_for(HANG).map(|mut value| *value += 1));
            linger(round);
            drop(writing);
            let seen = reader.join().unwrap().expect("it was left in time");
            assert!((2 * round + 1..=2 * round + 2).contains(&seen));
            writer.join().unwrap().expect("it was left in time");
        });
    }
    assert_eq!(*lock.read(), 40);
}

fn a_timed_acquisition_of_a_free_lock_is_granted_at_any_deadline<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLockTimed<Instant = Instant, Duration = Duration>,
{
    for timeout in [Duration::ZERO, SHORT, Duration::MAX] {
        drop(lock.try_read_for(timeout).expect("free"));
        drop(lock.try_write_for(timeout).expect("free"));
    }
    drop(lock.try_read_until(Instant::now()).expect("free"));
    drop(lock.try_write_until(Instant::now()).expect("free"));
}

fn a_writer_that_gives_up_stops_nobody<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLockTimed<Instant = Instant, Duration = Duration> + Sync,
{
    let reading = lock.read();
    for _ in 0..10 {
        assert!(elsewhere(|| lock.try_write_for(SHORT).is_none()));
    }
    drop(reading);
    assert!(elsewhere(|| lock.try_read().is_some()));
    assert!(elsewhere(|| lock.try_write().is_some()));
}
