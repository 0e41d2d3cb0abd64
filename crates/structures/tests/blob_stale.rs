//! An alias does not outlive its guard: a process that reads a stale address dies of it.
#![cfg(target_os = "linux")]

use spanlock_structures::blob::{AliasArea, AliasCache, Pool};
use spanlock_testkit::exact::Exact;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[global_allocator]
static HEAP: Exact = Exact;

/// Tells this program to do what the test expects it to die of.
const VARIABLE: &str = "SPANLOCK_STALE";

/// The last words of a process that read an alias while it was alive.
const ALIVE: &str = "the alias was read";

/// Runs `what` in a process of its own, and expects a segmentation fault after its last words.
fn dies(test: &str, what: impl FnOnce()) {
    if std::env::var_os(VARIABLE).is_some() {
        what();
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(text.contains(ALIVE), "{text}");
    assert_eq!(
        child.status.signal(),
        Some(libc::SIGSEGV),
        "{}: {text}",
        child.status
    );
}

/// Reads an address that nothing may be at.
fn read(address: *const u8) -> u8 {
    // SAFETY: none. This process is to die here, and the compiler knows nothing of the address.
    unsafe { std::hint::black_box(address).read_volatile() }
}

/// A page that is shown, and its address.
fn shown(how: impl FnOnce(&AliasArea, &[spanlock_structures::blob::Extent]) -> *const u8) {
    let pool = Pool::new(Pool::page()).unwrap();
    let area = AliasArea::new(&pool, 8 * Pool::page()).unwrap();
    let mut draft = pool.allocate(Pool::page()).unwrap();
    draft.fill(7);
    let address = how(&area, &[draft.seal()]);
    println!("{}", read(address));
}

#[test]
fn without_a_cache_the_address_is_stale_when_the_guard_is_dropped() {
    dies(
        "without_a_cache_the_address_is_stale_when_the_guard_is_dropped",
        || {
            shown(|area, blob| {
                let alias = area.map(blob).unwrap();
                assert_eq!(read(alias.as_ptr()), 7);
                println!("{ALIVE}");
                alias.as_ptr()
            });
        },
    );
}

#[test]
fn with_a_cache_it_is_stale_when_the_cache_has_hidden_it() {
    dies(
        "with_a_cache_it_is_stale_when_the_cache_has_hidden_it",
        || {
            shown(|area, blob| {
                let cache = AliasCache::new(area, 1);
                let address = cache.map(blob).unwrap().as_ptr();
                assert_eq!(read(address), 7); // The cache keeps it.
                println!("{ALIVE}");
                cache.clear();
                address
            });
        },
    );
}

#[test]
fn with_a_cache_it_is_stale_when_the_cache_is_dropped() {
    dies("with_a_cache_it_is_stale_when_the_cache_is_dropped", || {
        shown(|area, blob| {
            let cache = AliasCache::new(area, 1);
            let address = cache.map(blob).unwrap().as_ptr();
            assert_eq!(read(address), 7);
            println!("{ALIVE}");
            address
        });
    });
}

#[test]
fn an_alias_cannot_be_written() {
    dies("an_alias_cannot_be_written", || {
        shown(|area, blob| {
            let alias = area.map(blob).unwrap();
            let address = alias.as_ptr();
            assert_eq!(read(address), 7);
            println!("{ALIVE}");
            // SAFETY: none. This process is to die here.
            unsafe { std::hint::black_box(address.cast_mut()).write_volatile(8) };
            address
        });
    });
}
