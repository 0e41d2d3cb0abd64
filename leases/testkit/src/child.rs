//! Processes that work under leases, as machines would.

use crate::server::Server;
use crate::store::{POSITIONS, Store};
use libc::{SIGCONT, SIGSTOP};
use spanlock_lease::{Fence, Mode, RangeLease, Span, Token};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

const ASKS: &str = "SPANLOCK_LEASE_CHILD";

/// A piece of the work between a read and a write.
const PIECE: Duration = Duration::from_millis(5);

/// A process, which is killed when it is dropped.
pub struct Child(process::Child);

impl Child {
    /// `hold` reads and never writes; a number works so often. `at` says how it reaches the leases.
    #[must_use]
    pub fn start(at: &str, store: &Store, role: &str, ttl: Duration) -> Self {
        let socket = store.socket.to_str().expect("it is text");
        let asks = [role, &ttl.as_millis().to_string(), socket, at].join("|");
        let own = env::current_exe().expect("a test has a file");
        Self(
            Command::new(own)
                .env(ASKS, asks)
                .spawn()
                .expect("it can be started"),
        )
    }

    fn signal(&self, signal: libc::c_int) {
        let pid = self.0.id().cast_signed();
        // SAFETY: the process was not waited for, so the number is its own.
        unsafe { libc::kill(pid, signal) };
    }

    /// It stands still.
    pub fn stop(&self) {
        self.signal(SIGSTOP);
    }

    /// It goes on.
    pub fn go_on(&self) {
        self.signal(SIGCONT);
    }

    /// It ends at once.
    pub fn kill(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }

    /// It ends by itself, and well.
    pub fn wait(&mut self) {
        assert!(self.0.wait().expect("it is ours").success());
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_some()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One that the store has stopped. It has not ended, so nobody has waited for it.
pub fn go_on(pid: libc::pid_t) {
    // SAFETY: it has no effect on this process.
    unsafe { libc::kill(pid, SIGCONT) };
}

/// Whether this process is one.
#[must_use]
pub fn is_asked_for() -> bool {
    env::var_os(ASKS).is_some()
}

/// What a client of a store has.
pub struct Client {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Client {
    /// Connects to a store.
    #[must_use]
    pub fn new(store: &str) -> Self {
        let stream = UnixStream::connect(store).expect("the store lives");
        let answers = BufReader::new(stream.try_clone().expect("a socket is copied"));
        Self { stream, answers }
    }

    fn ask(&mut self, what: &str, span: Span, fence: Fence, rest: &str) -> String {
        let (pid, start, last) = (process::id(), span.start(), span.last());
        writeln!(
            self.stream,
            "{pid} {what} {start} {last} {} {}{rest}",
            fence.epoch, fence.counter
        )
        .expect("it lives");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it lives");
        line.trim().to_owned()
    }

    /// The values in the range, unless the fence is refused.
    pub fn read(&mut self, token: &Token) -> Option<Vec<u64>> {
        self.read_at(token.span(), token.fence())
    }

    /// As [`read`](Self::read), under a lease of something that stands for these positions.
    pub fn read_at(&mut self, span: Span, fence: Fence) -> Option<Vec<u64>> {
        let answer = self.ask("read", span, fence, "");
        answer.split(' ').map(|word| word.parse().ok()).collect()
    }

    /// Counts what was read up by one. Nothing is checked on this side. Whether it was accepted.
    pub fn write(&mut self, token: &Token, read: &[u64]) -> bool {
        self.write_at(token.span(), token.fence(), read)
    }

    /// As [`write`](Self::write), under a lease of something that stands for these positions.
    pub fn write_at(&mut self, span: Span, fence: Fence, read: &[u64]) -> bool {
        let values: String = read.iter().map(|value| format!(" {}", value + 1)).collect();
        self.ask("write", span, fence, &values) == "ok"
    }
}

/// Works, as it was asked for.
pub fn run<S: Server>() {
    let asks = env::var(ASKS).expect("it was looked at");
    let [role, ttl, store, at] = asks.split('|').collect::<Vec<_>>()[..] else {
        panic!("{asks}")
    };
    let ttl = Duration::from_millis(ttl.parse().expect("a number"));
    // The server may be starting.
    let lease = loop {
        match RangeLease::open(S::engine_at(at)).wait() {
            Ok(lease) => break lease,
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    };
    let mut client = Client::new(store);
    let Ok(times) = role.parse::<u32>() else {
        let token = lease
            .acquire(0..4, Mode::Exclusive, ttl)
            .wait()
            .expect("it is free");
        client.read(&token);
        loop {
            thread::park();
        }
    };
    let mut done = 0;
    while done < times {
        let first = if times == 1 {
            0
        } else {
            fastrand::u64(..POSITIONS - 4)
        };
        let range = first..first + 1 + fastrand::u64(..4);
        let token = lease
            .acquire(range, Mode::Exclusive, ttl)
            .wait()
            .expect("the server comes back");
        let read = client.read(&token);
        // Long enough to be stopped in.
        thread::sleep(PIECE * fastrand::u32(..8));
        done += u32::from(read.is_some_and(|read| client.write(&token, &read) || times == 1));
    }
}
