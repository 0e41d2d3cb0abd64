//! `spanlock lease`, from outside, over etcd. Without it this test is left out, and says so.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn script(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/etcd");
    let output = Command::new(script).args(arguments).output();
    output.expect("the script is there")
}

/// How to reach a server, which is stopped at the end.
struct Server(String);

impl Drop for Server {
    fn drop(&mut self) {
        let folder = self
            .0
            .strip_prefix("etcd://")
            .and_then(|path| path.strip_suffix("/1:0"));
        script(&["stop", folder.expect("it is a socket")]);
    }
}

fn lease(at: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command
        .arg("lease")
        .args(arguments)
        .env("SPANLOCK_LEASES", at);
    command
}

/// The exit code, the output, and the messages.
fn done(at: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = lease(at, arguments).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn what_is_no_address_is_named_without_its_password() {
    for (at, code, said) in [
        ("etcd://me:secret@a:b", 2, "expected etcd://"),
        (
            "etcd:///nowhere/socket",
            1,
            "cannot be reached: /nowhere/socket",
        ),
    ] {
        let (ended, _, why) = done(at, &["status"]);
        assert_eq!(ended, Some(code), "{why}");
        assert!(why.contains(said) && !why.contains("secret"), "{why}");
    }
    let (ended, _, why) = done("etcd://a", &["status", "--schema", "other"]);
    assert_eq!(ended, Some(2), "{why}");
}

#[test]
fn a_program_runs_while_a_range_is_held() {
    let started = script(&["start"]);
    if !started.status.success() {
        eprintln!(
            "skipped, because {}",
            String::from_utf8_lossy(&started.stderr).trim()
        );
        return;
    }
    let server = Server(String::from_utf8_lossy(&started.stdout).trim().to_owned());
    let at = server.0.as_str();
    let nothing = "nothing is held, and nobody waits\n".to_owned();
    assert_eq!(done(at, &["status"]).1, nothing);
    let mut holder = lease(
        at,
        &[
            "run",
            "--resource",
            "a/b",
            "--range",
            "5..=9",
            "--",
            "sh",
            "-c",
            "echo; read end",
        ],
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .expect("it starts");
    let mut said = String::new();
    let printed = BufReader::new(holder.stdout.take().expect("it is a pipe")).read_line(&mut said);
    printed.expect("it runs");
    let (_, listed, why) = done(at, &["status", "a/b"]);
    assert!(
        listed.contains("5..=9") && listed.contains(&format!("spanlock[{}]@", holder.id())),
        "{listed}{why}"
    );
    assert_eq!(
        done(at, &["wait", "--resource", "a/b", "--range", "..5"]).0,
        Some(0)
    );
    let (code, _, why) = done(at, &["wait", "--resource", "a/b", "--within", "5"]);
    assert_eq!(code, Some(124), "{why}");
    writeln!(holder.stdin.take().expect("it is a pipe"), "end").expect("it reads");
    assert!(holder.wait().expect("it ends").success());
    // What a command that gave up had wished for is gone some seconds later, if not before.
    while done(at, &["status"]).1 != nothing {
        thread::sleep(Duration::from_millis(50));
    }
}
