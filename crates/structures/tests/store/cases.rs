//! What users rely on, case by case.

use crate::common::bytes;
use spanlock_structures::store::{
    Durability, Durable, Error, Geometry, Kind, MAX_FILE_SIZE, Mapped, Memory, NewNode, Options,
    ROOT,
};
use spanlock_structures::store::{Store, check, make, medium::Simulated};
use std::io::{Read, Write, pipe};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::thread;

/// An empty store in memory.
pub fn fresh(bytes: u64) -> (Arc<Memory>, Store<Arc<Memory>>) {
    let medium = Arc::new(Memory::new(bytes));
    make(&medium, &Geometry::default()).expect("it fits");
    let store = reopen(&medium);
    (medium, store)
}

pub fn reopen(medium: &Arc<Memory>) -> Store<Arc<Memory>> {
    Store::open(Arc::clone(medium), Options::default())
        .expect("it is sound")
        .0
}

#[test]
fn a_file_is_mapped_survives_its_process_and_is_not_opened_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let medium = Mapped::create(&path, 1 << 20).expect("space");
    assert!(matches!(Mapped::open(&path), Err(Error::Busy)));
    make(&medium, &Geometry::default()).expect("it fits");
    drop(medium);
    let open = || {
        Store::<_>::open(
            Mapped::open(&path).expect("it is there"),
            Options::default(),
        )
    };
    let (store, _) = open().expect("it is sound");
    assert_eq!(store.status().durability, Durability::Process);
    store
        .create("file", 0o600)
        .expect("room")
        .write_at(b"text", 5000)
        .expect("room");
    drop(store);
    let (store, recovered) = open().expect("it is sound");
    assert!(
        !recovered.closed && recovered.lost_pages == 0,
        "{recovered:?}"
    );
    let mut text = [0; 10];
    let file = store.open_file("file").expect("it is there");
    assert_eq!(file.read_at(&mut text, 4998).expect("it is sound"), 6);
    assert_eq!(&text[..6], b"\0\0text");
    drop(file);
    store.close().expect("it is closed");
    assert!(open().expect("it is sound").1.closed);
    assert!(matches!(Mapped::create(&path, 1 << 20), Err(Error::Io(_))));
}

/// A child has copies of all descriptors until it runs its program.
#[test]
fn a_store_that_is_gone_is_free_while_a_child_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let medium = Mapped::create(&path, 1 << 20).expect("space");
    let (mut is_started, starts) = pipe().expect("descriptors");
    let (goes_on, mut go_on) = pipe().expect("descriptors");
    let child = thread::spawn(move || {
        let mut child = Command::new("true");
        let stands_still = move || {
            (&starts).write_all(b"s")?;
            (&goes_on).read_exact(&mut [0])
        };
        // SAFETY: it makes system calls and allocates nothing.
        unsafe { child.pre_exec(stands_still) };
        child.status()
    });
    is_started.read_exact(&mut [0]).expect("it starts");
    drop(medium);
    let opened = Mapped::open(&path);
    go_on.write_all(b"g").expect("it waits");
    child.join().expect("no panic").expect("it is started");
    opened.expect("nobody has it open");
}

/// Before any space is reserved.
#[test]
fn more_pages_than_a_store_can_have_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for bytes in [1 << 43, u64::MAX] {
        let path = folder.path().join("store");
        let refused = Mapped::create(&path, bytes);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        assert!(!path.exists(), "nothing is left");
    }
}

#[test]
fn holes_take_no_pages_and_large_offsets_are_refused() {
    let (_, store) = fresh(1 << 20);
    let file = store.create("/sparse", 0o644).expect("room");
    file.write_at(b"end", MAX_FILE_SIZE - 3).expect("room");
    let stat = file.stat().expect("open");
    assert_eq!((stat.size, stat.pages), (MAX_FILE_SIZE, 1));
    assert!(matches!(
        file.write_at(b"x", MAX_FILE_SIZE),
        Err(Error::TooLarge)
    ));
    assert!(matches!(
        file.write_at(b"x", u64::MAX),
        Err(Error::TooLarge)
    ));
    assert!(matches!(file.append(b"x"), Err(Error::TooLarge)));
    assert!(matches!(
        file.truncate(MAX_FILE_SIZE + 1),
        Err(Error::TooLarge)
    ));
    let mut hole = [1; 100];
    assert_eq!(file.read_at(&mut hole, 1 << 40).expect("a hole"), 100);
    assert_eq!(hole, [0; 100]);
    assert_eq!(
        file.read_at(&mut hole, u64::MAX).expect("behind the end"),
        0
    );
    file.truncate(0).expect("room");
    assert_eq!(file.stat().expect("open").pages, 0);
}

#[test]
fn a_write_larger_than_an_entry_is_read_back() {
    let (medium, store) = fresh(16 << 20);
    let data = bytes(5 << 20, 3);
    let file = store.create("/large", 0o644).expect("room");
    file.write_at(&data, 1234).expect("room");
    drop((file, store));
    let store = reopen(&medium);
    let mut back = vec![0; data.len()];
    let file = store.open_file("/large").expect("it is there");
    assert_eq!(file.read_at(&mut back, 1234).expect("sound"), data.len());
    assert!(back == data);
}

#[test]
fn a_full_store_says_so_can_be_emptied_and_used_again() {
    let (medium, store) = fresh(1 << 20);
    for round in 0..3 {
        let file = store.create("/filler", 0o644).expect("room");
        let page = bytes(4096, round);
        let mut written = 0;
        let full = loop {
            match file.append(&page) {
                Ok(_) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::NoSpace), "{full}");
        assert!(written > 200, "{written} pages in a store of 256");
        assert!(matches!(file.write_at(&page, 0), Err(Error::NoSpace)));
        file.truncate(100).expect("the reserve");
        file.write_at(&page, 4096).expect("a sync has made room");
        store.unlink("/filler").expect("the reserve");
        let mut back = [0; 100];
        assert_eq!(file.read_at(&mut back, 0).expect("still open"), 100);
        assert_eq!(back, page[..100]);
    }
    store.sync().expect("memory");
    let space = store.status().space;
    // The superblock, the inode table, and the directories' log.
    assert_eq!(space.pages - space.free, 2 + 1 + 1, "{space:?}");
    store.close().expect("nothing is open");
    assert!(check(&medium).expect("a store").findings.is_empty());
}

#[test]
fn two_names_change_places_in_one_step() {
    let (medium, store) = fresh(1 << 20);
    store.mkdir("/a", 0o755).expect("room");
    store.mkdir("/a/inner", 0o755).expect("room");
    store.create("/a/inner/below", 0o644).expect("room");
    store.create("/file", 0o600).expect("room");
    let [a, root] = ["/a", "/"].map(|path| store.stat(path).expect("there").ino);
    let (inner, file) = (store.stat("/a/inner"), store.stat("/file"));
    let (inner, file) = (inner.expect("there").ino, file.expect("there").ino);
    let exchange = |from, name: &str, to, new_name: &str| {
        store.exchange_nodes(from, name.as_bytes(), to, new_name.as_bytes())
    };
    assert!(matches!(
        exchange(root, "file", root, "none"),
        Err(Error::NotFound)
    ));
    assert!(matches!(
        exchange(root, "a", a, "inner"),
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        exchange(a, "inner", root, "a"),
        Err(Error::Invalid(_))
    ));
    exchange(root, "file", root, "file").expect("nothing changes");
    exchange(root, "file", a, "inner").expect("both are there");
    drop(store);
    assert!(check(&medium).expect("a store").is_sound());
    let store = reopen(&medium);
    assert_eq!(store.stat("/a/inner").expect("there").ino, file);
    assert_eq!(store.stat("/file").expect("there").ino, inner);
    assert_eq!(store.parent(inner).expect("a directory"), root);
    assert_eq!(store.stat("/a").expect("there").links, 2);
    assert!(store.stat("/file/below").is_ok());
}

#[test]
fn logs_are_rewritten_and_stay_short() {
    let (medium, store) = fresh(1 << 20);
    let file = store.create("/file", 0o644).expect("room");
    for round in 0..20_000_u32 {
        file.write_at(&round.to_le_bytes(), u64::from(round % 7) * 4096)
            .expect("space comes back");
    }
    for _ in 0..3000 {
        store.rename("/file", "/other").expect("space comes back");
        store.rename("/other", "/file").expect("space comes back");
    }
    drop((file, store));
    let report = check(&medium).expect("a store");
    assert!(report.log_pages < 20, "{report:?}");
    assert!(report.is_sound(), "{report:?}");
    let store = reopen(&medium);
    let file = store.open_file("/file").expect("it is there");
    for page in 0..7_u32 {
        let mut last = [0; 4];
        file.read_at(&mut last, u64::from(page) * 4096)
            .expect("sound");
        assert_eq!(u32::from_le_bytes(last) % 7, page);
        assert!(u32::from_le_bytes(last) >= 20_000 - 7);
    }
}

#[test]
fn a_failed_sync_poisons_the_store() {
    let medium = Arc::new(Simulated::new(vec![0; 1 << 20], Durable::AtSync));
    make(&medium, &Geometry::default()).expect("it fits");
    let (store, _) = Store::open(Arc::clone(&medium), Options::default()).expect("it is sound");
    let file = store.create("/file", 0o644).expect("room");
    file.write_at(b"before", 0).expect("room");
    medium.fail_syncs_after(0);
    assert!(matches!(store.sync(), Err(Error::Io(_))));
    assert!(store.status().poisoned);
    // A second sync must not say that all is well.
    assert!(matches!(store.sync(), Err(Error::Poisoned)));
    assert!(matches!(file.write_at(b"after", 0), Err(Error::Poisoned)));
    assert!(matches!(file.truncate(0), Err(Error::Poisoned)));
    assert!(matches!(store.mkdir("/A", 0o755), Err(Error::Poisoned)));
    let mut text = [0; 6];
    assert_eq!(file.read_at(&mut text, 0).expect("reading goes on"), 6);
    assert_eq!(&text, b"before");
    drop(file);
    assert!(store.close().is_err());
}

#[test]
fn each_mode_promises_what_it_says() {
    for (durable, asked, told) in [
        (Durable::AtFence, Durability::Process, Durability::Dax),
        (Durable::AtSync, Durability::Process, Durability::Process),
        (Durable::AtSync, Durability::Sync, Durability::Sync),
    ] {
        let medium = Arc::new(Simulated::new(vec![0; 1 << 20], durable));
        make(&medium, &Geometry::default()).expect("it fits");
        let options = Options {
            durability: asked,
            ..Options::default()
        };
        let (store, _) = Store::open(Arc::clone(&medium), options).expect("it is sound");
        assert_eq!(store.status().durability, told);
    }
    let medium = Memory::new(1 << 20);
    make(&medium, &Geometry::default()).expect("it fits");
    let options = Options {
        durability: Durability::Dax,
        ..Options::default()
    };
    assert!(matches!(
        Store::open(medium, options),
        Err(Error::Unsupported(_))
    ));
}

#[test]
fn nodes_have_attributes_targets_and_times() {
    let (medium, store) = fresh(1 << 20);
    store.symlink("some/where", "/link").expect("room");
    let device = NewNode {
        device: 259,
        ..NewNode::of(Kind::Special, 0o20_644)
    };
    store.make_node(ROOT, b"device", device).expect("room");
    store
        .create("/file", 0o640)
        .expect("room")
        .write_at(b"x", 0)
        .expect("room");
    let file = store.stat("/file").expect("it is there").ino;
    store
        .set_attributes(file, |set| {
            (set.uid, set.mode, set.modified) = (7, 0o600, 12_345)
        })
        .expect("room");
    let before = store.stat("/file").expect("it is there");
    assert_eq!(
        (before.attributes.uid, before.attributes.modified),
        (7, 12_345)
    );
    drop(store);
    let store = reopen(&medium);
    assert_eq!(store.stat("/file").expect("it is there"), before);
    assert_eq!(
        store
            .target(store.stat("/link").expect("there").ino)
            .expect("a link"),
        b"some/where"
    );
    assert_eq!(store.stat("/device").expect("there").device, 259);
    assert!(matches!(
        store.open_file("/link"),
        Err(Error::Unsupported(_))
    ));
    let file = store.open_file("/file").expect("it is there");
    file.write_at(b"y", 0).expect("room");
    assert!(file.stat().expect("open").attributes.modified > 12_345);
}

/// A number that is used again has another generation.
#[test]
fn a_number_is_used_again() {
    let (_, store) = fresh(1 << 20);
    let make = |name: &[u8]| {
        let made = store.make_node(ROOT, name, NewNode::of(Kind::File, 0o644));
        let stat = made.expect("room");
        (stat.ino, stat.generation)
    };
    let first = make(b"first");
    store.unlink_name(ROOT, b"first").expect("it is there");
    store.sync().expect("in memory");
    let second = make(b"second");
    assert_eq!(second.0, first.0);
    assert_ne!(second.1, first.1);
}

#[test]
fn names_are_checked() {
    let (_, store) = fresh(1 << 20);
    let make = |name: &[u8]| store.make_node(ROOT, name, NewNode::of(Kind::File, 0o644));
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
        assert!(matches!(make(name), Err(Error::Invalid(_))), "{name:?}");
    }
    assert!(matches!(make(&[b'n'; 256]), Err(Error::NameTooLong)));
    make(&[b'n'; 255]).expect("255 bytes are allowed");
    assert!(matches!(make(&[b'n'; 255]), Err(Error::Exists)));
    assert!(matches!(
        store.create("/no/where", 0o644),
        Err(Error::NotFound)
    ));
    assert!(matches!(store.mkdir("/", 0o755), Err(Error::Invalid(_))));
    assert!(matches!(store.stat("/../x"), Err(Error::Invalid(_))));
    let long = vec![b't'; 5000];
    let link = NewNode {
        target: long,
        ..NewNode::of(Kind::Symlink, 0o777)
    };
    assert!(matches!(
        store.make_node(ROOT, b"l", link),
        Err(Error::NameTooLong)
    ));
    let free = store.status().space.free_inodes;
    assert_eq!(
        store.status().space.inodes - free,
        3,
        "what fails keeps no inode"
    );
}
