//! Structures that somebody has forged: a value is changed, and the checksum made right, as `docs/store-format.md` says
//! how. Such a store is refused, or holds together: no operation panics, allocates without bound or ends never.

use crate::common::dump;
use crate::damage::{rounds, store};
use crc32c::{crc32c, crc32c_append};
use fastrand::Rng;
use spanlock_structures::store::{
    Error, FORMAT_VERSION, Kind, MAX_FILE_SIZE, Medium, Memory, Options, PAGE, Store, check,
    inspect,
};
use std::ops::Range;
use std::sync::Arc;

const LINE: usize = 64;

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    (0..N)
        .rev()
        .fold(0, |all, byte| all << 8 | u64::from(bytes[at + byte]))
}

/// CRC32C of numbers followed by bytes.
fn sum(numbers: &[u64], bytes: &[u8]) -> u32 {
    let seed = numbers
        .iter()
        .fold(0, |sum, number| crc32c_append(sum, &number.to_le_bytes()));
    crc32c_append(seed, bytes)
}

/// A structure: which bytes its checksum covers, where it is, and the numbers before them.
struct Structure {
    covered: Range<usize>,
    sum_at: usize,
    numbers: Vec<u64>,
}

/// Everything that has a checksum, but data.
fn structures(image: &[u8]) -> Vec<Structure> {
    let id = number::<8>(image, 24);
    let mut all: Vec<_> = [0, PAGE]
        .map(|copy| Structure {
            covered: copy..copy + 124,
            sum_at: copy + 124,
            numbers: vec![],
        })
        .into();
    for ino in 1..LINE {
        for half in [0, 32] {
            let at = 2 * PAGE + LINE * ino + half;
            if image[at..at + 32].iter().any(|byte| *byte != 0) {
                all.push(Structure {
                    covered: at + 4..at + 32,
                    sum_at: at,
                    numbers: vec![id, ino as u64],
                });
            }
        }
    }
    for (block, page) in image
        .chunks_exact(PAGE)
        .enumerate()
        .filter(|(_, page)| page[4..8] == *b"SLog")
    {
        let at = block * PAGE;
        let (ino, generation) = (number::<8>(page, 8), number::<8>(page, 16));
        all.push(Structure {
            covered: at + 4..at + 40,
            sum_at: at,
            numbers: vec![id, block as u64],
        });
        let mut slot = 1;
        while slot < PAGE / LINE {
            let slots = usize::from(page[slot * LINE + 5]);
            let end = (slot + slots.max(1)) * LINE;
            if slots > 0 && end <= PAGE {
                let covered = at + slot * LINE + 4..at + end;
                let numbers = vec![id, ino, generation, slot as u64];
                all.push(Structure {
                    covered,
                    sum_at: at + slot * LINE,
                    numbers,
                });
            }
            slot += slots.max(1);
        }
    }
    all
}

/// The format is as the document says: all checksums are found where it says, and are right.
#[test]
fn checksums_are_as_documented() {
    let (image, _) = store();
    let all = structures(&image);
    assert!(all.len() > 15, "{}", all.len());
    for Structure {
        covered,
        sum_at,
        numbers,
    } in all
    {
        let expected = sum(&numbers, &image[covered.clone()]);
        assert_eq!(
            number::<4>(&image, sum_at),
            u64::from(expected),
            "{covered:?}"
        );
    }
    assert_eq!(crc32c(b"123456789"), 0xE306_9283, "it is this CRC");
}

/// The store as programs of the first version have left it: a log for each file, whose entries count in its order
/// whatever their times, and no number in them.
fn first_version(mut image: Vec<u8>) -> Vec<u8> {
    for Structure {
        covered,
        sum_at,
        numbers,
    } in structures(&image)
    {
        match numbers[..] {
            [] => image[sum_at - 124 + 16] = 1,
            [_, ino, _, slot] if ino != 1 => {
                image[sum_at + 12..sum_at + 16].fill(0);
                let earlier = 1000 - slot;
                image[sum_at + 16..sum_at + 24].copy_from_slice(&earlier.to_le_bytes());
            }
            _ => continue,
        }
        let sum = sum(&numbers, &image[covered]);
        image[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    }
    image
}

#[test]
fn a_store_of_the_first_version_is_read_and_becomes_one_of_this() {
    let (image, expected) = store();
    let medium = Arc::new(Memory::from(first_version(image)));
    let report = check(&medium).expect("a store");
    assert!(report.version == 1 && report.is_sound(), "{report:?}");
    let open = || Store::<_>::open(Arc::clone(&medium), Options::default()).expect("it is sound");
    let (store, recovered) = open();
    assert!(recovered.closed);
    assert_eq!(dump(&store), Ok(expected));
    let file = store.open_file("/foo").expect("it is there");
    file.write_at(b"new", 4000).expect("room");
    drop(file);
    let changed = dump(&store);
    store.close().expect("nothing is open");
    let report = check(&medium).expect("a store");
    assert!(
        report.version == FORMAT_VERSION && report.is_sound(),
        "{report:?}"
    );
    assert_eq!(dump(&open().0), changed);
    // Neither copy is one of the first version any more.
    let mut copies = vec![0; 2 * PAGE];
    medium.read(0, &mut copies).expect("in memory");
    assert!(
        [16, PAGE + 16]
            .iter()
            .all(|&at| u32::from(copies[at]) == FORMAT_VERSION)
    );
}

/// Counters whose next number would be none.
#[test]
fn counters_at_their_end_are_refused() {
    let (image, _) = store();
    for at in [48, 56] {
        let mut image = image.clone();
        for copy in [0, PAGE] {
            image[copy + at..copy + at + 8].fill(0xFF);
            image[copy + 60..copy + 64].fill(0);
            let sum = sum(&[], &image[copy..copy + 124]);
            image[copy + 124..copy + 128].copy_from_slice(&sum.to_le_bytes());
        }
        let opened = Store::open(Memory::from(image), Options::default());
        assert!(matches!(opened, Err(Error::Corrupt(_))), "{at}");
    }
}

/// Changes a byte, or a number.
fn forge(image: &mut [u8], rng: &mut Rng) -> String {
    let mut all = structures(image);
    let Structure {
        covered,
        sum_at,
        numbers,
    } = all.swap_remove(rng.usize(..all.len()));
    let at = rng.usize(covered.clone());
    match rng.u8(..4) {
        0 => image[at] ^= 1 << rng.u8(..8),
        1 => image[at] = rng.u8(..),
        2 => image[at..covered.end.min(at + 4)].fill(0xFF),
        _ => image[at..covered.end.min(at + 8)].fill(0),
    }
    let sum = sum(&numbers, &image[covered.clone()]);
    image[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    format!("byte {at} of the structure at {covered:?}")
}

/// Uses what is there. Errors are answers, too.
fn use_all(store: &Store<Memory>) -> spanlock_structures::store::Result<()> {
    let mut buffer = [0; 3 * PAGE];
    let mut waiting = vec![String::from("/")];
    // A directory that contained itself would never end.
    for _ in 0..1000 {
        let Some(path) = waiting.pop() else { break };
        for entry in store.readdir(&path)? {
            let path = format!("{path}{}", String::from_utf8_lossy(&entry.name));
            if entry.kind == Kind::Directory {
                waiting.push(path + "/");
                continue;
            }
            let Ok(file) = store.open_file(&path) else {
                continue;
            };
            let size = file.stat()?.size;
            assert!(size <= MAX_FILE_SIZE);
            for at in [0, size / 2, size.saturating_sub(100)] {
                let _ = file.read_at(&mut buffer, at);
                let _ = file.write_at(&buffer[..5000], at);
            }
            let _ = file.append(b"more");
            let _ = file.truncate(size / 3);
        }
    }
    assert!(waiting.is_empty(), "the directories have no end");
    store.create("/a new one", 0o600)?.write_at(&buffer, 0)?;
    store.rename("/a new one", "/another")?;
    store.sync()
}

#[test]
fn forged_structures_are_refused_or_hold_together() {
    let (image, _) = store();
    let mut rng = Rng::with_seed(3);
    for _ in rounds(1000) {
        let mut image = image.clone();
        let forged: Vec<_> = (0..rng.usize(1..4))
            .map(|_| forge(&mut image, &mut rng))
            .collect();
        let judged = std::panic::catch_unwind(|| {
            let _ = check(&Memory::from(image.clone()));
            let _ = inspect(&Memory::from(image.clone()));
            let opened = Store::open(Memory::from(image.clone()), Options::default());
            if let Ok((store, _)) = opened {
                let _ = use_all(&store);
                let _ = store.close();
            }
        });
        assert!(judged.is_ok(), "{forged:?}");
    }
}

/// Numbers and times in entries of files that no store writes.
#[test]
fn entries_of_files_that_no_store_writes_are_refused() {
    let (image, _) = store();
    let of_a_file = |one: &Structure| matches!(one.numbers[..], [_, ino, _, _] if ino != 1);
    let mut all = structures(&image).into_iter().filter(of_a_file);
    let entry = all.next().expect("one was written");
    for (at, byte) in [(12, 2), (23, 0x7F)] {
        let mut image = image.clone();
        image[entry.sum_at + at] = byte;
        let sum = sum(&entry.numbers, &image[entry.covered.clone()]);
        image[entry.sum_at..entry.sum_at + 4].copy_from_slice(&sum.to_le_bytes());
        let report = check(&Memory::from(image.clone())).expect("a store");
        assert!(!report.is_sound(), "byte {at}");
        let opened = Store::open(Memory::from(image), Options::default());
        assert!(matches!(opened, Err(Error::Corrupt(_))), "byte {at}");
    }
}
