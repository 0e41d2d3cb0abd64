//! Damaged stores: a clear error, never a panic, and never other data than was written.

use crate::cases::{fresh, reopen};
use crate::common::{Dump, Model, Op, dump, perform};
use fastrand::Rng;
use spanlock_structures::store::medium::Simulated;
use spanlock_structures::store::{
    Durable, Error, Geometry, Mapped, Medium, Memory, Options, PAGE, Store, check, make,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OPS: [Op; 10] = [
    Op::Mkdir("/A"),
    Op::Create("/A/foo"),
    Op::Write("/A/foo", 0, 30_000, 3),
    Op::Create("/bar"),
    Op::Append("/bar", 5000, 4),
    Op::Truncate("/A/foo", 20_000),
    Op::Link("/bar", "/A/bar"),
    Op::Rename("/A/foo", "/foo"),
    Op::Write("/foo", 100, 10, 5),
    Op::Create("/empty"),
];

/// A closed store with a few files, and what is in it.
pub fn store() -> (Vec<u8>, Dump) {
    let medium = Arc::new(Simulated::new(vec![0; 64 * PAGE], Durable::AtSync));
    let geometry = Geometry {
        inodes: Some(64),
        id: Some(9),
    };
    make(&medium, &geometry).expect("it fits");
    let mut model = Model::default();
    for half in OPS.chunks(5) {
        let (store, _) = Store::open(Arc::clone(&medium), Options::default()).expect("it is sound");
        for op in half {
            assert!(perform(&store, op) && model.perform(op), "{op:?}");
        }
        store.close().expect("nothing is open");
    }
    (medium.content(), model.dump())
}

fn open(image: &[u8]) -> spanlock_structures::store::Result<Store<Memory>> {
    Store::open(Memory::from(image.to_vec()), Options::default()).map(|(store, _)| store)
}

/// An image with damage: either nothing that mattered was hit, or an error says so and `check` names it.
fn judge(image: &[u8], expected: &Dump, what: &str) {
    let report = check(&Memory::from(image.to_vec()));
    let found = match open(image) {
        Ok(store) => match dump(&store) {
            Ok(dump) => {
                assert_eq!(&dump, expected, "{what}: other data");
                return;
            }
            Err(error) => error,
        },
        Err(error) => error.to_string(),
    };
    assert!(!found.is_empty());
    match report {
        Ok(report) => assert!(
            !report.is_sound(),
            "{what}: {found}, and the check finds nothing"
        ),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Numbers from 0 on, for so many rounds, or for `SPANLOCK_DAMAGE_SECONDS`.
pub fn rounds(few: usize) -> impl Iterator<Item = usize> {
    let told = std::env::var("SPANLOCK_DAMAGE_SECONDS").ok();
    let seconds = told.map(|text| text.parse().expect("a number of seconds"));
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    (0..).take_while(move |&round| end.map_or(round < few, |end| Instant::now() < end))
}

#[test]
fn flipped_bits_are_noticed_or_harmless() {
    let (image, expected) = store();
    judge(&image, &expected, "nothing");
    let mut rng = Rng::with_seed(1);
    let used = image
        .chunks(64)
        .enumerate()
        .filter(|(_, line)| line.iter().any(|&byte| byte != 0));
    let used: Vec<_> = used.map(|(line, _)| line * 64).collect();
    for _ in rounds(1500) {
        let mut image = image.clone();
        let at = rng.choice(&used).expect("something is used") + rng.usize(..64);
        let bit = rng.u32(..8);
        image[at] ^= 1 << bit;
        judge(&image, &expected, &format!("bit {bit} of byte {at}"));
    }
}

#[test]
fn garbage_is_refused_without_a_panic() {
    let (image, expected) = store();
    let mut rng = Rng::with_seed(2);
    for _ in rounds(300) {
        let mut image = image.clone();
        // A piece of it becomes zeros, noise, or another piece.
        let length = [8, 64, 512, PAGE][rng.usize(..4)];
        let at = rng.usize(..image.len() / length) * length;
        match rng.u8(..3) {
            0 => image[at..at + length].fill(0),
            1 => rng.fill(&mut image[at..at + length]),
            _ => {
                let from = rng.usize(..image.len() / length) * length;
                image.copy_within(from..from + length, at);
            }
        }
        // Zeros may look as if nothing had been written: then older data may be seen, but nothing panics.
        if let Ok(store) = open(&image) {
            let _ = dump(&store);
        }
        let _ = check(&Memory::from(image));
        let _ = &expected;
    }
}

#[test]
fn what_is_no_store_is_refused() {
    let refused = |image: &[u8]| open(image).map(drop).expect_err("it is refused");
    assert!(matches!(refused(&[]), Error::NotAStore(_)));
    assert!(matches!(refused(&[0; 100]), Error::NotAStore(_)));
    assert!(matches!(refused(&[0; 1 << 20]), Error::NotAStore(_)));
    assert!(matches!(refused(&[0xFF; 1 << 20]), Error::NotAStore(_)));
    let (image, _) = store();
    let error = refused(&image[..image.len() - 1]);
    assert!(
        error
            .to_string()
            .contains("should have 262144 bytes and has 262143"),
        "{error}"
    );
    assert!(matches!(refused(&image[..PAGE + 100]), Error::Corrupt(_)));
}

#[test]
fn another_version_is_refused_by_its_number() {
    let (mut image, _) = store();
    for copy in [0, PAGE] {
        image[copy + 16] = 3;
    }
    let error = open(&image).map(drop).expect_err("it is refused");
    assert!(matches!(error, Error::Version(3)), "{error}");
    assert!(error.to_string().contains("version 3"), "{error}");
    assert!(matches!(
        check(&Memory::from(image)),
        Err(Error::Version(3))
    ));
}

#[test]
fn a_medium_that_cannot_be_read_is_an_error() {
    let (image, _) = store();
    let mut refused = 0;
    for page in 0..64 {
        let medium = Arc::new(Simulated::new(image.clone(), Durable::AtSync));
        medium.make_unreadable(page * PAGE as u64, 1);
        let told = match Store::open(Arc::clone(&medium), Options::default()) {
            Ok((store, _)) => dump(&store).err(),
            Err(error) => Some(error.to_string()),
        };
        refused += u32::from(told.is_some());
        assert!(told.is_none_or(|told| told.contains("cannot be read")));
        if let Ok(report) = check(&medium)
            && page > 2
        {
            let blamed = |finding: &spanlock_structures::store::Finding| {
                finding.what.contains("cannot be read")
            };
            assert!(report.findings.iter().all(blamed), "{report:?}");
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_damaged_page_is_never_read_as_data_and_the_check_names_its_file() {
    let (medium, store) = fresh(1 << 20);
    let data = crate::common::bytes(3 * PAGE, 7);
    store
        .create("/file", 0o644)
        .expect("room")
        .write_at(&data, 0)
        .expect("room");
    store.close().expect("nothing is open");
    // The page of data in the middle.
    let mut image = vec![0; 1 << 20];
    medium.read(0, &mut image).expect("memory");
    let at = image
        .windows(PAGE)
        .step_by(PAGE)
        .position(|page| page == &data[PAGE..2 * PAGE]);
    let at = (at.expect("it is there") * PAGE + 1000) as u64;
    medium.write(at, &[image[at as usize] ^ 1]).expect("memory");
    let report = check(&medium).expect("a store");
    assert_eq!(report.findings.len(), 1);
    assert!(
        report.findings[0]
            .to_string()
            .contains("/file (inode 2): page 1:"),
        "{report:?}"
    );
    let store = reopen(&medium);
    let file = store.open_file("/file").expect("it is there");
    let mut part = [0; 10];
    assert!(matches!(
        file.read_at(&mut part, 5000),
        Err(Error::Corrupt(_))
    ));
    assert_eq!(
        file.read_at(&mut part, 100).expect("that page is sound"),
        10
    );
    // A part of the page cannot be written, since the rest is lost; all of it can.
    assert!(matches!(file.write_at(b"x", 5000), Err(Error::Corrupt(_))));
    file.write_at(&data[PAGE..2 * PAGE], 4096).expect("room");
    assert_eq!(
        file.read_at(&mut part, 5000).expect("it is whole again"),
        10
    );
}

#[test]
fn a_device_that_is_not_there_or_empty_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    assert!(matches!(Mapped::open(&path), Err(Error::Io(_))));
    std::fs::write(&path, b"").expect("a file");
    assert!(matches!(Mapped::open(&path), Err(Error::NotAStore(_))));
    assert!(matches!(Mapped::open(folder.path()), Err(Error::Io(_))));
    std::fs::write(&path, b"hello").expect("a file");
    let medium = Mapped::open_read_only(&path).expect("a file");
    assert!(matches!(check(&medium), Err(Error::NotAStore(_))));
    assert!(make(&medium, &Geometry::default()).is_err());
    assert!(medium.write(0, b"x").is_err(), "it is read-only");
}
