//! `spanlock lease`, from outside, over a PostgreSQL server. Without one these tests are left out, and say so.
#![cfg(target_os = "linux")]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::str;
use std::time::Duration;

/// A server for one test.
struct Server {
    at: String,
}

fn script(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(script).args(arguments).output();
    output.expect("the script is there")
}

/// The children of a process.
fn children(parent: Pid) -> impl Iterator<Item = Pid> {
    let processes = std::fs::read_dir("/proc").expect("Linux has it");
    let pids = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter(move |pid| {
        let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        // Behind the name, which is in parentheses, are the state and the parent.
        let behind = stat.rsplit_once(") ").map(|(_, behind)| behind);
        let of = behind.and_then(|behind| behind.split(' ').nth(1)?.parse().ok());
        of == Some(parent.as_raw_nonzero())
    })
}

impl Server {
    fn start() -> Option<Self> {
        let started = script(&["start"]);
        if !started.status.success() {
            let why = String::from_utf8_lossy(&started.stderr).trim().to_owned();
            eprintln!("skipped, because {why}");
            return None;
        }
        let at = str::from_utf8(&started.stdout).expect("it is text");
        Some(Self {
            at: at.trim().to_owned(),
        })
    }

    fn folder(&self) -> &str {
        let first = self.at.split(' ').next();
        first
            .and_then(|host| host.strip_prefix("host="))
            .expect("it is reached by a socket")
    }

    /// Stops all its processes, as a machine that hangs does, or lets them go on.
    fn signal(&self, signal: Signal) {
        let log = Path::new(self.folder()).join("data/postmaster.pid");
        let pid = std::fs::read_to_string(log).expect("it runs");
        let pid = pid.lines().next().and_then(|pid| pid.parse().ok());
        let pid = pid.and_then(Pid::from_raw);
        let pid = pid.expect("its number is in the first line");
        // First, so that it starts no more of them.
        kill_process(pid, signal).expect("it runs");
        for child in children(pid) {
            // It may have ended.
            let _ = kill_process(child, signal);
        }
    }

    fn lease(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
        command
            .arg("lease")
            .args(arguments)
            .env("SPANLOCK_LEASES", &self.at);
        command
    }

    /// Does something in the database.
    fn query(&self, text: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("it starts");
        runtime.block_on(async {
            let connected = tokio_postgres::connect(&self.at, tokio_postgres::NoTls).await;
            let (client, connection) = connected.expect("the server runs");
            let connection = tokio::spawn(connection);
            client.batch_execute(text).await.expect("it can be done");
            connection.abort();
        });
    }

    /// The exit code, the output, and the messages.
    fn done(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.lease(arguments).output().expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.code(), text(&stdout), text(&stderr))
    }

    /// Starts a program that says when it runs, and waits for that.
    fn running(&self, arguments: &[&str], program: &str) -> Child {
        let arguments = [&["run"], arguments, &["--", "sh", "-c", program]].concat();
        let mut child = self
            .lease(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // Nobody reads what it says: it goes on.
        drop(child.stderr.take());
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(out)
            .read_line(&mut line)
            .expect("it is text");
        assert_eq!(line, "runs\n");
        child
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        script(&["stop", self.folder()]);
    }
}

#[test]
fn a_program_runs_while_a_range_is_held() {
    let Some(server) = Server::start() else {
        return;
    };
    let (code, _, why) = server.done(&["status"]);
    assert_eq!(code, Some(1), "{why}");
    assert!(why.contains("nobody has opened one"), "{why}");
    let print = "echo $SPANLOCK_LEASE $SPANLOCK_FENCE; exit 3";
    let run = [
        "run",
        "--resource",
        "file",
        "--range",
        "0..4096",
        "--",
        "sh",
        "-c",
        print,
    ];
    let (code, printed, why) = server.done(&run);
    assert_eq!(code, Some(3), "{why}");
    let (id, fence) = printed.trim().split_once(' ').expect("two words");
    assert!(id.len() == 32 && fence.contains('.'), "{printed}");

    let mut holder = server.running(
        &["--resource", "file", "--range", "5..=9"],
        "echo runs; exec sleep 600",
    );
    let (code, listed, why) = server.done(&["status", "file"]);
    assert_eq!(code, Some(0), "{why}");
    assert!(
        listed.contains("5..=9") && listed.contains("exclusive"),
        "{listed}"
    );
    assert!(
        listed.contains(&format!("spanlock[{}]@", holder.id())),
        "{listed}"
    );
    let (_, listed, _) = server.done(&["status", "--format", "json"]);
    assert!(listed.contains("\"start\":5,\"last\":9"), "{listed}");
    let (code, nothing, _) = server.done(&["status", "other"]);
    assert_eq!(
        (code, nothing.as_str()),
        (Some(0), "nothing is held, and nobody waits\n")
    );

    // Another resource, and another range, are free; this one is not.
    for free in [["other", "7"], ["file", "10.."]] {
        let [resource, range] = free;
        let (code, _, why) = server.done(&["wait", "--resource", resource, "--range", range]);
        assert_eq!(code, Some(0), "{why}");
    }
    let late = [
        "wait",
        "--resource",
        "file",
        "--range",
        "9",
        "--within",
        "5",
    ];
    let (code, _, why) = server.done(&late);
    assert_eq!(code, Some(124), "{why}");
    assert!(
        why.contains("waiting for 5..=9 (exclusive) by spanlock["),
        "{why}"
    );
    assert!(
        why.contains("9 of file: the range was not free in time"),
        "{why}"
    );

    // A signal is the program's, and the range is free as soon as it has ended.
    kill_process(Pid::from_child(&holder), Signal::TERM).expect("it runs");
    let ended = holder.wait().expect("it ends");
    assert_eq!(ended.code(), Some(128 + 15));
    let (code, _, why) = server.done(&["wait", "--resource", "file", "--within", "600"]);
    assert_eq!(code, Some(0), "{why}");
}

#[test]
fn what_cannot_be_run_or_read_is_named() {
    let Some(server) = Server::start() else {
        return;
    };
    let (code, _, why) = server.done(&["run", "--resource", "file", "--", "no-such-program"]);
    assert_eq!(code, Some(127), "{why}");
    assert!(why.contains("cannot run no-such-program"), "{why}");
    assert_eq!(
        server
            .done(&["wait", "--resource", "file", "--within", "600"])
            .0,
        Some(0)
    );
    let (code, _, why) = server.done(&["wait", "--resource", "file", "--range", "9..3"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(
        why.contains("--range 9..3: nothing is between 9 and 3"),
        "{why}"
    );
    let (code, _, why) = server.done(&["wait", "--resource", "file", "--ttl", "61"]);
    assert_eq!(code, Some(1), "{why}");
    assert!(why.contains("a lease is for 00:01:00 at most"), "{why}");
    let nowhere = [
        "status",
        "--server",
        "host=/nowhere user=a password=secret dbname=b",
    ];
    let (code, _, why) = server.done(&nowhere);
    assert_eq!(code, Some(1), "{why}");
    assert!(
        why.contains("cannot be reached") && !why.contains("secret"),
        "{why}"
    );
    let (code, _, why) = server.done(&["status", "--server", "host=a passwort=secret"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(!why.contains("secret"), "{why}");
}

/// Somebody who came earlier waits for more, and nobody holds what is asked for.
#[test]
fn a_request_that_gives_way_says_to_whom() {
    let Some(server) = Server::start() else {
        return;
    };
    let free = ["run", "--resource", "file", "--", "true"];
    let (code, _, why) = server.done(&free);
    assert_eq!(code, Some(0), "{why}");
    // He has waited for 40 s, so others give way to him until 64 s. Position 0 is the smallest number there.
    server.query(
        "insert into spanlock_lease.wish (res, span, alone, request, since, expires, client)
        select id, spanlock_lease.span('-9223372036854775808', '-9223372036854775789'), true, gen_random_uuid(),
            now() - interval '40 s', now() + interval '1 h', 'Ada'
        from spanlock_lease.resource",
    );
    let late = [
        "wait",
        "--resource",
        "file",
        "--range",
        "10..",
        "--within",
        "5",
    ];
    let (code, _, why) = server.done(&late);
    assert_eq!(code, Some(124), "{why}");
    let expected = "waiting for its turn, after 0..=19 (exclusive) by Ada\n";
    assert!(why.contains(expected), "{why}");
}

/// As after a standby has taken over.
#[test]
fn a_server_that_grants_nothing_is_named() {
    let Some(server) = Server::start() else {
        return;
    };
    let free = ["run", "--resource", "file", "--", "true"];
    let (code, _, why) = server.done(&free);
    assert_eq!(code, Some(0), "{why}");
    server.query("update spanlock_lease.era set grants_from = now() + interval '1 h'");
    let (code, listed, why) = server.done(&["status"]);
    assert_eq!(code, Some(0), "{why}");
    assert!(
        listed.contains("file") && listed.contains("grace"),
        "{listed}"
    );
    let (code, _, why) = server.done(&["wait", "--resource", "file", "--within", "5"]);
    assert_eq!(code, Some(124), "{why}");
    let expected = "waiting for a server that was restored or replaced, and grants nothing for 3";
    assert!(why.contains(expected), "{why}");
}

/// Also if it does not listen to the first signal.
#[test]
fn a_program_ends_when_its_lease_is_lost() {
    let Some(server) = Server::start() else {
        return;
    };
    let told = tempfile::tempdir().expect("a folder");
    let told: PathBuf = told.path().join("told");
    let stubborn = format!(
        "trap 'echo told > {}' TERM; echo runs; while :; do sleep 0.1; done",
        told.display()
    );
    // Long enough that the program comes to run.
    let arguments = ["--resource", "file", "--ttl", "10"];
    let mut stubborn = server.running(&arguments, &stubborn);
    server.signal(Signal::STOP);
    let ended = stubborn.wait().expect("it ends");
    assert_eq!(ended.code(), Some(125));
}

/// The number that a program wrote into a file. It may have to be waited for.
fn number_in(file: &Path) -> String {
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Some(number) = text.strip_suffix('\n') {
            return number.to_owned();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs on by itself, in a session of its own.
fn leaves_something(number: &Path) -> String {
    let number = number.display();
    format!(
        "setsid sh -c 'echo $$ > {number}; trap \"\" HUP; exec sleep 600' > /dev/null 2>&1 & echo runs"
    )
}

#[test]
fn what_a_program_has_left_holds_the_range() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let number = folder.path().join("number");
    let mut holder = server.running(&["--resource", "file"], &leaves_something(&number));
    let left = number_in(&number);
    let pid = Pid::from_child(&holder);
    // The program has ended.
    let is_left = |child: Pid| child.as_raw_nonzero().to_string() == left;
    while !children(pid).all(is_left) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, _, _) = server.done(&["wait", "--resource", "file", "--within", "1"]);
    assert_eq!(
        (code, holder.try_wait().expect("it is ours")),
        (Some(124), None)
    );
    kill_process(pid, Signal::TERM).expect("it runs");
    // The program's code.
    assert_eq!(holder.wait().expect("it ends").code(), Some(0));
    let (code, _, why) = server.done(&["wait", "--resource", "file", "--within", "600"]);
    assert_eq!(code, Some(0), "{why}");
}

#[test]
fn what_a_program_has_left_ends_when_the_lease_is_lost() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let number = folder.path().join("number");
    let program = leaves_something(&number).replace("HUP", "HUP TERM") + "; sleep 600";
    let mut holder = server.running(&["--resource", "file", "--ttl", "10"], &program);
    let left = number_in(&number);
    server.signal(Signal::STOP);
    assert_eq!(holder.wait().expect("it ends").code(), Some(125));
    assert!(!Path::new("/proc").join(left).exists());
}
