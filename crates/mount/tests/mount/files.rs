//! Files and directories, case by case.

use crate::on_mount;
use rustix::fs::{AtFlags, CWD, RenameFlags, StatxFlags, renameat_with, statx};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

#[test]
fn programs_see_what_they_did_and_the_store_has_it() {
    on_mount(16 << 20, use_it, |store| {
        let names = store.readdir("/").expect("the root");
        let names: Vec<_> = names.into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, [&b"deep"[..], b"many", b"new", b"other"]);
        let file = store.open_file("/deep/er/file").expect("it is there");
        let stat = file.stat().expect("it is open");
        assert_eq!(
            (stat.size, stat.links, stat.attributes.mode),
            (5000, 2, 0o604)
        );
        assert_eq!(stat.attributes.modified, 1_000_000_000_000_000_007);
    });
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The kernel keeps attributes for a while, and must not keep this one.
#[test]
fn a_write_without_privileges_takes_the_files_away_at_once() {
    const NOBODY: u32 = 65534;
    let write = |mount: &Path| {
        let path = mount.join("file");
        // The mode alone: who asks for the time, too, is told all anew.
        let mode = || {
            let stat = statx(CWD, &path, AtFlags::empty(), StatxFlags::MODE);
            stat.expect("it is there").stx_mode & 0o7777
        };
        let file = File::create(&path).expect("room");
        let set = file.set_permissions(Permissions::from_mode(0o6755));
        set.expect("it is ours");
        assert_eq!(mode(), 0o6755);
        let mut echo = Command::new("echo");
        let written = echo.uid(NOBODY).stdout(file).status();
        assert!(written.expect("it is started").success());
        assert_eq!(mode(), 0o755);
    };
    if is_root() {
        on_mount(1 << 20, write, |_| ());
    } else {
        eprintln!("skipped: only root can become somebody else");
    }
}

fn use_it(mount: &Path) {
    let at = |name: &str| mount.join(name);
    fs::create_dir_all(at("deep/er")).expect("room");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(at("deep/er/file"));
    let file = file.expect("room");
    file.write_all_at(&[7; 10_000], 3).expect("room");
    file.set_len(5000).expect("it shrinks");
    file.set_len(9000).expect("it grows");
    let mut content = vec![1; 10_000];
    assert_eq!(file.read_at(&mut content, 0).expect("readable"), 9000);
    assert!(
        content[..3]
            .iter()
            .chain(&content[5000..9000])
            .all(|&byte| byte == 0)
    );
    assert!(content[3..5000].iter().all(|&byte| byte == 7));
    file.set_len(5000).expect("it shrinks");

    fs::hard_link(at("deep/er/file"), at("other")).expect("room");
    assert_eq!(file.metadata().expect("open").nlink(), 2);
    symlink("deep/er", at("link")).expect("room");
    assert_eq!(
        fs::read_link(at("link")).expect("a link"),
        Path::new("deep/er")
    );
    assert_eq!(fs::metadata(at("link/file")).expect("followed").len(), 5000);
    fs::rename(at("link"), at("new")).expect("free");
    assert_eq!(
        kind(fs::remove_dir(at("deep"))),
        ErrorKind::DirectoryNotEmpty
    );
    assert_eq!(kind(fs::create_dir(at("deep"))), ErrorKind::AlreadyExists);
    assert_eq!(
        kind(fs::rename(at("deep"), at("deep/er/self"))),
        ErrorKind::InvalidInput
    );
    assert_eq!(kind(fs::metadata(at("nothing"))), ErrorKind::NotFound);
    assert_eq!(
        kind(fs::remove_file(at(&"x".repeat(256)))),
        ErrorKind::InvalidFilename
    );
    assert_eq!(
        kind(File::create(at(&"x".repeat(256)))),
        ErrorKind::InvalidFilename
    );

    fs::set_permissions(at("other"), Permissions::from_mode(0o604)).expect("ours");
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 7);
    file.set_times(fs::FileTimes::new().set_modified(time))
        .expect("ours");
    let stat = fs::metadata(at("deep/er/file")).expect("there");
    assert_eq!(
        (stat.mode() & 0o7777, stat.mtime(), stat.mtime_nsec()),
        (0o604, 1_000_000_000, 7)
    );
    file.sync_all().expect("no device fails here");

    // Several requests' worth of names; and a reader that goes back to the beginning sees what is new.
    fs::create_dir(at("many")).expect("room");
    let names: BTreeSet<_> = (0..1000)
        .map(|number| format!("a-name-that-takes-some-room-{number}"))
        .collect();
    for name in &names {
        File::create(at("many").join(name)).expect("room");
    }
    let listed = fs::read_dir(at("many")).expect("a directory");
    let listed = listed.map(|entry| {
        entry
            .expect("listed")
            .file_name()
            .into_string()
            .expect("ascii")
    });
    assert_eq!(listed.collect::<BTreeSet<_>>(), names);
    for name in &names {
        fs::remove_file(at("many").join(name)).expect("there");
    }
    assert_eq!(fs::read_dir(at("many")).expect("a directory").count(), 0);
}

#[test]
fn a_rename_may_demand_a_free_name_or_exchange_two() {
    on_mount(
        4 << 20,
        |mount| {
            let rename = |from: &str, to: &str, flags| {
                renameat_with(CWD, mount.join(from), CWD, mount.join(to), flags)
            };
            fs::write(mount.join("file"), b"content").expect("room");
            fs::create_dir(mount.join("folder")).expect("room");
            let free = RenameFlags::NOREPLACE;
            assert_eq!(rename("file", "folder", free), Err(Errno::EXIST));
            rename("file", "free", free).expect("the name is free");
            rename("free", "folder", RenameFlags::EXCHANGE).expect("both are there");
            assert_eq!(fs::read(mount.join("folder")).expect("a file"), b"content");
            assert!(mount.join("free").is_dir());
            assert_eq!(
                rename("free", "none", RenameFlags::EXCHANGE),
                Err(Errno::NOENT)
            );
        },
        |store| assert_eq!(store.stat("/folder").expect("there").size, 7),
    );
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open() {
    on_mount(
        8 << 20,
        |mount| {
            let path = mount.join("file");
            fs::write(&path, b"before").expect("room");
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .expect("there");
            fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
            fs::remove_file(&path).expect("there");
            fs::write(&path, b"another").expect("room");
            file.write_all_at(b"after", 6).expect("room");
            file.set_permissions(Permissions::from_mode(0o600))
                .expect("ours");
            let stat = file.metadata().expect("open");
            assert_eq!(
                (stat.nlink(), stat.len(), stat.mode() & 0o7777),
                (0, 11, 0o600)
            );
            let mut content = [0; 11];
            file.read_exact_at(&mut content, 0).expect("readable");
            assert_eq!(&content, b"beforeafter");
            assert_eq!(fs::read(&path).expect("the new one"), b"another");
        },
        |store| assert_eq!(store.readdir("/").expect("the root").len(), 1),
    );
}

#[test]
fn a_directory_without_a_name_is_never_taken_for_another() {
    on_mount(
        8 << 20,
        |mount| {
            let path = mount.join("old");
            fs::create_dir(&path).expect("room");
            let open = File::open(&path).expect("there");
            fs::remove_dir(&path).expect("empty");
            open.sync_all().expect("its number is free after this");
            for number in 0..40 {
                fs::create_dir(mount.join(number.to_string())).expect("room");
            }
            let stat = open.metadata().expect("open");
            assert_eq!((stat.nlink(), stat.is_dir()), (0, true));
            let inside = format!(
                "/proc/self/fd/{}/file",
                std::os::fd::AsRawFd::as_raw_fd(&open)
            );
            assert_eq!(kind(File::create(inside)), ErrorKind::NotFound);
        },
        |_| (),
    );
}

#[test]
fn a_full_store_says_so_and_can_be_emptied() {
    on_mount(
        1 << 20,
        |mount| {
            let path = mount.join("file");
            let file = File::create(&path).expect("room");
            let full = (0..1000).find_map(|page| file.write_all_at(&[1; 4096], page * 4096).err());
            assert_eq!(full.expect("it is full").kind(), ErrorKind::StorageFull);
            drop(file);
            fs::remove_file(&path).expect("there");
            fs::write(&path, [2; 100_000]).expect("space is free again");
        },
        |store| assert_eq!(store.stat("/file").expect("there").size, 100_000),
    );
}
