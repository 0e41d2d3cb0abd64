//! A small executor: workers poll the tasks that were woken, first come first.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// A waker that counts how often it is woken.
#[derive(Default)]
pub struct Count(pub AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    pub fn woken(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Polls a future once.
pub fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    body: Mutex<Option<Body>>,
    ready: Arc<Ready>,
}

#[derive(Default)]
struct Ready {
    tasks: Mutex<VecDeque<Arc<Task>>>,
    changed: Condvar,
    unfinished: AtomicUsize,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let ready = Arc::clone(&self.ready);
        ready.tasks.lock().unwrap().push_back(self);
        ready.changed.notify_one();
    }
}

/// Tasks and the workers that poll them.
#[derive(Default)]
pub struct Pool(Arc<Ready>);

impl Pool {
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.unfinished.fetch_add(1, Ordering::SeqCst);
        let task = Arc::new(Task {
            body: Mutex::new(Some(Box::pin(future))),
            ready: Arc::clone(&self.0),
        });
        task.wake();
    }

    /// Polls tasks, as one of the workers, until all have ended.
    pub fn work(&self) {
        while self.0.unfinished.load(Ordering::SeqCst) > 0 {
            let mut tasks = self.0.tasks.lock().unwrap();
            let task = loop {
                if let Some(task) = tasks.pop_front() {
                    break task;
                }
                if self.0.unfinished.load(Ordering::SeqCst) == 0 {
                    return;
                }
                tasks = self.0.changed.wait(tasks).unwrap();
            };
            drop(tasks);
            let waker = Waker::from(Arc::clone(&task));
            let mut body = task.body.lock().unwrap();
            let is_over = body.as_mut().is_some_and(|body| {
                let polled = body.as_mut().poll(&mut Context::from_waker(&waker));
                polled.is_ready()
            });
            if is_over {
                *body = None;
                let tasks = self.0.tasks.lock().unwrap();
                self.0.unfinished.fetch_sub(1, Ordering::SeqCst);
                self.0.changed.notify_all();
                drop(tasks);
            }
        }
    }

    /// Works with so many threads.
    pub fn run(self, workers: usize) {
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| self.work());
            }
        });
    }
}
