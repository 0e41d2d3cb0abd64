//! Stores that are full, or nearly so, and whose files have logs of many groups.

use spanlock_structures::store::{
    Cause, Error, File, Geometry, Medium, Memory, Options, PAGE, Store, check, inspect, make,
};
use std::sync::Arc;
use std::thread;

/// More than such a store has pages in reserve.
const GROUPS: usize = 32;
const PAGES: usize = 640;

type OfMemory = Arc<Memory>;

fn open(medium: &OfMemory) -> (Store<OfMemory>, Option<Cause>) {
    let options = Options {
        stocks: GROUPS,
        ..Options::default()
    };
    let (store, recovered) = Store::open(Arc::clone(medium), options).expect("it is opened");
    (store, recovered.cause())
}

fn fresh() -> (OfMemory, Store<OfMemory>) {
    let medium = Arc::new(Memory::new((PAGES * PAGE) as u64));
    let inodes = Some(64);
    make(&medium, &Geometry { inodes, id: None }).expect("it fits");
    let (store, _) = open(&medium);
    (medium, store)
}

/// Does it on a new thread, which is of the next group.
fn on_another<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(f).join().expect("no panic"))
}

/// Writes one page after another, each on another thread, until no group has room for more. Returns how many.
fn fill(file: &File<OfMemory>) -> u64 {
    let (mut pages, mut failures) = (0, 0);
    while failures < 2 * GROUPS {
        match on_another(|| file.write_at(&[7; PAGE], pages * PAGE as u64)) {
            Ok(_) => (pages, failures) = (pages + 1, 0),
            Err(Error::NoSpace) => failures += 1,
            Err(other) => panic!("{other}"),
        }
    }
    pages
}

/// Power is lost, and with it a page of data. So the file's logs are to be rewritten, which needs pages.
#[test]
fn a_full_store_is_opened_after_a_crash() {
    let (medium, store) = fresh();
    let file = store.create("/file", 0o600).expect("room");
    assert!(fill(&file) > 500);
    drop((file, store));
    let mut image = vec![0; PAGES * PAGE];
    medium.read(0, &mut image).expect("memory");
    let mut pages = image.chunks_mut(PAGE);
    let data = pages.rfind(|page| page.iter().all(|&byte| byte == 7));
    data.expect("it was written").fill(0);
    let (store, cause) = open(&Arc::new(Memory::from(image)));
    assert_eq!(cause, Some(Cause::CrashOrDamage));
    let file = store.open_file("/file").expect("it is there");
    file.truncate(0).expect("the reserve");
}

/// The longest name of a file with that number.
fn long_name(number: usize) -> String {
    format!("/{number:0>255}")
}

/// What comes to a full store leaves the reserve to those who empty it.
#[test]
fn a_full_store_of_many_names_is_emptied() {
    let (_, store) = fresh();
    let mut files = (0..63).map(long_name);
    let before: Vec<_> = files.by_ref().take(20).collect();
    for file in &before {
        store.create(file, 0o600).expect("room");
    }
    fill(&store.open_file(&before[0]).expect("it is there"));
    let more = files.take_while(|file| store.create(file, 0o600).is_ok());
    let all: Vec<_> = before
        .iter()
        .cloned()
        .chain(more.collect::<Vec<_>>())
        .collect();
    // The log grows with each, and is not rewritten any more for lack of pages.
    let swap = |turn: usize| store.rename(&all[turn % 2], long_name(99 - turn % 2));
    let back = |turn: usize| store.rename(long_name(99 - turn % 2), &all[turn % 2]);
    let _ = (0..5000)
        .take_while(|&turn| swap(turn).is_ok() && back(turn).is_ok())
        .count();
    for file in [long_name(98), long_name(99)] {
        let _ = store.unlink(file);
    }
    for file in all {
        match store.unlink(file) {
            Ok(()) | Err(Error::NotFound) => {}
            Err(error) => panic!("{error} instead of the reserve"),
        }
    }
}

/// Power is lost amid an entry of the directories' log, which is to be rewritten then: into more pages than are free.
#[test]
fn a_full_store_of_many_names_is_opened_after_a_crash() {
    let (medium, store) = fresh();
    for number in 0..60 {
        store.create(long_name(number), 0o600).expect("room");
    }
    fill(&store.open_file(long_name(0)).expect("it is there"));
    drop(store);
    let mut image = vec![0; PAGES * PAGE];
    medium.read(0, &mut image).expect("memory");
    let mut pages = image.chunks_mut(PAGE);
    let name = long_name(59);
    let is_last = |page: &&mut [u8]| {
        page.windows(name.len() - 1)
            .any(|part| part == &name.as_bytes()[1..])
    };
    let page = pages.rfind(is_last).expect("it is there");
    let end = page
        .iter()
        .rposition(|&byte| byte != 0)
        .expect("it has entries")
        + 1;
    page[end.next_multiple_of(64)] = 1;
    let (store, cause) = open(&Arc::new(Memory::from(image)));
    assert_eq!(cause, Some(Cause::Crash));
    for number in 0..60 {
        store.unlink(long_name(number)).expect("the reserve");
    }
}

/// The trunk is full, and none of the threads had written the file before: their groups have no logs there.
#[test]
fn threads_of_all_groups_empty_a_full_store() {
    let (_, store) = fresh();
    let file = store.create("/file", 0o600).expect("room");
    let pages = (0..).take_while(|page| file.write_at(&[7; PAGE], page * PAGE as u64).is_ok());
    let pages = pages.count() as u64;
    for by in 1..=GROUPS as u64 {
        let truncated = on_another(|| file.truncate(pages * PAGE as u64 - by));
        truncated.expect("the trunk has room");
    }
    on_another(|| file.truncate(0)).expect("the trunk has room");
    store.sync().expect("memory");
    assert!(fill(&file) > pages - GROUPS as u64);
}

/// Nothing is later than the end of time, so nothing is written then.
#[test]
fn a_clock_at_its_end_is_an_error_and_not_a_lost_write() {
    let medium = Arc::new(Memory::new(1 << 20));
    make(&medium, &Geometry::default()).expect("it fits");
    let options = Options {
        now: || i64::MAX,
        ..Options::default()
    };
    let (store, _) = Store::open(Arc::clone(&medium), options).expect("it is opened");
    let file = store.create("/file", 0o600).expect("room");
    let before = store.status().space;
    let refused = [file.write_at(b"text", 0).map(drop), file.truncate(10)];
    assert!(matches!(
        refused,
        [Err(Error::Exhausted), Err(Error::Exhausted)]
    ));
    assert_eq!(store.status().space, before);
    assert_eq!(file.stat().expect("it is there").size, 0);
}

/// A file that threads of many groups have written has many logs. When it is small they go at the next opening.
#[test]
fn a_small_file_loses_its_many_logs() {
    let (medium, store) = fresh();
    let file = store.create("/file", 0o600).expect("room");
    let write = |count: u64| {
        let at = count % 4 * PAGE as u64;
        on_another(|| file.write_at(&count.to_le_bytes(), at).expect("room"));
    };
    (0..400).for_each(write);
    drop(file);
    store.close().expect("nothing is open");
    assert!(inspect(&medium).expect("a store").log_pages > GROUPS as u64 / 2);
    let (store, cause) = open(&medium);
    assert_eq!(cause, None);
    let file = store.open_file("/file").expect("it is there");
    for count in 396..400_u64 {
        let mut found = [0; 8];
        file.read_at(&mut found, count % 4 * PAGE as u64)
            .expect("sound");
        assert_eq!(u64::from_le_bytes(found), count);
    }
    file.write_at(b"more", 0).expect("room");
    drop(file);
    store.close().expect("nothing is open");
    let report = check(&medium).expect("a store");
    assert!(report.is_sound() && report.log_pages <= 4, "{report:?}");
}

/// Files of one page each, which threads of many groups overwrite: their logs would have more pages than the store.
#[test]
fn logs_of_small_files_make_room() {
    let (medium, store) = fresh();
    let files: Vec<_> = (0..60)
        .map(|number| store.create(format!("/{number}"), 0o600).expect("room"))
        .collect();
    let write = |file: &File<_>, count: u64| {
        on_another(|| file.write_at(&count.to_le_bytes(), 0).expect("room"));
    };
    // A group has a log of its own once the first log has a second page.
    let rounds = 100 + GROUPS as u64;
    for file in &files {
        (0..rounds).for_each(|count| write(file, count));
    }
    let are_there = |store: &Store<OfMemory>| {
        for number in 0..files.len() {
            let file = store.open_file(format!("/{number}")).expect("it is there");
            let mut found = [0; 8];
            file.read_at(&mut found, 0).expect("sound");
            assert_eq!(u64::from_le_bytes(found), rounds - 1);
        }
    };
    are_there(&store);
    // As a crash leaves it.
    let mut image = vec![0; PAGES * PAGE];
    medium.read(0, &mut image).expect("memory");
    let (store, cause) = open(&Arc::new(Memory::from(image)));
    assert_eq!(cause, None);
    are_there(&store);
}

/// The same, by all groups at a time: who finds no room while another thread makes some finds it then.
#[test]
fn threads_that_find_no_room_together_all_get_some() {
    const FILES: usize = 60;
    let (medium, store) = fresh();
    let files: Vec<_> = (0..FILES)
        .map(|number| store.create(format!("/{number}"), 0o600).expect("room"))
        .collect();
    thread::scope(|scope| {
        for first in 0..GROUPS {
            let files = &files;
            scope.spawn(move || {
                for count in 0..100 * FILES {
                    let file = &files[(first + count) % FILES];
                    file.write_at(&count.to_le_bytes(), 0).expect("room");
                }
            });
        }
    });
    drop((files, store));
    let report = check(&medium).expect("a store");
    assert!(report.is_sound(), "{report:?}");
}
