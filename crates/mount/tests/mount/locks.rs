//! `fcntl` locks of mounted files. Open files own locks here (`F_OFD_SETLK`), so that one process has several owners.

use crate::common::{fcntl, flock, on_mount};
use libc::{F_RDLCK, F_UNLCK, F_WRLCK, c_int};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

const ALL: (i64, i64) = (0, 0);

fn try_lock(file: &File, kind: c_int, range: (i64, i64)) -> bool {
    let tried = fcntl(file, libc::F_OFD_SETLK, &mut flock(kind, range));
    match tried {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(libc::EAGAIN), "{error}");
            false
        }
    }
}

fn wait_lock(file: &File, kind: c_int, range: (i64, i64)) -> io::Result<()> {
    fcntl(file, libc::F_OFD_SETLKW, &mut flock(kind, range))
}

/// What is in the way: its kind, and its range.
fn in_the_way(file: &File, kind: c_int, range: (i64, i64)) -> (c_int, i64, i64) {
    let mut lock = flock(kind, range);
    fcntl(file, libc::F_OFD_GETLK, &mut lock).expect("a question");
    (c_int::from(lock.l_type), lock.l_start, lock.l_len)
}

fn open(mount: &Path) -> File {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(mount.join("locked")).expect("room")
}

#[test]
fn locks_conflict_split_and_end_with_the_open_file() {
    on_mount(
        4 << 20,
        |mount| {
            let (a, b) = (open(mount), open(mount));
            assert!(try_lock(&a, F_WRLCK, (10, 20)));
            assert!(!try_lock(&b, F_RDLCK, (29, 1)) && try_lock(&b, F_RDLCK, (30, 1)));
            assert_eq!(in_the_way(&b, F_RDLCK, ALL), (F_WRLCK, 10, 20));
            // In the middle, which splits it; then shared at its end.
            assert!(try_lock(&a, F_UNLCK, (15, 5)) && try_lock(&b, F_WRLCK, (15, 5)));
            assert!(try_lock(&a, F_RDLCK, (25, 5)) && try_lock(&b, F_RDLCK, (26, 2)));
            assert_eq!(in_the_way(&b, F_WRLCK, (20, 100)), (F_WRLCK, 20, 5));
            assert!(!try_lock(&a, F_WRLCK, (25, 5)), "b shares it");
            assert!(try_lock(&a, F_RDLCK, (25, 5)), "what it had, it keeps");
            assert_eq!(in_the_way(&a, F_WRLCK, (100, 0)), (F_UNLCK, 100, 0));
            drop(a);
            // A process that another test is starting has the file open for a moment, too.
            while !try_lock(&b, F_WRLCK, ALL) {
                thread::yield_now();
            }
        },
        |_| (),
    );
}

#[test]
fn a_waiting_lock_is_granted_after_the_release() {
    on_mount(
        4 << 20,
        |mount| {
            let holder = open(mount);
            assert!(try_lock(&holder, F_WRLCK, (0, 100)));
            let (granted, grants) = mpsc::channel();
            thread::scope(|scope| {
                for number in 0..6 {
                    let (file, granted) = (open(mount), granted.clone());
                    scope.spawn(move || {
                        wait_lock(&file, F_WRLCK, (number * 10, 15)).expect("granted");
                        granted.send(number).expect("the test waits");
                    });
                }
                // More wait than the server has threads: it still serves this.
                for number in 0..6 {
                    holder.metadata().expect("served");
                    assert!(grants.try_recv().is_err(), "nothing was released before");
                    if number == 5 {
                        assert!(try_lock(&holder, F_UNLCK, (0, 100)));
                    }
                }
                let mut all: Vec<_> = (0..6).map(|_| grants.recv().expect("granted")).collect();
                all.sort_unstable();
                assert_eq!(all, [0, 1, 2, 3, 4, 5]);
            });
        },
        |_| (),
    );
}

#[test]
fn a_deadlock_is_refused() {
    on_mount(
        4 << 20,
        |mount| {
            let (a, b) = (open(mount), open(mount));
            assert!(try_lock(&a, F_WRLCK, (0, 1)) && try_lock(&b, F_WRLCK, (1, 1)));
            thread::scope(|scope| {
                let crossing = [
                    scope.spawn(|| wait_or_yield(&a, (1, 1))),
                    scope.spawn(|| wait_or_yield(&b, (0, 1))),
                ];
                let ended = crossing.map(|thread| thread.join().expect("no panic"));
                assert_eq!(
                    ended.iter().filter(|ended| ended.is_err()).count(),
                    1,
                    "{ended:?}"
                );
            });
        },
        |_| (),
    );
}

/// Waits for a lock. Who is refused releases all that it has, so that the other one comes to an end.
fn wait_or_yield(file: &File, range: (i64, i64)) -> io::Result<()> {
    let waited = wait_lock(file, F_WRLCK, range);
    if let Err(error) = &waited {
        assert_eq!(error.raw_os_error(), Some(libc::EDEADLK), "{error}");
        assert!(try_lock(file, F_UNLCK, ALL));
    }
    waited
}

#[test]
fn a_signal_ends_a_wait() {
    extern "C" fn nothing(_: c_int) {}
    on_mount(
        4 << 20,
        |mount| {
            let handler = nothing as extern "C" fn(c_int);
            // SAFETY: all zeros is a set of flags, a mask and a handler.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handler as libc::sighandler_t; // Without SA_RESTART: the call ends.
            // SAFETY: the action is live, and the handler does nothing.
            let set = unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
            assert_eq!(set, 0);
            let (holder, waiter) = (open(mount), open(mount));
            assert!(try_lock(&holder, F_WRLCK, ALL));
            thread::scope(|scope| {
                let (told, thread_of) = mpsc::channel();
                let waiting = scope.spawn(move || {
                    // SAFETY: it has no conditions.
                    told.send(unsafe { libc::pthread_self() })
                        .expect("the test waits");
                    wait_lock(&waiter, F_WRLCK, ALL)
                });
                let thread = thread_of.recv().expect("it has begun");
                // One that comes before the wait begins is lost, so there are several.
                while !waiting.is_finished() {
                    // SAFETY: the thread has not been joined.
                    unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
                    thread::yield_now();
                }
                let error = waiting
                    .join()
                    .expect("no panic")
                    .expect_err("nobody has released it");
                assert_eq!(error.raw_os_error(), Some(libc::EINTR), "{error}");
            });
        },
        |_| (),
    );
}

#[test]
fn a_process_loses_its_locks_when_it_closes_any_of_its_files() {
    on_mount(
        4 << 20,
        |mount| {
            let (mine, also_mine, other) = (open(mount), open(mount), open(mount));
            fcntl(&mine, libc::F_SETLK, &mut flock(F_WRLCK, (5, 5))).expect("free");
            fcntl(&also_mine, libc::F_SETLK, &mut flock(F_WRLCK, (7, 1))).expect("the same owner");
            assert!(!try_lock(&other, F_RDLCK, ALL));
            let mut lock = flock(F_WRLCK, ALL);
            fcntl(&other, libc::F_OFD_GETLK, &mut lock).expect("a question");
            assert_eq!((lock.l_start, lock.l_len), (5, 5));
            drop(also_mine);
            assert!(try_lock(&other, F_WRLCK, ALL));
            drop(mine);
        },
        |_| (),
    );
}
