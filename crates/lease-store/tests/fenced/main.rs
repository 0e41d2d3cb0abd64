//! Files that several clients edit, who would overwrite each other if there were no fences: their engine grants
//! everything to everybody.
#![cfg(target_os = "linux")]

mod connections;

use spanlock_lease::{
    Answer, Engine, Fence, Mode, News, RangeLease, Renewal, Request, RequestId, Span, Token,
    Trouble, Wanted,
};
use spanlock_lease_store::{Error, FencedFile, FencedFiles, MAX_DATA};
use spanlock_structures::store::{Geometry, Mapped, Options, Store, make};
use spanlock_testkit::watchdog::{HANG, watched};
use std::future::{pending, ready};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeBounds;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use std::{env, fs};

/// Grants everything. Only fences tell who came later.
#[derive(Clone, Default)]
struct Generous(Arc<AtomicU64>);

impl Engine for Generous {
    type Range = Span;

    fn open(&self) -> impl Future<Output = Result<(), Trouble>> {
        ready(Ok(()))
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        Ok(Answer::Granted {
            span: request.span,
            fence: Fence {
                epoch: 1,
                counter: self.0.fetch_add(1, Ordering::Relaxed) + 1,
            },
        })
    }

    async fn renew(&self, _: RequestId, _: Duration) -> Result<Renewal, Trouble> {
        let wanted = Wanted::No;
        Ok(Renewal::Kept { wanted })
    }

    async fn release(&self, _: RequestId) -> Result<(), Trouble> {
        Ok(())
    }

    async fn news(&self) -> News {
        pending().await
    }
}

struct Leases(RangeLease);

impl Leases {
    fn new() -> Self {
        Self(
            RangeLease::open(Generous::default())
                .wait()
                .expect("it opens"),
        )
    }

    fn token(&self, range: impl RangeBounds<u64>, mode: Mode) -> Token {
        let token = self.0.acquire(range, mode, Duration::from_secs(600)).wait();
        token.expect("everything is granted")
    }
}

fn a_store(path: &Path) {
    let medium = Mapped::create(path, 16 << 20).expect("room");
    make(&medium, &Geometry::default()).expect("it fits");
}

/// Serves a store until the process ends.
fn serve(path: &Path) -> SocketAddr {
    let medium = Mapped::open(path).expect("it is there");
    let (store, recovered) = Store::open(medium, Options::default()).expect("it is a store");
    assert!(
        recovered
            .findings
            .iter()
            .all(|finding| !finding.is_damage())
    );
    let files = Arc::new(FencedFiles::new(store).expect("it can be written"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it has one");
    thread::spawn(move || files.serve_tcp(&listener));
    address
}

fn with_server(test: impl FnOnce(SocketAddr)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    a_store(&path);
    watched(
        HANG,
        || (),
        |()| "nothing happens".to_owned(),
        || test(serve(&path)),
    );
}

fn is_refused<T: std::fmt::Debug>(outcome: Result<T, Error>, by: &Token) -> bool {
    matches!(outcome, Err(Error::Refused { later }) if later == by.fence())
}

#[test]
fn who_comes_late_is_refused_where_somebody_has_entered() {
    with_server(|address| {
        let leases = Leases::new();
        let file = FencedFile::connect(address, "a").unwrap();
        let early = leases.token(0..100, Mode::Exclusive);
        let early = file.enter(&early).unwrap();
        early.write_at(b"early", 10).unwrap();
        let shared = leases.token(20..30, Mode::Shared);
        let reads = file.enter(&shared).unwrap();
        let late = leases.token(50..200, Mode::Exclusive);
        let other = FencedFile::connect(address, "a").unwrap();
        let writes = other.enter(&late).unwrap();
        // Also where nobody has written since.
        assert!(is_refused(early.write_at(b"x", 70), &late));
        assert!(is_refused(early.read_at(&mut [0], 70), &late));
        assert!(is_refused(early.write_at(b"x", 29), &shared));
        early.write_at(b"still mine", 31).unwrap();
        writes.write_at(b"late", 50).unwrap();
        let again = leases.token(25..=25, Mode::Shared);
        file.enter(&again).unwrap();
        // A later reader is in nobody's way who reads.
        assert_eq!(reads.read_at(&mut [0; 10], 20).unwrap(), 10);
        let mut all = [0; 54];
        let everything = leases.token(.., Mode::Shared);
        assert_eq!(
            file.enter(&everything)
                .unwrap()
                .read_at(&mut all, 0)
                .unwrap(),
            54
        );
        assert_eq!(
            (&all[10..15], &all[31..41], &all[50..]),
            (&b"early"[..], &b"still mine"[..], &b"late"[..])
        );
        assert_eq!(file.size().unwrap(), 54);
        // Another file has other fences.
        let another = FencedFile::connect(address, "b").unwrap();
        let first = leases.token(.., Mode::Exclusive);
        another.enter(&first).unwrap().sync().unwrap();
    });
}

#[test]
fn what_is_not_leased_is_not_sent() {
    with_server(|address| {
        let leases = Leases::new();
        let file = FencedFile::connect(address, "a").unwrap();
        let token = leases.token(10..20, Mode::Exclusive);
        let extent = file.enter(&token).unwrap();
        for (length, at) in [(1, 9), (1, 20), (2, 19), (11, 10), (1, u64::MAX)] {
            let outcome = extent.write_at(&vec![0; length], at);
            assert!(
                matches!(outcome, Err(Error::NotLeased)),
                "{length} at {at}: {outcome:?}"
            );
        }
        extent.write_at(&[], 0).unwrap();
        let last = leases.token(u64::MAX..=u64::MAX, Mode::Exclusive);
        let at_the_last = file.enter(&last).unwrap();
        assert!(matches!(
            at_the_last.write_at(&[1], u64::MAX),
            Err(Error::Server(_))
        ));
        assert_eq!(at_the_last.read_at(&mut [0], u64::MAX).unwrap(), 0);
        let first = leases.token(0..1, Mode::Exclusive);
        let at_the_first = file.enter(&first).unwrap();
        at_the_first.write_at(&[], 0).unwrap();
        assert_eq!(at_the_first.read_at(&mut [], 0).unwrap(), 0);
        let token = leases.token(10..20, Mode::Shared);
        let extent = file.enter(&token).unwrap();
        assert!(matches!(extent.write_at(&[0], 10), Err(Error::NotLeased)));
        for name in ["", ".", "..", "a/b"] {
            let file = FencedFile::connect(address, name).unwrap();
            assert!(
                matches!(file.enter(&token), Err(Error::Server(_))),
                "{name}"
            );
            // The connection is still of use.
            assert!(matches!(file.size(), Err(Error::Server(_))), "{name}");
        }
        let file = FencedFile::connect(address, &"n".repeat(70_000)).unwrap();
        assert!(matches!(file.size(), Err(Error::Io(_))));
    });
}

#[test]
fn long_writes_are_read_back() {
    with_server(|address| {
        let leases = Leases::new();
        let file = FencedFile::connect(address, "a").unwrap();
        let token = leases.token(.., Mode::Exclusive);
        let extent = file.enter(&token).unwrap();
        let data: Vec<u8> = (0..2 * MAX_DATA + 5).map(|at| (at / 7) as u8).collect();
        extent.write_at(&data, 3).unwrap();
        let mut back = vec![0; data.len() + 9];
        assert_eq!(extent.read_at(&mut back, 3).unwrap(), data.len());
        assert!(back[..data.len()] == data);
    });
}

/// Clients that add one to counters, each with a lease that does not exclude the others. A write whose fence is not
/// checked would undo what another client has added.
#[test]
fn no_update_is_lost() {
    const COUNTERS: u64 = 3;
    with_server(|address| {
        let leases = Leases::new();
        let (added, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = || {
            let file = FencedFile::connect(address, "counters").unwrap();
            for _ in 0..200 {
                let at = 8 * fastrand::u64(..COUNTERS);
                let whole = fastrand::bool();
                let token = match whole {
                    true => leases.token(0..8 * COUNTERS, Mode::Exclusive),
                    false => leases.token(at..at + 8, Mode::Exclusive),
                };
                let add = || {
                    let extent = file.enter(&token)?;
                    let mut bytes = [0; 8];
                    extent.read_at(&mut bytes, at)?;
                    let next = u64::from_le_bytes(bytes) + 1;
                    extent.write_at(&next.to_le_bytes(), at)
                };
                match add() {
                    Ok(()) => added.fetch_add(1, Ordering::Relaxed),
                    Err(Error::Refused { .. }) => refused.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("{error}"),
                };
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(work);
            }
        });
        let file = FencedFile::connect(address, "counters").unwrap();
        let token = leases.token(.., Mode::Shared);
        let mut bytes = [0; 8 * COUNTERS as usize];
        file.enter(&token).unwrap().read_at(&mut bytes, 0).unwrap();
        let sum: u64 = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| u64::from_le_bytes(bytes))
            .sum();
        assert_eq!(sum, added.into_inner());
        println!("{sum} added, {} refused", refused.into_inner());
    });
}

const SERVES: &str = "SPANLOCK_TEST_SERVES";

/// Not a test of its own: [`a_server_that_was_killed_refuses_what_it_did`] starts it as a process.
#[test]
fn serves_when_it_is_asked_to() {
    if let Some(path) = env::var_os(SERVES) {
        println!("serves at {}", serve(Path::new(&path)));
        loop {
            thread::park();
        }
    }
}

/// A server in a process of its own, which is killed when it is dropped.
struct Process {
    child: Child,
    /// Kept open, since the process may write more.
    _out: Box<dyn BufRead>,
    address: SocketAddr,
}

impl Process {
    fn start(path: &Path) -> Self {
        Self::start_by(&mut Command::new("env"), path)
    }

    /// By a command that runs what its arguments say.
    fn start_by(command: &mut Command, path: &Path) -> Self {
        command.arg(env::current_exe().unwrap());
        command.args(["--exact", "serves_when_it_is_asked_to", "--nocapture"]);
        let mut child = command
            .env(SERVES, path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "it has ended");
            if let Some((_, address)) = line.trim_end().split_once("serves at ") {
                break address.parse().unwrap();
            }
        };
        Self {
            child,
            _out: Box::new(out),
            address,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        assert!(thread::panicking() || killed.is_ok());
    }
}

#[test]
fn a_server_that_was_killed_refuses_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    a_store(&path);
    let leases = Leases::new();
    let early = leases.token(0..1000, Mode::Exclusive);
    // More fences than a journal keeps: it is rewritten on the way.
    let tokens: Vec<_> = (0..1500)
        .map(|at| leases.token(at % 700..at % 700 + 20, Mode::Exclusive))
        .collect();
    for part in tokens.chunks(500) {
        let server = Process::start(&path);
        let file = FencedFile::connect(server.address, "a").unwrap();
        for token in part {
            let extent = file.enter(token).unwrap();
            extent
                .write_at(&token.fence().counter.to_le_bytes(), extent.span().start())
                .unwrap();
        }
        drop(server);
        assert!(matches!(file.size(), Err(Error::Io(_))));
    }
    let server = Process::start(&path);
    let file = FencedFile::connect(server.address, "a").unwrap();
    assert!(matches!(file.enter(&early), Err(Error::Refused { .. })));
    let last = tokens.last().unwrap();
    let extent = file.enter(last).unwrap();
    let mut bytes = [0; 8];
    extent.read_at(&mut bytes, extent.span().start()).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), last.fence().counter);
    for earlier in &tokens[1490..1499] {
        assert!(is_refused(file.enter(earlier), last), "{earlier:?}");
    }
}
