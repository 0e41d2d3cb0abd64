//! `spanlock store`, from outside.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanlock"));
    command.arg("store").args(arguments).output().unwrap()
}

/// What a command writes that succeeds.
fn written(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code and the message of one that fails.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let [store, from, to] = ["store", "from", "to"].map(|name| folder.path().join(name));
    fs::create_dir_all(from.join("a/b")).unwrap();
    fs::write(from.join("a/empty"), b"").unwrap();
    fs::write(from.join("a/b/large"), vec![7; 3_000_000]).unwrap();
    fs::hard_link(from.join("a/b/large"), from.join("name")).unwrap();
    symlink("a/b", from.join("link")).unwrap();
    let sparse = fs::File::create(from.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();

    written(&["make", text(&store), "--size", "8M"]);
    assert!(written(&["info", text(&store)]).contains("closed properly\n0 files, 1 directories"));
    let copied = written(&["import", text(&store), text(&from)]);
    assert!(
        copied.contains("2 directories, 3 files of 1076741824 bytes, 2 links and special files"),
        "{copied}"
    );
    let checked = written(&["check", text(&store)]);
    assert!(
        checked.contains("closed properly\n4 files, 3 directories"),
        "{checked}"
    );
    written(&["export", text(&store), text(&to)]);
    assert_eq!(fs::read(to.join("a/b/large")).unwrap(), vec![7; 3_000_000]);
    assert_eq!(fs::read(to.join("a/empty")).unwrap(), b"");
    let [first, second] = ["a/b/large", "name"].map(|name| fs::metadata(to.join(name)).unwrap());
    assert_eq!(first.ino(), second.ino());
    let before = fs::metadata(from.join("name")).unwrap();
    assert_eq!(
        (first.mode(), first.mtime_nsec()),
        (before.mode(), before.mtime_nsec())
    );
    assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("a/b"));
    assert_eq!(fs::metadata(to.join("sparse")).unwrap().len(), 1 << 30);

    let listed = written(&["ls", text(&store)]);
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    assert!(lines[0].starts_with("d 0") && lines[0].ends_with(" a"));
    assert!(lines[1].ends_with("link -> a/b"), "{listed}");
    assert!(lines[2].contains(" 3000000 name"), "{listed}");
    let output = run(&["cat", text(&store), "a/b/large"]);
    assert_eq!(output.stdout, vec![7; 3_000_000]);
    let (code, message) = refused(&["cat", text(&store), "a"]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("cannot use a: is a directory"),
        "{message}"
    );
    assert!(
        refused(&["ls", text(&store), "nowhere"])
            .1
            .contains("no such file")
    );
    written(&["import", text(&store), text(&from.join("a")), "--to", "a/b"]);
    assert!(written(&["ls", text(&store), "a/b"]).contains(" empty"));
    assert!(
        refused(&["import", text(&store), text(&from), "--to", "name"])
            .1
            .contains("not a directory")
    );

    // What is there already is not written over.
    let (code, message) = refused(&["import", text(&store), text(&from)]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("the store has that name already"),
        "{message}"
    );
    assert_eq!(refused(&["export", text(&store), text(&to)]).0, Some(1));
    let (code, message) = refused(&["make", text(&store), "--size", "8M"]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("File exists") && !message.contains("I/O error"),
        "{message}"
    );
}

#[test]
fn what_was_copied_before_the_store_was_full_stays_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (store, from) = (folder.path().join("store"), folder.path().join("from"));
    written(&["make", text(&store), "--size", "2M"]);
    let (code, message) = refused(&["import", text(&store), text(&from)]);
    assert_eq!(code, Some(1));
    assert!(!message.contains("stays"), "{message}");
    fs::create_dir_all(from.join("folder")).unwrap();
    fs::write(from.join("folder/large"), vec![1; 4 << 20]).unwrap();
    let (code, message) = refused(&["import", text(&store), text(&from)]);
    assert_eq!(code, Some(1));
    let said = "the store is full. What was copied stays, the file named in part: 1 directories, 0 files of 0 bytes";
    assert!(message.contains(said), "{message}");
    assert!(written(&["ls", text(&store), "folder"]).contains(" large"));
}

#[test]
fn bad_arguments_and_bad_files_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let missing = refused(&["check", text(&store)]);
    assert_eq!(missing.0, Some(1), "{missing:?}");
    assert!(missing.1.contains("No such file"), "{missing:?}");
    for size in ["", "x", "1Q", "-1", "99999999999T"] {
        assert_eq!(
            refused(&["make", text(&store), "--size", size]).0,
            Some(2),
            "{size}"
        );
    }
    for size in ["0", "4096", "40000"] {
        let (code, message) = refused(&["make", text(&store), "--size", size]);
        assert_eq!(code, Some(1), "{size}: {message}");
        assert!(!store.exists(), "{size}: nothing is left");
    }
    for size in ["8T", "9999999T"] {
        let (code, message) = refused(&["make", text(&store), "--size", size]);
        assert_eq!(code, Some(1), "{size}: {message}");
        assert!(message.contains("fewer than 2^31 pages"), "{message}");
        assert!(!store.exists(), "{size}: nothing is left");
    }
    for (inodes, code) in [("0", 2), ("18446744073709551615", 1)] {
        let told = refused(&["make", text(&store), "--size", "1M", "--inodes", inodes]);
        assert_eq!(told.0, Some(code), "{told:?}");
    }
    fs::write(&store, b"hello").unwrap();
    let (code, message) = refused(&["check", text(&store)]);
    assert_eq!(code, Some(1));
    assert!(message.contains("this is no store"), "{message}");
    let (code, message) = refused(&["check", text(folder.path())]);
    assert_eq!(code, Some(1));
    assert!(message.contains("is a directory"), "{message}");
}

#[test]
fn damage_is_named_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let [store, from] = ["store", "from"].map(|name| folder.path().join(name));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("file"), vec![0xA5; 10_000]).unwrap();
    written(&["make", text(&store), "--size", "1M"]);
    written(&["import", text(&store), text(&from)]);
    let mut bytes = fs::read(&store).unwrap();
    let at = bytes
        .windows(64)
        .position(|window| window == [0xA5; 64])
        .unwrap();
    bytes[at + 20] = 0;
    fs::write(&store, &bytes).unwrap();
    let output = run(&["check", text(&store)]);
    assert_eq!(output.status.code(), Some(1));
    let listed = String::from_utf8_lossy(&output.stdout);
    assert!(
        listed.contains("damaged: /file (inode 2): page 0: does not match its checksum"),
        "{listed}"
    );
    assert_eq!(fs::read(&store).unwrap(), bytes);
    let (code, message) = refused(&["export", text(&store), text(&folder.path().join("to"))]);
    assert_eq!(code, Some(1));
    assert!(message.contains("does not match its checksum"), "{message}");
}

#[test]
fn what_is_lost_after_a_crash_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let [store, to] = ["store", "to"].map(|name| folder.path().join(name));
    written(&["make", text(&store), "--size", "1M"]);
    {
        // It is not closed.
        let medium = spanlock_structures::store::Mapped::open(&store).unwrap();
        let options = spanlock_structures::store::Options::default();
        let (opened, _) = spanlock_structures::store::Store::<_>::open(medium, options).unwrap();
        let file = opened.create("/file", 0o600).unwrap();
        for page in 0..3 {
            file.write_at(&[0xA5; 4096], page * 4096).unwrap();
        }
    }
    let mut bytes = fs::read(&store).unwrap();
    // The second entry of the file's log.
    let is_log = |page: &&[u8]| page[4..8] == *b"SLog" && page[8] == 2;
    let log = bytes.chunks(4096).position(|page| is_log(&page)).unwrap();
    bytes[log * 4096 + 2 * 64 + 20] ^= 1;
    fs::write(&store, &bytes).unwrap();
    let lost = "left by a crash, or damaged: inode 2: 1 slots of log page";
    for command in ["info", "check"] {
        let told = written(&[command, text(&store)]);
        assert!(told.contains(lost), "{command}: {told}");
        assert!(told.contains("not closed"), "{command}: {told}");
    }
    assert_eq!(fs::read(&store).unwrap(), bytes, "nothing is changed");
    let exported = run(&["export", text(&store), text(&to)]);
    let told = String::from_utf8_lossy(&exported.stderr);
    assert!(exported.status.success(), "{told}");
    assert!(told.contains(lost), "{told}");
    let mut expected = vec![0xA5; 3 * 4096];
    expected[4096..2 * 4096].fill(0);
    assert!(fs::read(to.join("file")).unwrap() == expected);
    let again = run(&["export", text(&store), text(&folder.path().join("again"))]);
    assert!(again.status.success() && again.stderr.is_empty());
}
