//! Many writers of one file, through several threads of the server. The file's range lock alone keeps them apart: the
//! kernel lets them all through.

use crate::on_mount;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Operations of each thread: `SPANLOCK_STRESS_OPS`, or a few.
fn operations() -> u64 {
    spanlock_testkit::setting("SPANLOCK_STRESS_OPS", 1500)
}

const PAGE: u64 = 4096;
/// Pages of the file, and of each write.
const PAGES: u64 = 16;
const RUN: u64 = 3;
const WRITERS: u64 = 3;

/// A run of pages as one write leaves it: each page has its number, and all have the writer's stamp.
fn run(first: u64, stamp: u64) -> Vec<u8> {
    let words =
        (first * PAGE / 16..(first + RUN) * PAGE / 16).flat_map(|word| [word / (PAGE / 16), stamp]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The stamp of each page, all of whose words must agree.
fn stamps(bytes: &[u8], first: u64) -> Vec<u64> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight"));
    let pages = bytes.chunks_exact(PAGE as usize).zip(first..);
    let stamp_of = |(page, number): (&[u8], u64)| {
        let stamp = word(&page[8..16]);
        for pair in page.chunks_exact(16) {
            assert_eq!(
                (word(&pair[..8]), word(&pair[8..])),
                (number, stamp),
                "torn"
            );
        }
        stamp
    };
    pages.map(stamp_of).collect()
}

/// Where each write began, by its stamp. Stamps from [`WRITERS`] on are of writes, 0 is of the pages at first.
fn beginnings() -> Vec<u64> {
    let mut begins = vec![0; ((operations() + 1) * WRITERS) as usize];
    for writer in 0..WRITERS {
        let mut random = fastrand::Rng::with_seed(writer);
        for round in 1..=operations() {
            begins[(round * WRITERS + writer) as usize] = random.u64(0..PAGES - RUN);
        }
    }
    begins
}

/// Whole writes, one after the other, explain these pages: where two of them overlap, the pages have one stamp of the
/// two at most.
fn check_stamps(stamps: &[u64], first: u64, begins: &[u64]) {
    let covers = |stamp: u64, page: u64| {
        let begin = begins[stamp as usize];
        stamp == 0 || (begin..begin + RUN).contains(&page)
    };
    for (&one, page) in stamps.iter().zip(first..) {
        assert!(covers(one, page), "{one} is not of page {page}");
        for (&other, beside) in stamps.iter().zip(first..) {
            let torn = one != other && covers(one, beside) && covers(other, page);
            assert!(!torn, "{stamps:?} from page {first} on");
        }
    }
}

#[test]
fn writers_of_overlapping_pages_never_meet_in_one() {
    let begins = beginnings();
    on_mount(
        16 << 20,
        |mount| {
            let path = mount.join("shared");
            let open = || {
                OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&path)
            };
            let first = open().expect("room");
            for page in (0..PAGES).step_by(RUN as usize) {
                first
                    .write_all_at(&run(page, 0), page * PAGE)
                    .expect("room");
            }
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let writers: Vec<_> = (0..WRITERS)
                    .map(|writer| {
                        let file = open().expect("there");
                        scope.spawn(move || {
                            let mut random = fastrand::Rng::with_seed(writer);
                            for round in 1..=operations() {
                                let page = random.u64(0..PAGES - RUN);
                                file.write_all_at(
                                    &run(page, round * WRITERS + writer),
                                    page * PAGE,
                                )
                                .expect("room");
                            }
                        })
                    })
                    .collect();
                scope.spawn(|| {
                    let file = open().expect("there");
                    let mut random = fastrand::Rng::with_seed(9);
                    let mut seen = vec![0; (RUN * PAGE) as usize];
                    while !over.load(Ordering::Relaxed) {
                        let page = random.u64(0..PAGES - RUN);
                        file.read_exact_at(&mut seen, page * PAGE)
                            .expect("readable");
                        check_stamps(&stamps(&seen, page), page, &begins);
                    }
                });
                // The reader is told to stop also when a writer panics.
                let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
                over.store(true, Ordering::Relaxed);
                assert!(ended.iter().all(Result::is_ok));
            });
        },
        |store| {
            let file = store.open_file("/shared").expect("there");
            let mut all = vec![0; (PAGES * PAGE) as usize];
            file.read_at(&mut all, 0).expect("sound");
            check_stamps(&stamps(&all, 0), 0, &begins);
        },
    );
}

#[test]
fn byte_disjoint_writers_of_one_page_lose_nothing() {
    on_mount(
        16 << 20,
        |mount| {
            let path = mount.join("shared");
            std::fs::write(&path, [0; 4096]).expect("room");
            thread::scope(|scope| {
                for writer in 0..4_u8 {
                    let file = OpenOptions::new().write(true).open(&path).expect("there");
                    scope.spawn(move || {
                        for round in 0..operations() {
                            let at = round % 100 * 40 + u64::from(writer) * 10;
                            file.write_all_at(&[writer + 1; 10], at).expect("room");
                        }
                    });
                }
            });
            let content = std::fs::read(&path).expect("there");
            for (at, byte) in content[..4000].iter().enumerate() {
                assert_eq!(usize::from(*byte), at % 40 / 10 + 1, "byte {at}");
            }
        },
        |_| (),
    );
}

#[test]
fn appends_of_many_do_not_overlap() {
    let each = operations().min(500);
    on_mount(
        16 << 20,
        |mount| {
            let path = mount.join("journal");
            thread::scope(|scope| {
                for writer in 0..4_u64 {
                    let file = OpenOptions::new()
                        .append(true)
                        .create(true)
                        .open(&path)
                        .expect("room");
                    scope.spawn(move || {
                        for round in 0..each {
                            let record = (writer * each + round).to_le_bytes();
                            std::io::Write::write_all(&mut &file, &record).expect("room");
                        }
                    });
                }
            });
            let content = std::fs::read(&path).expect("there");
            let records = content
                .chunks_exact(8)
                .map(|record| u64::from_le_bytes(record.try_into().expect("8")));
            let mut records: Vec<_> = records.collect();
            records.sort_unstable();
            assert!(records.into_iter().eq(0..4 * each));
        },
        |_| (),
    );
}
