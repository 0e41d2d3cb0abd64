//! What an opening says of a store that was not closed and was damaged, case by case.

use crate::cases::{fresh, reopen};
use spanlock_structures::store::medium::Simulated;
use spanlock_structures::store::{
    Cause, Durable, Error, Geometry, Medium, Memory, Options, PAGE, Recovered, Store, check, make,
};
use std::sync::Arc;

/// Bytes of a slot of a log.
const SLOT: usize = 64;

const FILE: &str = "/file";

/// The inode of [`FILE`].
const INO: u64 = 2;

type Opened = spanlock_structures::store::Result<(Store<Arc<Memory>>, Recovered)>;

/// A store that was not closed, with a file of five pages. Each was written by an entry of its own.
fn image(durable: Durable) -> Vec<u8> {
    let medium = Arc::new(Simulated::new(vec![0; 64 * PAGE], durable));
    let geometry = Geometry {
        inodes: Some(64),
        id: Some(3),
    };
    make(&medium, &geometry).expect("it fits");
    let (store, _) = Store::open(Arc::clone(&medium), Options::default()).expect("it is sound");
    let file = store.create(FILE, 0o644).expect("room");
    for page in 0..5 {
        file.write_at(&[page as u8 + 1; PAGE], page * PAGE as u64)
            .expect("room");
    }
    store.mkdir("/folder", 0o755).expect("room");
    medium.content()
}

/// Where the log of an inode begins, which has one page.
fn log(image: &[u8], ino: u64) -> usize {
    let is_log = |page: &&[u8]| page[4..8] == *b"SLog" && page[8..16] == ino.to_le_bytes();
    let mut pages = image.chunks_exact(PAGE);
    let at = pages.position(|page| is_log(&page));
    at.expect("it has a log") * PAGE
}

/// Where the data of a page of the file are.
fn data(image: &[u8], page: u8) -> usize {
    let mut pages = image.chunks_exact(PAGE);
    let at = pages.position(|bytes| bytes.iter().all(|&byte| byte == page + 1));
    at.expect("it was written") * PAGE
}

fn open(image: Vec<u8>) -> (Arc<Memory>, Opened) {
    let medium = Arc::new(Memory::from(image));
    let opened = Store::open(Arc::clone(&medium), Options::default());
    (medium, opened)
}

/// The first byte of each page of the file, and `None` where it cannot be read.
fn pages(store: &Store<Arc<Memory>>) -> Vec<Option<u8>> {
    let file = store.open_file(FILE).expect("it is there");
    let size = file.stat().expect("it is open").size;
    let first = |at| {
        let mut byte = [0];
        match file.read_at(&mut byte, at) {
            Ok(_) => Some(byte[0]),
            Err(Error::Corrupt(_)) => None,
            Err(error) => panic!("{error}"),
        }
    };
    (0..size).step_by(PAGE).map(first).collect()
}

const WHOLE: [Option<u8>; 5] = [Some(1), Some(2), Some(3), Some(4), Some(5)];

/// Opens an image, and compares what is said and what is read. Then the store is closed, and is sound.
fn expect(image: Vec<u8>, cause: Option<Cause>, what: &str, expected: &[Option<u8>]) -> Recovered {
    let (medium, opened) = open(image);
    let (store, recovered) = opened.expect("it is opened");
    assert_eq!(recovered.cause(), cause, "{recovered}");
    assert!(recovered.to_string().contains(what), "{recovered}");
    assert_eq!(store.status().recovered, recovered);
    assert_eq!(pages(&store), expected, "{recovered}");
    store.close().expect("nothing is open");
    let report = check(&medium).expect("a store");
    let readable = expected.iter().all(Option::is_some);
    assert_eq!(report.findings.is_empty(), readable, "{report:?}");
    recovered
}

#[test]
fn nothing_is_said_of_what_is_whole() {
    for durable in [Durable::AtSync, Durable::Never] {
        expect(image(durable), None, "recovered", &WHOLE);
    }
}

#[test]
fn the_last_entry_may_have_been_under_way() {
    let mut image = image(Durable::AtSync);
    let at = log(&image, INO) + 5 * SLOT + 20;
    image[at] ^= 1;
    let said = "left by a crash: inode 2: 1 slots of log page";
    expect(image, Some(Cause::Crash), said, &WHOLE[..4]);
}

#[test]
fn an_entry_with_others_behind_it_may_be_damaged() {
    let mut image = image(Durable::AtSync);
    let at = log(&image, INO) + 2 * SLOT + 20;
    image[at] ^= 1;
    let said = "left by a crash, or damaged: inode 2: 1 slots of log page";
    let expected = [Some(1), Some(0), Some(3), Some(4), Some(5)];
    expect(image, Some(Cause::CrashOrDamage), said, &expected);
}

#[test]
fn a_slot_that_was_reserved_and_not_written_is_named() {
    let mut image = image(Durable::AtSync);
    let at = log(&image, INO) + 2 * SLOT;
    image[at..at + SLOT].fill(0);
    let expected = [Some(1), Some(0), Some(3), Some(4), Some(5)];
    expect(image, Some(Cause::Crash), "1 slots of log page", &expected);
}

#[test]
fn what_leads_to_entries_may_be_damaged() {
    // The header of the only log page, and both halves of the slot that leads there.
    let mut header = image(Durable::AtSync);
    let at = log(&header, INO) + 10;
    header[at] ^= 1;
    expect(
        header,
        Some(Cause::CrashOrDamage),
        "of its log is none",
        &[],
    );
    let mut slot = image(Durable::AtSync);
    for half in 0..2 {
        slot[2 * PAGE + INO as usize * SLOT + half * SLOT / 2 + 9] ^= 1;
    }
    expect(slot, Some(Cause::CrashOrDamage), "half of its slot", &[]);
    let mut link = image(Durable::AtSync);
    let at = log(&link, INO) + 50;
    link[at] ^= 1;
    expect(
        link,
        Some(Cause::CrashOrDamage),
        "the link of log page",
        &WHOLE,
    );
}

#[test]
fn a_page_that_does_not_match_is_older_or_an_error() {
    let damaged = |durable| {
        let mut image = image(durable);
        let at = data(&image, 3) + 7;
        image[at] ^= 1;
        image
    };
    let expected = [Some(1), Some(2), Some(3), Some(0), Some(5)];
    let said = "1 pages do not match the checksums";
    let cause = Some(Cause::CrashOrDamage);
    let recovered = expect(damaged(Durable::AtSync), cause, said, &expected);
    assert_eq!(recovered.lost_pages, 1);
    // No crash explains it where the medium keeps the order.
    let expected = [Some(1), Some(2), Some(3), None, Some(5)];
    expect(damaged(Durable::Never), None, "recovered", &expected);
}

#[test]
fn a_gap_in_the_directories_is_damage_where_the_medium_keeps_the_order() {
    let damaged = |durable| {
        let mut image = image(durable);
        // The entry that made the file: its name is there once.
        let log = log(&image, 1);
        let mut names = image[log..log + PAGE].windows(5);
        let at = names
            .position(|name| name == b"\x04file")
            .expect("its name");
        image[log + at + 1] ^= 1;
        image
    };
    let (_, opened) = open(damaged(Durable::AtSync));
    let (store, recovered) = opened.expect("it is opened");
    assert_eq!(recovered.cause(), Some(Cause::CrashOrDamage), "{recovered}");
    assert_eq!(recovered.lost_changes, 1, "{recovered}");
    assert!(store.readdir("/").expect("the root").is_empty());
    let (medium, opened) = open(damaged(Durable::Never));
    let error = opened.map(drop).expect_err("it is refused").to_string();
    assert!(
        error.contains("before number 2 is missing, and 1 changes are dropped"),
        "{error}"
    );
    assert!(!check(&medium).expect("a store").is_sound());
}

#[test]
fn a_copy_of_the_superblock_is_written_anew() {
    for copy in 0..2 {
        let mut image = image(Durable::AtSync);
        image[copy * PAGE + 50] ^= 1;
        let said = "damaged: one copy of the superblock";
        expect(image, Some(Cause::DamagedCopy), said, &WHOLE);
    }
}

/// Recovery empties what is behind the end of a file. It must not give a damaged page a new checksum.
#[test]
fn the_last_page_of_a_file_stays_damaged() {
    let (medium, store) = fresh(1 << 20);
    let file = store.create(FILE, 0o644).expect("room");
    file.write_at(&[9; 3000], 0).expect("room");
    drop(file);
    store.close().expect("nothing is open");
    drop(reopen(&medium));
    let mut image = vec![0; 1 << 20];
    medium.read(0, &mut image).expect("memory");
    let at = image.windows(3000).position(|part| part == [9; 3000]);
    let at = at.expect("it was written");
    image[at + 100] ^= 1;
    image[at + 3500] ^= 1;
    expect(image, None, "recovered", &[None]);
}

/// An entry is damaged while the store is open. A rewriting of the log would lose it without a word.
#[test]
fn a_damaged_log_is_not_rewritten() {
    let (medium, store) = fresh(1 << 20);
    let file = store.create(FILE, 0o644).expect("room");
    file.write_at(&[1; 100], 0).expect("room");
    let mut image = vec![0; 1 << 20];
    medium.read(0, &mut image).expect("memory");
    let at = log(&image, INO) + SLOT + 20;
    medium.write(at as u64, &[image[at] ^ 1]).expect("memory");
    let refused = (0..1000).find_map(|_| file.write_at(&[2; 100], PAGE as u64).err());
    let refused = refused.expect("the log is due to be rewritten").to_string();
    assert!(refused.contains("1 slots of log page"), "{refused}");
    drop((file, store));
    let (_, recovered) = Store::open(medium, Options::default()).expect("it is opened");
    assert_eq!(recovered.cause(), Some(Cause::CrashOrDamage), "{recovered}");
}
