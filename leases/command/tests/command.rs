//! `spanlock-lease`, from outside, over servers. Where there is none, tests are left out, and say so.
#![cfg(target_os = "linux")]

use rustix::process::{Pid, Signal, kill_process};
use spanlock_lease_testkit::server::Started;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::iter;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A server for one test, or one that is somewhere.
struct Server {
    started: Option<Started>,
    at: String,
}

/// The children of a process.
fn children(parent: Pid) -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").expect("Linux has it");
    let pids = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter(move |pid| {
        let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let stat = fs::read_to_string(stat).unwrap_or_default();
        // Behind the name, which is in parentheses, are the state and the parent.
        let behind = stat.rsplit_once(") ").map(|(_, behind)| behind);
        let of = behind.and_then(|behind| behind.split(' ').nth(1)?.parse().ok());
        of == Some(parent.as_raw_nonzero())
    })
}

impl Server {
    /// By the script of this name.
    fn start(name: &'static str) -> Option<Self> {
        let started = Started::new(name, &["start"]);
        let started = started.inspect_err(|why| eprintln!("skipped, because {why}"));
        let started = started.ok()?;
        let at = started.at.clone();
        Some(Self {
            started: Some(started),
            at,
        })
    }

    /// One that is not started, and is somewhere.
    fn elsewhere(at: &str) -> Self {
        let (started, at) = (None, at.to_owned());
        Self { started, at }
    }

    fn started(&self) -> &Started {
        self.started.as_ref().expect("it was started")
    }

    /// A file in its folder, which is gone with it.
    fn file(&self, name: &str) -> PathBuf {
        Path::new(self.started().folder()).join(name)
    }

    /// Stops all processes of PostgreSQL, as a machine that hangs does, or lets them go on.
    fn signal(&self, signal: Signal) {
        let pid = fs::read_to_string(self.file("data/postmaster.pid")).expect("it runs");
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

    /// The command with the words of a line, and more of them behind it.
    fn lease(&self, line: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock-lease"));
        let words = line.split(' ').chain(more.iter().copied());
        command.args(words).env("SPANLOCK_LEASES", &self.at);
        command
    }

    /// Does something in the database.
    fn query(&self, text: &str) {
        spanlock_lease_testkit::server::runtime().block_on(async {
            let connected = tokio_postgres::connect(&self.at, tokio_postgres::NoTls).await;
            let (client, connection) = connected.expect("the server runs");
            let connection = tokio::spawn(connection);
            client.batch_execute(text).await.expect("it can be done");
            connection.abort();
        });
    }

    /// It ends with this code. The output.
    fn ends(&self, code: i32, line: &str, more: &[&str]) -> String {
        ends(code, &mut self.lease(line, more)).0
    }

    /// It ends with this code, and says all of this.
    fn fails(&self, code: i32, line: &str, said: &[&str]) {
        let (_, why) = ends(code, &mut self.lease(line, &[]));
        for said in said {
            assert!(why.contains(said), "{line}: {why}");
        }
        assert!(!why.contains("secret"), "{why}");
    }

    /// Nothing is in the way.
    fn is_free(&self, ranges: &str) {
        self.ends(0, &format!("wait --within 600 {ranges}"), &[]);
    }

    /// Starts a program that says when it runs, and waits for that.
    fn running(&self, ranges: &str, program: &str, messages: Stdio) -> Child {
        let mut command = self.lease(&format!("run {ranges} -- sh -c"), &[program]);
        let command = command.stdout(Stdio::piped()).stderr(messages);
        let mut child = command.spawn().expect("it starts");
        // If nobody reads what it says, it goes on.
        drop(child.stderr.take());
        let mut line = String::new();
        let mut printed = BufReader::new(child.stdout.as_mut().expect("it is a pipe"));
        printed.read_line(&mut line).expect("it is text");
        assert_eq!(line, "runs\n");
        child
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.started.is_some() && self.at.starts_with("host=") {
            self.signal(Signal::CONT);
        }
    }
}

/// A command ends with this code. The output, and the messages.
fn ends(code: i32, command: &mut Command) -> (String, String) {
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, why) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{command:?}: {why}");
    (printed, why)
}

/// A program that goes on for long.
const LONG: &str = "echo runs; exec sleep 600";

/// By a signal, which is the program's.
fn is_ended(mut holder: Child) {
    kill_process(Pid::from_child(&holder), Signal::TERM).expect("it runs");
    let ended = holder.wait().expect("it ends");
    assert_eq!(ended.code(), Some(128 + 15));
}

#[test]
fn a_program_runs_while_a_range_is_held() {
    let empty = "nothing is held, and nobody waits\n";
    for server in ["postgres", "etcd"].into_iter().filter_map(Server::start) {
        match server.at.starts_with("etcd") {
            true => assert_eq!(server.ends(0, "status", &[]), empty),
            false => server.fails(1, "status", &["nobody has opened one"]),
        }
        let print = "echo $SPANLOCK_LEASE $SPANLOCK_FENCE; exit 3";
        let printed = server.ends(3, "run --resource a/b --range 0..4096 -- sh -c", &[print]);
        let (id, fence) = printed.trim().split_once(' ').expect("two words");
        let is_number = fence.len() == 16 && fence.bytes().all(|digit| digit.is_ascii_digit());
        assert!(id.len() == 32 && is_number, "{printed}");

        let holder = server.running("--resource a/b --range 5..=9", LONG, Stdio::piped());
        let listed = server.ends(0, "status a/b", &[]);
        let by = format!("sh[{}]@", holder.id());
        for word in ["5..=9", "exclusive", &by] {
            assert!(listed.contains(word), "{listed}");
        }
        let listed = server.ends(0, "status --format json", &[]);
        assert!(listed.contains("\"start\":5,\"last\":9"), "{listed}");
        assert_eq!(server.ends(0, "status other", &[]), empty);

        // Another resource, and other ranges, are free; this one is not.
        server.is_free("--resource other --range 7");
        server.is_free("--resource a/b --range ..5 --range 10..");
        let by = "waiting for 5..=9 (exclusive) by sh[";
        let late = "a/b: 9..=9: the range was not free in time";
        let waits = "wait --resource a/b --range 9 --within 5";
        server.fails(124, waits, &[by, late]);

        // The range is free as soon as the program has ended.
        is_ended(holder);
        server.is_free("--resource a/b");
        // What a command that gave up had wished for is gone some seconds later, if not before.
        while server.ends(0, "status", &[]) != empty {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn what_cannot_be_run_or_read_is_named() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    let program = "run --resource file -- no-such-program";
    server.fails(127, program, &["cannot run no-such-program"]);
    server.is_free("--resource file");
    let reversed = "'--range <RANGE>': nothing is between 9 and 3";
    for (wrong, named) in [
        ("wait --resource file --range 9..3", reversed),
        ("wait --resource file --ttl 61", "from 1 to 60"),
        ("wait --resource file --ttl 0.01", "no renewal would keep"),
        ("wait --ttl 5 --resource ", "'--resource <NAME>'"),
        ("status --server ", "'--server <CONNECTION>'"),
    ] {
        server.fails(2, wrong, &[named]);
    }
    let help = server.ends(0, "--help", &[]);
    let both = help.contains("PostgreSQL") && help.contains("etcd");
    assert!(both, "{help}");
}

#[test]
fn what_is_no_address_is_named_without_its_password() {
    let member = "the member \"a:b\": expected etcd://";
    let socket = "cannot be reached: /nowhere/socket";
    for (at, code, said) in [
        ("etcd://me:secret@a:b", 2, member),
        ("etcd:///nowhere/socket", 1, socket),
        ("host=a passwort=secret", 2, "unknown option `passwort`"),
        (
            "host=/nowhere user=a password=secret",
            1,
            "cannot be reached",
        ),
    ] {
        Server::elsewhere(at).fails(code, "status", &[said]);
    }
    let etcd = Server::elsewhere("etcd://a");
    for wrong in [
        "status --schema other",
        "wait --resource a --key b",
        "grant somebody",
    ] {
        etcd.fails(2, wrong, &[]);
    }
}

/// A server that is silent from the beginning.
#[test]
fn a_limit_of_time_covers_the_opening() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port();
    let at = format!("host=127.0.0.1 port={port} user=a sslmode=disable");
    let limited = "run --resource a --within 1 -- true";
    Server::elsewhere(&at).fails(124, limited, &["did not answer in time"]);
}

#[test]
fn what_was_granted_is_released_if_the_rest_is_not_free_in_time() {
    let both = "run --resource a --range 0..5 --range 10..20 --within 1 -- true";
    for server in ["postgres", "etcd"].into_iter().filter_map(Server::start) {
        let holder = server.running("--resource a --range 10..20", LONG, Stdio::null());
        server.fails(124, both, &[]);
        let is_held = |line: &str| line.contains("0..=4") && line.contains("held");
        assert!(!server.ends(0, "status a", &[]).lines().any(is_held));
        is_ended(holder);
    }
}

#[test]
fn several_ranges_are_held_together_and_keys() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    for (chosen, free, held, shown) in [
        (
            "--resource range --range 10..20 --range 0..5",
            "--resource range --range 5..10",
            "--resource range --range 19",
            "10..=19",
        ),
        (
            "--resource key --key us/7 --prefix eu/",
            "--resource key --keys us/..us/7",
            "--resource key --key eu/x",
            "\"eu/\"..\"eu0\"",
        ),
    ] {
        let holder = server.running(chosen, LONG, Stdio::null());
        server.is_free(free);
        server.fails(124, &format!("wait --within 2 {held}"), &[]);
        let listed = server.ends(0, "status", &[]);
        assert!(listed.contains(shown), "{listed}");
        is_ended(holder);
        let names = server.ends(
            0,
            &format!("run {chosen} -- sh -c"),
            &["echo $SPANLOCK_LEASE"],
        );
        let names: Vec<_> = names.trim().split(',').map(str::len).collect();
        assert_eq!(names, [32, 32]);
    }
}

/// All certificates, and a password that is in a file, which is its owner's alone, or in the environment.
#[test]
fn a_server_with_tls_and_passwords_is_reached() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    server.query("create role app login password 'right'");
    server.ends(0, "grant app", &[]);
    let Some((_, port)) = server.started().secure() else {
        return;
    };
    let at = format!("host=localhost port={port} user=app dbname=postgres sslmode=verify-full");
    let certificate = server.file("certificate.pem");
    let at = format!("{at} sslrootcert={}", certificate.display());
    let run = |code: i32, variable: &str, value: &OsStr, said: &str| {
        let mut command = Server::elsewhere(&at).lease("run --resource a -- true", &[]);
        let command = command.env_remove("PGPASSWORD").env_remove("PGPASSFILE");
        let (_, why) = ends(code, command.env("HOME", "/nowhere").env(variable, value));
        let is_right = why.contains(said) && !why.contains("cannot be reached");
        assert!(is_right, "{why}");
    };
    let passwords = server.file("passwords");
    let line = format!("localhost:{port}:*:app:right\n");
    fs::write(&passwords, line).expect("it is ours");
    for (mode, code, said) in [
        (0o600, 0, ""),
        (0o640, 2, "passwords: others may read it"),
        (0o604, 2, "passwords: others may read it"),
    ] {
        fs::set_permissions(&passwords, Permissions::from_mode(mode)).expect("it is ours");
        run(code, "PGPASSFILE", passwords.as_os_str(), said);
    }
    for (variable, value, code, said) in [
        ("PGPASSWORD", "right", 0, ""),
        ("PGPASSWORD", "wrong", 1, "password authentication failed"),
        ("PGPASSFILE", "/nowhere", 1, "password missing"),
    ] {
        run(code, variable, OsStr::new(value), said);
    }
}

#[test]
fn a_member_with_tls_is_reached() {
    let Some(server) = Server::start("etcd") else {
        return;
    };
    let Some((_, port)) = server.started().secure() else {
        return;
    };
    let file = |name: &str| server.file(name).display().to_string();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let at = format!("https://localhost:{port}");
    let shown = format!("{at}?cacert={certificate}&cert={certificate}&key={key}");
    Server::elsewhere(&shown).ends(0, "run --resource a -- true", &[]);
    Server::elsewhere(&at).fails(1, "status", &["certificate"]);
}

/// Somebody who came earlier waits for more, and nobody holds what is asked for.
#[test]
fn a_request_that_gives_way_says_to_whom() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    server.ends(0, "run --resource file -- true", &[]);
    // He has waited for 40 s, so others give way to him until 64 s. Position 0 is the smallest number there.
    server.query(
        "insert into spanlock_lease.wish (res, span, alone, request, since, expires, client)
        select id, spanlock_lease.span('-9223372036854775808', '-9223372036854775789'), true, gen_random_uuid(),
            now() - interval '40 s', now() + interval '1 h', 'Ada'
        from spanlock_lease.resource",
    );
    let expected = "waiting for its turn, after 0..=19 (exclusive) by Ada\n";
    let late = "wait --resource file --range 10.. --within 5";
    server.fails(124, late, &[expected]);
}

/// As after a standby has taken over.
#[test]
fn a_server_that_grants_nothing_is_named() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    server.ends(0, "run --resource file -- true", &[]);
    server.query("update spanlock_lease.era set grants_from = now() + interval '1 h'");
    let listed = server.ends(0, "status", &[]);
    let is_named = listed.contains("file") && listed.contains("grace");
    assert!(is_named, "{listed}");
    let expected = "waiting for a server that was restored or replaced, and grants nothing for 3";
    server.fails(124, "wait --resource file --within 5", &[expected]);
}

/// Long enough that a program comes to run.
const SHORT: &str = "--resource file --ttl 10";

/// Also if it does not listen to the first signal.
#[test]
fn a_program_ends_when_its_lease_is_lost() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    let stubborn = "trap '' TERM; echo runs; while :; do sleep 0.1; done";
    let mut stubborn = server.running(SHORT, stubborn, Stdio::piped());
    server.signal(Signal::STOP);
    let ended = stubborn.wait().expect("it ends");
    assert_eq!(ended.code(), Some(125));
}

/// The number that a program wrote into a file. It may have to be waited for.
fn number_in(file: &Path) -> String {
    let read = || {
        thread::sleep(Duration::from_millis(5));
        fs::read_to_string(file).unwrap_or_default()
    };
    let mut texts = iter::repeat_with(read);
    let number = texts.find_map(|text| text.strip_suffix('\n').map(str::to_owned));
    number.expect("it has no end")
}

/// Runs on by itself, in a session of its own, although it gets these signals.
fn leaves_something(number: &Path, signals: &str) -> String {
    let number = number.display();
    format!(
        "setsid sh -c 'echo $$ > {number}; trap \"\" {signals}; exec sleep 600' > /dev/null 2>&1 & echo runs"
    )
}

#[test]
fn what_a_program_has_left_holds_the_range() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    let number = server.file("number");
    let program = leaves_something(&number, "HUP");
    let mut holder = server.running("--resource file", &program, Stdio::piped());
    let left = number_in(&number);
    let pid = Pid::from_child(&holder);
    // The program has ended.
    let is_left = |child: Pid| child.as_raw_nonzero().to_string() == left;
    while !children(pid).all(is_left) {
        thread::sleep(Duration::from_millis(5));
    }
    server.fails(124, "wait --resource file --within 1", &[]);
    assert_eq!(holder.try_wait().expect("it is ours"), None);
    kill_process(pid, Signal::TERM).expect("it runs");
    // The program's code.
    assert_eq!(holder.wait().expect("it ends").code(), Some(0));
    server.is_free("--resource file");
}

#[test]
fn what_a_program_has_left_ends_when_the_lease_is_lost() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    let (number, said) = (server.file("number"), server.file("said"));
    let program = leaves_something(&number, "HUP TERM") + "; sleep 600";
    let messages = File::create(&said).expect("a file");
    let mut holder = server.running(SHORT, &program, messages.into());
    let left = number_in(&number);
    server.signal(Signal::STOP);
    assert_eq!(holder.wait().expect("it ends").code(), Some(125));
    assert!(!Path::new("/proc").join(left).exists());
    let said = fs::read_to_string(said).expect("it is text");
    let is_said = said.contains("the lease is lost") && !said.contains("held on");
    assert!(is_said, "{said}");
}

/// The two examples of what checks fences: in order they write, and who comes from the past does not.
#[test]
fn what_checks_fences_refuses_who_was_overtaken() {
    let Some(server) = Server::start("postgres") else {
        return;
    };
    let at = |name: &str| server.file(name).display().to_string();
    fs::write(at("new"), "words").expect("it is ours");
    let tests = std::env::current_exe().expect("a test has a file");
    let built = tests.parent().and_then(Path::parent);
    let append = built.expect("it is below `target`").join("examples/append");
    let append = append.display().to_string();
    let publish = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/publish.sh");
    let (text, folder, page) = (at("text"), at(""), at("new"));
    for program in [[&append, &text, "line"], [publish, &folder, &page]] {
        for _ in 0..2 {
            server.ends(0, "run --resource a --", &program);
        }
        let mut late = Command::new(program[0]);
        let late = late.args(&program[1..]);
        let (_, why) = ends(1, late.env("SPANLOCK_FENCE", "1010000000000001"));
        assert!(why.contains("too late"), "{why}");
    }
    let read = |name: &str| fs::read_to_string(at(name)).expect("it is text");
    assert_eq!(read("page"), "words");
    assert_eq!(read("text").lines().count(), 2);
}
