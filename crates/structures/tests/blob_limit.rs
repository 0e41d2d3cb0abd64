//! What happens at the kernel's limit of mappings. Alone in its process, which can do little else meanwhile.
#![cfg(target_os = "linux")]

use spanlock::range::RangeMutex;
use spanlock_structures::blob::{AliasArea, Error, Pool};
use spanlock_testkit::exact::Exact;
use spanlock_workbench::baseline::Bitmap;

#[global_allocator]
static HEAP: Exact = Exact;

/// More mappings than this are not made.
const MOST: usize = 200_000;

#[test]
fn at_the_limit_requests_are_refused_and_nothing_is_lost() {
    let Ok(limit) = std::fs::read_to_string("/proc/sys/vm/max_map_count") else {
        println!("skipped: the kernel does not say what its limit is");
        return;
    };
    let limit: usize = limit.trim().parse().unwrap();
    if limit > MOST {
        println!("skipped: vm.max_map_count is {limit}");
        return;
    }
    let page = Pool::page();
    let pool = Pool::new(2 * page).unwrap();
    let bytes = (limit + 2) * page;
    let bitmap = RangeMutex::from_raw(Bitmap::new(bytes as u64, page as u64));
    let area = AliasArea::with_lock(&pool, bytes, bitmap).unwrap();
    let blob = [(); 2].map(|()| {
        let mut draft = pool.allocate(page).unwrap();
        draft.fill(7);
        draft.seal()
    });
    let mut aliases = Vec::with_capacity(limit + 1);
    for _ in 0..2 {
        // Neighbours are not joined: each alias is a mapping.
        let refused = loop {
            match area.map(&blob[1..]) {
                Ok(alias) => aliases.push(alias),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(refused, Error::System { call: "mmap", .. }),
            "{refused}"
        );
        assert!(aliases.len() > limit / 2 && aliases.iter().all(|alias| alias[0] == 7));
        aliases.clear();
    }
    let half = limit / 2;
    aliases.extend((0..half).map(|_| area.map(&blob[1..]).expect("no place was lost")));
    drop(aliases);
    assert_eq!(area.map(&blob).unwrap()[page], 7);
}
