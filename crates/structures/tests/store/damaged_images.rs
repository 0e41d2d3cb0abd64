//! Images of stores with one or two damaged bytes, of which some were closed, and some not.
//!
//! The oracle: what is read is what was there, or the opening or a read is an error, or the opening says that something
//! does not fit. Then something may be missing, and names and pages may be as they were earlier. But nothing is read
//! that was never written there.

use crate::common::{Dump, Model, Op, Seen, dump, perform};
use fastrand::Rng;
use spanlock_structures::store::medium::Simulated;
use spanlock_structures::store::{
    Durable, Error, File, Geometry, Kind, Memory, Options, PAGE, Recovered, Store, check, make,
};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of a line: a slot of a log, an inode's slot.
const LINE: usize = 64;

const FILES: [&str; 4] = ["/a", "/b", "/d/c", "/d/e"];

/// Damaged images of each kind of store.
fn images() -> u64 {
    spanlock_testkit::setting("SPANLOCK_DAMAGE_IMAGES", 300)
}

/// Of each store, so many damaged images are made.
const DAMAGES: u64 = 50;

/// A store, and what was in it after each operation.
struct History {
    image: Vec<u8>,
    models: Vec<Model>,
}

/// What is done in one opening of a store.
fn operations(rng: &mut Rng) -> Vec<Op> {
    let file = |rng: &mut Rng| rng.choice(FILES).expect("some");
    let first = file(rng);
    let mut ops = vec![
        Op::Mkdir("/d"),
        Op::Create(first),
        Op::Write(first, 0, 5000, 1),
    ];
    ops.push(Op::Create(file(rng)));
    for _ in 0..rng.usize(10..30) {
        let (path, at, tag) = (file(rng), rng.u64(..30_000), rng.u8(..));
        match rng.u8(..16) {
            0 => ops.push(Op::Create(path)),
            1 => ops.push(Op::Link(path, file(rng))),
            2 => ops.push(Op::Rename(path, file(rng))),
            3 => ops.push(Op::Unlink(path)),
            4 => ops.push(Op::Sync),
            // The log gets a second page, or is rewritten.
            5 => ops.extend((0..rng.u64(60..300)).map(|n| Op::Write(path, n % 7 * 1000, 300, tag))),
            6 | 7 => ops.push(Op::Truncate(path, at)),
            8 | 9 => ops.push(Op::Append(path, rng.usize(1..6000), tag)),
            _ => ops.push(Op::Write(path, at, rng.usize(1..9000), tag)),
        }
    }
    ops
}

/// Opens and closes a new store a few times. It is closed in the end, or just dropped.
fn history(seed: u64, durable: Durable, closed: bool) -> History {
    let mut rng = Rng::with_seed(seed);
    let medium = Arc::new(Simulated::new(vec![0; 256 * PAGE], durable));
    let geometry = Geometry {
        inodes: Some(64),
        id: Some(11),
    };
    make(&medium, &geometry).expect("it fits");
    let mut models = vec![Model::default()];
    let openings = rng.choice([1, 1, 2, 3]).expect("some");
    for opening in 1..=openings {
        let (store, _) = Store::open(Arc::clone(&medium), Options::default()).expect("it is sound");
        for op in operations(&mut rng) {
            let mut model = models.last().expect("the first").clone();
            assert_eq!(perform(&store, &op), model.perform(&op), "{op:?}");
            models.push(model);
        }
        drop(medium.take_events());
        if closed || opening < openings {
            store.close().expect("nothing is open");
        }
    }
    let image = medium.content();
    History { image, models }
}

/// Damages one or two bytes of what is used. Half of them are in the store's own structures.
fn damage(image: &mut [u8], rng: &mut Rng) -> String {
    let is_log = |line: usize| image[line / PAGE * PAGE + 4..][..4] == *b"SLog";
    let used = (0..image.len()).step_by(LINE);
    let used = used.filter(|&line| image[line..][..LINE].iter().any(|&byte| byte != 0));
    let (own, data): (Vec<_>, Vec<_>) = used.partition(|&line| line < 3 * PAGE || is_log(line));
    let places = (0..rng.usize(1..3)).map(|_| {
        let lines = [&own, &data][rng.usize(..2)];
        let at = rng.choice(lines).expect("something is used") + rng.usize(..LINE);
        image[at] ^= rng.u8(1..);
        format!("byte {at}, in page {}", at / PAGE)
    });
    places.collect::<Vec<_>>().join("; ")
}

/// What can be read of a store: of each file, the pages that can be read.
struct Found {
    names: Dump,
    pages: BTreeMap<String, (u64, BTreeMap<usize, Vec<u8>>)>,
    errors: usize,
}

fn read_all(store: &Store<Arc<Memory>>) -> Result<Found, String> {
    let mut found = Found {
        names: Dump::new(),
        pages: BTreeMap::new(),
        errors: 0,
    };
    let mut waiting = vec![String::new()];
    while let Some(folder) = waiting.pop() {
        let entries = store.readdir(&(folder.clone() + "/"));
        for entry in entries.map_err(|error| error.to_string())? {
            let path = format!("{folder}/{}", String::from_utf8_lossy(&entry.name));
            if entry.kind == Kind::Directory {
                found.names.insert(path.clone(), Seen::Directory);
                waiting.push(path);
                continue;
            }
            let file = store.open_file(&path).map_err(|error| error.to_string())?;
            let stat = file.stat().map_err(|error| error.to_string())?;
            let pages = read_pages(&file, stat.size, &mut found.errors)?;
            let seen = Seen::File(Rc::default(), stat.links);
            found.names.insert(path.clone(), seen);
            found.pages.insert(path, (stat.size, pages));
        }
    }
    Ok(found)
}

fn read_pages(
    file: &File<Arc<Memory>>,
    size: u64,
    errors: &mut usize,
) -> Result<BTreeMap<usize, Vec<u8>>, String> {
    let mut pages = BTreeMap::new();
    for at in (0..size).step_by(PAGE) {
        let mut page = vec![0xEE; PAGE];
        match file.read_at(&mut page, at) {
            Ok(length) => {
                page.truncate(length);
                pages.insert(at as usize, page);
            }
            Err(Error::Corrupt(_)) => *errors += 1,
            Err(error) => return Err(format!("a read says: {error}")),
        }
    }
    Ok(pages)
}

/// Whether the names are those of this model.
fn has_names_of(found: &Found, model: &Model) -> bool {
    let without_content = |(path, seen): (String, Seen)| match seen {
        Seen::Directory => (path, seen),
        Seen::File(_, links) => (path, Seen::File(Rc::default(), links)),
    };
    let names: Dump = model.dump().into_iter().map(without_content).collect();
    names == found.names
}

/// Whether each file is as in one of these models, where it can be read. `missing`: parts of it may be missing.
fn is_made_of(found: &Found, names: &Model, models: &[Model], missing: bool) -> bool {
    found.pages.iter().all(|(path, (size, pages))| {
        let versions = models.iter().filter_map(|model| model.version(names, path));
        let versions: Vec<_> = versions.collect();
        let fits = |length: usize| match missing {
            true => length as u64 >= *size,
            false => length as u64 == *size,
        };
        let is_page_of = |at: usize, page: &[u8], version: &[u8]| {
            page.iter().zip(at..).all(|(&byte, at)| {
                let there = version.get(at).copied().unwrap_or(0);
                byte == there || missing && byte == 0
            })
        };
        versions.iter().any(|version| fits(version.len()))
            && pages.iter().all(|(&at, page)| {
                let mut versions = versions.iter();
                versions.any(|version| is_page_of(at, page, version))
            })
    })
}

/// Whether an opening says that something may be lost.
fn is_said(recovered: &Recovered) -> bool {
    recovered.cause().is_some()
}

/// What is wrong with how a damaged image is read.
fn judge(image: Vec<u8>, models: &[Model]) -> Result<(), String> {
    let medium = Arc::new(Memory::from(image));
    let report = check(&medium);
    let named = report.is_err() || report.is_ok_and(|report| !report.findings.is_empty());
    let (store, recovered) = match Store::open(Arc::clone(&medium), Options::default()) {
        Ok(opened) => opened,
        Err(_) if named => return Ok(()),
        Err(error) => return Err(format!("{error}, and the check finds nothing")),
    };
    let found = read_all(&store)?;
    let last = models.last().expect("the first");
    let said = is_said(&recovered);
    let is_like = |model: &Model, models: &[Model], missing| {
        has_names_of(&found, model) && is_made_of(&found, model, models, missing)
    };
    let sound = match said {
        false => is_like(last, std::slice::from_ref(last), false),
        true => models
            .iter()
            .rev()
            .any(|model| is_like(model, models, true)),
    };
    if !sound {
        return Err(format!("other data than was there: {recovered:?}"));
    }
    if (said || found.errors > 0) && !named {
        return Err(format!("the check finds nothing: {recovered:?}"));
    }
    match found.errors {
        0 => stays(store, &medium),
        _ => Ok(()),
    }
}

/// What has been recovered is sound, and the same after the next opening.
fn stays(store: Store<Arc<Memory>>, medium: &Arc<Memory>) -> Result<(), String> {
    let before = dump(&store)?;
    store.close().map_err(|error| error.to_string())?;
    let report = check(medium).map_err(|error| error.to_string())?;
    if !report.closed || !report.findings.is_empty() {
        return Err(format!("after the recovery: {:?}", report.findings));
    }
    let reopened = Store::open(Arc::clone(medium), Options::default());
    let (store, _) = reopened.map_err(|error| error.to_string())?;
    match dump(&store)? == before {
        true => Ok(()),
        false => Err("the next opening finds something else".to_owned()),
    }
}

/// Judges damaged images of stores of a kind.
fn judge_all(kind: &str, durable: Durable, closed: bool) {
    let mut wrong = Vec::new();
    for seed in 0..images().div_ceil(DAMAGES) {
        let History { image, models } = history(seed, durable, closed);
        let sound = Store::open(Memory::from(image.clone()), Options::default());
        let (_, recovered) = sound.expect("it is not damaged");
        assert_eq!(recovered.cause(), None, "store {seed}: {recovered}");
        let mut rng = Rng::with_seed(seed);
        for number in 0..DAMAGES {
            let mut damaged = image.clone();
            let places = damage(&mut damaged, &mut rng);
            if let Err(what) = judge(damaged, &models) {
                wrong.push(format!("store {seed}, damage {number} ({places}): {what}"));
            }
        }
    }
    let first = wrong.iter().take(12).cloned().collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{kind}: {} of {} images are read wrong:\n{}",
        wrong.len(),
        images(),
        first.join("\n")
    );
}

#[test]
fn a_closed_store() {
    judge_all("closed", Durable::AtSync, true);
}

#[test]
fn a_store_that_was_not_closed() {
    judge_all("not closed", Durable::AtSync, false);
}

#[test]
fn a_store_that_was_not_closed_and_keeps_its_order() {
    judge_all("not closed, in order", Durable::Never, false);
}
