//! What a child process has that was forked, and not executed: nothing.
#![cfg(target_os = "linux")]

use spanlock_structures::blob::{AliasArea, AliasCache, Error, Pool};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::fork::status_of_child;

#[global_allocator]
static HEAP: Exact = Exact;

#[test]
fn a_child_is_refused_and_drops_nothing_of_its_parent() {
    let page = Pool::page();
    let pool = Pool::new(4 * page).unwrap();
    let area = AliasArea::new(&pool, 8 * page).unwrap();
    let cache = AliasCache::new(&area, 2);
    let mut draft = pool.allocate(page).unwrap();
    draft.fill(3);
    let blob = [draft.seal()];
    let kept = pool.allocate(page).unwrap();
    let (alias, cached) = (area.map(&blob).unwrap(), cache.map(&blob).unwrap());
    let addresses = [alias.as_ptr(), cached.as_ptr(), blob[0].as_ptr()];

    let mut inherited = Some((kept, alias));
    let status = status_of_child(|| {
        let refused = [
            area.map(&blob).err(),
            cache.map(&blob).err(),
            area.map(&[]).err(),
            pool.allocate(page).err(),
            AliasArea::new(&pool, page).err(),
        ];
        drop(inherited.take());
        refused == [Some(Error::Forked); 5]
    });
    assert_eq!(status, 0, "the child saw something else");

    for address in addresses {
        // SAFETY: none in the child, which is to die of it.
        let status = status_of_child(|| unsafe { address.read_volatile() } == 3);
        assert!(libc::WIFSIGNALED(status));
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
    }
    let (kept, alias) = inherited.unwrap();
    assert_eq!((alias[0], cached[0], blob[0][0]), (3, 3, 3));
    assert_eq!(area.map(&blob).unwrap()[page - 1], 3);
    drop(kept);
    assert!(pool.allocate(3 * page).is_ok());
}
