//! Aliases show what was written, and arguments that make no sense have a defined result.
#![cfg(target_os = "linux")]

use spanlock::range::RangeMutex;
use spanlock::range::skip::SkipEx;
use spanlock_structures::blob::raw::Ranges;
use spanlock_structures::blob::{AliasArea, AliasCache, Error, Extent, Pool};
use spanlock_testkit::exact::Exact;
use spanlock_workbench::baseline::{Bitmap, Song};

#[global_allocator]
static HEAP: Exact = Exact;

/// An extent of so many pages, all of whose bytes are the same.
fn extent(pool: &Pool, pages: usize, byte: u8) -> Extent {
    let mut draft = pool.allocate(pages * Pool::page()).unwrap();
    draft.fill(byte);
    draft.seal()
}

/// The bytes of pages.
fn pages(bytes: &[u8]) -> Vec<u8> {
    let pages = bytes.chunks_exact(Pool::page());
    assert!(
        pages
            .clone()
            .all(|page| page.iter().all(|byte| *byte == page[0]))
    );
    pages.map(|page| page[0]).collect()
}

const PAGES: usize = 32;

/// An area of so many pages, with a pool of half as many.
fn area<R: Ranges>(lock: R) -> (Pool, AliasArea<R>) {
    let pool = Pool::new(PAGES / 2 * Pool::page()).unwrap();
    let area = AliasArea::with_lock(&pool, PAGES * Pool::page(), lock).unwrap();
    (pool, area)
}

fn shows_what_was_written(lock: impl Ranges) {
    let (pool, area) = area(lock);
    let blob = [
        extent(&pool, 3, 1),
        extent(&pool, 1, 2),
        extent(&pool, 2, 3),
    ];
    let [a, b, c] = &blob;
    assert_eq!(
        (pages(a), pages(b), pages(c)),
        (vec![1; 3], vec![2], vec![3; 2])
    );
    let whole = area.map(&blob).unwrap();
    let tail = area.map(&blob[1..]).unwrap();
    assert_eq!(pages(&whole), [1, 1, 1, 2, 3, 3]);
    assert_eq!(pages(&tail), [2, 3, 3]);
    assert!(whole.as_ptr_range().end <= tail.as_ptr() || tail.as_ptr_range().end <= whole.as_ptr());
    drop((whole, tail));
    // Extents that lie in different places.
    assert_eq!(
        pages(&area.map_scattered(&[c, a]).unwrap()),
        [3, 3, 1, 1, 1]
    );
    for _ in 0..3 * PAGES {
        assert_eq!(pages(&area.map(&blob[..2]).unwrap()), [1, 1, 1, 2]);
    }
}

#[test]
fn shows_what_was_written_with_each_lock() {
    let page = Pool::page() as u64;
    let units = PAGES as u64 * page;
    shows_what_was_written(spanlock::range::RangeLock::new());
    shows_what_was_written(RangeMutex::from_raw(Bitmap::new(units, 8 * page)));
    shows_what_was_written(RangeMutex::from_raw(Bitmap::new(units, page)));
    shows_what_was_written(RangeMutex::from_raw(Song::new(4)));
    shows_what_was_written(RangeMutex::from_raw(SkipEx::new()));
    shows_what_was_written(RangeMutex::new());
}

#[test]
fn sealed_extents_can_be_reopened_and_freed_ones_are_used_again() {
    let (pool, area) = area(RangeMutex::new());
    let cache = AliasCache::new(&area, 4);
    let mut blob = vec![extent(&pool, 1, 1), extent(&pool, 1, 2)];
    let first = cache.map(&blob).unwrap().as_ptr();
    for byte in 3..20 {
        let mut draft = blob.pop().unwrap().reopen();
        assert_eq!(draft[0], byte - 1);
        draft.fill(byte);
        blob.push(draft.seal());
        let alias = cache.map(&blob).unwrap();
        assert_eq!((pages(&alias), alias.as_ptr()), (vec![1, byte], first));
    }
    // The first free extent that fits is the one that was freed.
    drop(blob.pop());
    blob.push(extent(&pool, 1, 77));
    let alias = cache.map(&blob).unwrap();
    assert_eq!((pages(&alias), alias.as_ptr()), (vec![1, 77], first));
}

#[test]
fn one_extent_several_times() {
    let (pool, area) = area(RangeMutex::new());
    let one = [extent(&pool, 1, 5)];
    let aliases: Vec<_> = (0..PAGES).map(|_| area.map(&one).unwrap()).collect();
    assert!(aliases.iter().all(|alias| pages(alias) == [5]));
    assert_eq!(area.map(&one).unwrap_err(), Error::AreaFull);
}

#[test]
fn a_full_area_refuses_until_there_is_a_place() {
    let (pool, area) = area(RangeMutex::new());
    let half = [extent(&pool, PAGES / 2, 9)];
    let (a, b) = (area.map(&half).unwrap(), area.map(&half).unwrap());
    for _ in 0..10 {
        assert_eq!(area.map(&half).unwrap_err(), Error::AreaFull);
    }
    drop(a);
    assert_eq!(pages(&area.map(&half).unwrap()), [9; PAGES / 2]);
    drop(b);
}

#[test]
fn wrong_arguments_are_refused() {
    let page = Pool::page();
    for bytes in [0, 1, page - 1, page + 1] {
        let misaligned = Error::Misaligned { bytes, page };
        assert_eq!(Pool::new(bytes).unwrap_err(), misaligned);
        let (pool, _) = area(RangeMutex::new());
        assert_eq!(pool.allocate(bytes).unwrap_err(), misaligned);
        assert_eq!(AliasArea::new(&pool, bytes).unwrap_err(), misaligned);
    }
    let (pool, small) = area(RangeMutex::new());
    let bytes = (PAGES / 2 + 1) * page;
    assert_eq!(pool.allocate(bytes).unwrap_err(), Error::PoolFull { bytes });
    let huge = AliasArea::new(&pool, usize::MAX - page + 1).unwrap_err();
    assert!(matches!(huge, Error::System { call: "mmap", .. }), "{huge}");

    let (other, _) = area(RangeMutex::new());
    let foreign = [extent(&pool, 1, 1), extent(&other, 1, 2)];
    assert_eq!(small.map(&foreign).unwrap_err(), Error::ForeignExtent);
    assert_eq!(
        AliasCache::new(&small, 1).map(&foreign).unwrap_err(),
        Error::ForeignExtent
    );

    let tight = AliasArea::new(&pool, page).unwrap();
    let two = [extent(&pool, 1, 1), extent(&pool, 1, 2)];
    let too_long = Error::TooLong {
        bytes: 2 * page,
        area: page,
    };
    assert_eq!(tight.map(&two).unwrap_err(), too_long);
    assert_eq!(pages(&tight.map(&two[1..]).unwrap()), [2]);
}

#[test]
fn no_extents_are_an_empty_slice() {
    let (_, area) = area(RangeMutex::new());
    assert!(area.map(&[]).unwrap().is_empty());
    assert!(AliasCache::new(&area, 1).map(&[]).unwrap().is_empty());
}

#[test]
fn a_cache_keeps_so_many_aliases_and_hides_the_oldest() {
    let (pool, area) = area(RangeMutex::new());
    let blobs: Vec<_> = (0..4).map(|byte| [extent(&pool, 1, byte)]).collect();
    let cache = AliasCache::new(&area, 2);
    let at = |blob: usize| {
        let alias = cache.map(&blobs[blob]).unwrap();
        assert_eq!(pages(&alias), [blob as u8]);
        alias.as_ptr()
    };
    let (a, b) = (at(0), at(1));
    assert_eq!((at(0), at(1), at(0)), (a, b, a));
    at(2); // In place of 1, which was used before 0.
    assert_eq!(at(0), a);
    let c = at(2);
    assert_ne!(at(1), b, "the cursor has moved on");
    assert_ne!(at(0), a, "0 was hidden for 1");
    assert_ne!(at(2), c, "2 was hidden for 0");
}

#[test]
fn a_cache_hides_nothing_that_is_used() {
    let (pool, area) = area(RangeMutex::new());
    let blobs: Vec<_> = (0..4).map(|byte| [extent(&pool, 1, byte)]).collect();
    let cache = AliasCache::new(&area, 2);
    let guards: Vec<_> = blobs.iter().map(|blob| cache.map(blob).unwrap()).collect();
    let twice = cache.map(&blobs[0]).unwrap();
    assert_eq!(twice.as_ptr(), guards[0].as_ptr());
    cache.clear();
    for (byte, guard) in (0..).zip(&guards) {
        assert_eq!(pages(guard), [byte]);
    }
    drop(guards);
    cache.clear();
    assert_eq!(pages(&twice), [0]);
}

#[test]
fn a_cache_makes_room_in_a_full_area() {
    let (pool, area) = area(RangeMutex::new());
    let quarter: Vec<_> = (0..2)
        .map(|byte| [extent(&pool, PAGES / 4, byte)])
        .collect();
    let cache = AliasCache::new(&area, 8);
    // Three of four places are another's. So each alias takes the place of the other.
    let others = [(); 3].map(|()| area.map(&quarter[0]).unwrap());
    for turn in 0..10 {
        let blob = turn % 2;
        assert_eq!(
            pages(&cache.map(&quarter[blob]).unwrap()),
            [blob as u8; PAGES / 4]
        );
    }
    let last = cache.map(&quarter[1]).unwrap();
    assert_eq!(cache.map(&quarter[0]).unwrap_err(), Error::AreaFull);
    drop((last, others));
}

#[test]
fn a_thread_that_ends_leaves_nothing_behind() {
    let (pool, area) = area(RangeMutex::new());
    let half = [extent(&pool, PAGES / 2, 4)];
    for _ in 0..20 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let cache = AliasCache::new(&area, 2);
                let forgotten = cache.map(&half).unwrap();
                assert_eq!(pages(&forgotten), [4; PAGES / 2]);
                std::mem::forget(forgotten); // Its cache ends all the same.
            });
        });
    }
    let both = [area.map(&half).unwrap(), area.map(&half).unwrap()];
    drop(both);
}

#[test]
fn a_leaked_guard_keeps_its_place_and_no_more() {
    let (pool, area) = area(RangeMutex::new());
    let half = [extent(&pool, PAGES / 2, 4)];
    std::mem::forget(area.map(&half).unwrap());
    for _ in 0..4 {
        let alias = area.map(&half).unwrap();
        assert_eq!(area.map(&half).unwrap_err(), Error::AreaFull);
        drop(alias);
    }
}

#[test]
fn a_pool_lives_as_long_as_its_extents() {
    let (pool, area) = area(RangeMutex::new());
    let blob = [extent(&pool, 2, 6)];
    drop(pool);
    assert_eq!(pages(&area.map(&blob).unwrap()), [6, 6]);
    drop(area);
    assert_eq!(pages(&blob[0]), [6, 6]);
}
