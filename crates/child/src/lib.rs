//! A program as a child of this process, which has something to do when it ends.
//!
//! Who started this process knows this process only, so it stands for the program:
//!
//! - All signals are blocked and waited for, and those that are meant for the program are sent to it. A terminal
//!   signals the whole process group, so the program already has what came from there. What another process sends
//!   to the whole group cannot be distinguished from what it sends to this process alone: the program gets that twice.
//! - When job control stops the program, this process stops as well, so that a shell notices.
//! - When this process is killed, the kernel kills the program.
//! - It may wait for what the program has left, too. Then it stands for these processes when the program has ended.

#![cfg(target_os = "linux")]

pub mod signals;

use libc::{c_int, pid_t, siginfo_t, sigset_t};
use rustix::process::{
    Signal, getpid, getppid, getsid, set_parent_process_death_signal as set_death_signal,
};
use signals::{set_mask, set_of};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::ptr;

/// Starts a program and waits until it has ended, and until nothing is left of what it started, as far as `left` tells:
/// the program's number, and its status. Signals for this process go to the program meanwhile, and then to what it has
/// left, if all threads of this process block them.
///
/// What is left has to notify this process when it ends. (`SIGCHLD`)
///
/// # Errors
/// When the program cannot be started, or the system does not say how it ended.
pub fn wait_for(
    mut command: Command,
    left: impl Fn() -> Vec<pid_t>,
) -> io::Result<(u32, ExitStatus)> {
    // Before the program starts, so that no signal is missed.
    let signals = Signals::block();
    let (mask, on_child) = (signals.mask_before, signals.on_child_before);
    let parent = getpid();
    let prepare = move || {
        set_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // This process was gone before the kernel was asked, so nobody would kill the program.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // SAFETY: what the disposition was before `Signals::block`.
        unsafe { libc::signal(libc::SIGCHLD, on_child) };
        set_mask(libc::SIG_SETMASK, &mask);
        Ok(())
    };
    // SAFETY: it makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let process = command.spawn()?.id();
    let child = pid_t::try_from(process).expect("the kernel's ids are positive");
    let send = |to: pid_t, signal: c_int| {
        // SAFETY: `kill` takes numbers only.
        unsafe { libc::kill(to, signal) };
    };
    let mut ended = None;
    loop {
        let arrived = signals.next();
        if arrived.si_signo == libc::SIGCHLD {
            ended = ended.or(follow(child)?);
            if let Some(status) = ended
                && left().is_empty()
            {
                return Ok((process, status));
            }
        } else if is_for_program(&arrived, child) {
            match ended {
                // It has not been waited for, so the number is still its own.
                None => send(child, arrived.si_signo),
                Some(_) => left().into_iter().for_each(|it| send(it, arrived.si_signo)),
            }
        }
    }
}

/// The state of the program: its status, once it has ended. Stops this process if the program was stopped. Forgets the
/// other children that have ended.
fn follow(child: pid_t) -> io::Result<Option<ExitStatus>> {
    let mut ended = None;
    loop {
        let mut status = 0;
        // SAFETY: `status` is live.
        let of = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
        match of {
            0 => return Ok(ended),
            -1 => {
                let why = io::Error::last_os_error();
                return match why.raw_os_error() {
                    Some(libc::ECHILD) => Ok(ended),
                    _ => Err(why),
                };
            }
            _ if of != child => {}
            _ if !libc::WIFSTOPPED(status) => ended = Some(ExitStatus::from_raw(status)),
            // Not `SIGSTOP`, by which debuggers stop the program alone.
            _ => {
                let signal = libc::WSTOPSIG(status);
                if [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal) {
                    stop_by(signal);
                }
            }
        }
    }
}

/// Stops this process, until it is continued.
///
/// A `SIGCONT` that has come meanwhile would be discarded by that: then it does not stop, and sends that on.
fn stop_by(signal: c_int) {
    if is_pending(libc::SIGCONT) {
        return;
    }
    let only = set_of(&[signal]);
    // SAFETY: `raise` takes a number. The signal is blocked, so it is delivered below.
    unsafe { libc::raise(signal) };
    set_mask(libc::SIG_UNBLOCK, &only);
    set_mask(libc::SIG_BLOCK, &only);
}

/// Whether the program is to get this signal, and has not got it already.
fn is_for_program(arrived: &siginfo_t, child: pid_t) -> bool {
    let is_kernels = arrived.si_code == libc::SI_KERNEL;
    // SAFETY: the kernel fills in the sender where the code says that a process has sent the signal.
    let is_programs = arrived.si_code <= 0 && unsafe { arrived.si_pid() } == child;
    let is_terminals = match arrived.si_signo {
        libc::SIGINT
        | libc::SIGQUIT
        | libc::SIGTSTP
        | libc::SIGTTIN
        | libc::SIGTTOU
        | libc::SIGWINCH => is_kernels,
        // A terminal that hangs up signals the leader of its session only.
        libc::SIGHUP | libc::SIGCONT => is_kernels && getsid(None) != Ok(getpid()),
        _ => false,
    };
    // What the program sends to its parent, or to its own group, is not for itself.
    !is_terminals && !is_programs
}

/// The program's own code, or what shells say of a signal.
#[must_use]
pub fn code(status: ExitStatus) -> ExitCode {
    let signal = || status.signal().map_or(1, |signal| 128 + signal);
    let code = status.code().unwrap_or_else(signal);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Starts threads that block all signals, so that this one decides about them.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let before = set_mask(libc::SIG_BLOCK, &all_signals());
    let started = start();
    set_mask(libc::SIG_SETMASK, &before);
    started
}

fn all_signals() -> sigset_t {
    let mut all = MaybeUninit::uninit();
    // SAFETY: it points to room for a set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: filled just above.
    unsafe { all.assume_init() }
}

/// Blocked signals, until this is dropped.
struct Signals {
    all: sigset_t,
    mask_before: sigset_t,
    on_child_before: libc::sighandler_t,
}

impl Signals {
    fn block() -> Self {
        let all = all_signals();
        Self {
            all,
            mask_before: set_mask(libc::SIG_BLOCK, &all),
            // A process that ignores it is not notified when a child ends, and does not get its status.
            // SAFETY: the default disposition runs no code.
            on_child_before: unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) },
        }
    }

    /// Waits for a signal.
    fn next(&self) -> siginfo_t {
        loop {
            let mut info = MaybeUninit::uninit();
            // SAFETY: both are live.
            if unsafe { libc::sigwaitinfo(&raw const self.all, info.as_mut_ptr()) } > 0 {
                // SAFETY: it has succeeded.
                return unsafe { info.assume_init() };
            }
        }
    }
}

impl Drop for Signals {
    /// A signal for the program that came too late is dropped.
    fn drop(&mut self) {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let taken = || {
            // SAFETY: the set and the time are live, and nobody asks about the signal.
            unsafe { libc::sigtimedwait(&raw const self.all, ptr::null_mut(), &raw const at_once) }
        };
        while taken() > 0 {}
        set_mask(libc::SIG_SETMASK, &self.mask_before);
    }
}

/// Whether a signal that is blocked has come.
fn is_pending(signal: c_int) -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: it writes to the place that it is given.
    let rc = unsafe { libc::sigpending(pending.as_mut_ptr()) };
    // SAFETY: written by the call, if that has succeeded; `sigismember` only reads it.
    rc == 0 && unsafe { libc::sigismember(pending.as_ptr(), signal) } == 1
}
