//! A clock and a timer that run while the machine is suspended, as a lease does.
//!
//! `Instant`, and so the timers of tokio, stop in suspend: a machine that wakes after an hour would believe for another
//! ttl that it holds what others have had since.

use rustix::fd::OwnedFd;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A moment, as the time since the machine was started.
pub(crate) type Moment = Duration;

/// The moment that it is.
pub(crate) fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    // Neither is negative.
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Wakes futures at moments, by one timer of the kernel.
pub(crate) struct Alarms {
    timer: AsyncFd<OwnedFd>,
    next: Cell<u64>,
    set: RefCell<BTreeMap<(Moment, u64), Waker>>,
}

impl Alarms {
    /// Within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the descriptor is owned, so it is open and the same until it is dropped.
        let timer = unsafe { AsyncFd::register(timer) }?;
        Ok(Self {
            timer,
            next: Cell::new(0),
            set: RefCell::default(),
        })
    }

    /// Ends at the moment, or soon after it, while [`run`](Self::run) is polled.
    pub(crate) async fn until(&self, moment: Moment) {
        let number = self.next.replace(self.next.get() + 1);
        let key = (moment, number);
        let alarm = Alarm { alarms: self, key };
        poll_fn(|context| {
            if now() >= moment {
                return Poll::Ready(());
            }
            self.set.borrow_mut().insert(key, context.waker().clone());
            self.arm();
            Poll::Pending
        })
        .await;
        drop(alarm);
    }

    /// Asks the kernel for the first alarm. A moment that has passed counts as well.
    fn arm(&self) {
        let Some(&(moment, _)) = self.set.borrow().keys().next() else {
            return;
        };
        // Zero would stop the timer.
        let nanoseconds = i64::from(moment.subsec_nanos()).max(1);
        let it_value = Timespec {
            tv_sec: i64::try_from(moment.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: nanoseconds,
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value,
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)
            .expect("the timer is open");
    }

    /// Wakes whom it is time to wake. It does not end.
    pub(crate) async fn run(&self) {
        loop {
            let mut ready = self.timer.readable().await.expect("the runtime runs");
            // How often it has rung does not matter.
            let _ = rustix::io::read(self.timer.get_ref(), &mut [0; 8]);
            ready.clear_ready();
            let later = self.set.borrow_mut().split_off(&(now(), u64::MAX));
            for waker in self.set.replace(later).into_values() {
                waker.wake();
            }
            self.arm();
        }
    }
}

/// Takes an alarm back when its future is dropped.
struct Alarm<'a> {
    alarms: &'a Alarms,
    key: (Moment, u64),
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.alarms.set.borrow_mut().remove(&self.key);
    }
}
