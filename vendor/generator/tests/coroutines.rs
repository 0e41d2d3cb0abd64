//! Coroutines as loom uses them.

use generator::{Gn, yield_, yield_with};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

#[test]
fn a_coroutine_is_handed_functions_until_it_is_handed_none() {
    let calls = Rc::new(Cell::new(0));
    let mut thread = Gn::new(|| {
        while let Some(f) = yield_(()) {
            yield_with(());
            f.expect("a function")();
        }
    });
    thread.resume();
    for expected in 1..=3 {
        let count = Rc::clone(&calls);
        thread.set_para(Some(Box::new(move || count.set(count.get() + 1))));
        thread.resume();
        assert_eq!(calls.get(), expected - 1, "called before its turn");
        thread.resume();
        assert_eq!(calls.get(), expected);
    }
    assert!(!thread.is_done());
    thread.resume();
    assert!(thread.is_done());
    thread.resume();
    assert_eq!(calls.get(), 3);
}

/// The address of something on the stack of a coroutine that has ended.
fn place_on_the_stack() -> usize {
    let place = Rc::new(Cell::new(0));
    let out = Rc::clone(&place);
    let mut thread = Gn::new(move || out.set((&raw const out).addr()));
    thread.resume();
    assert!(thread.is_done());
    place.get()
}

#[test]
fn a_stack_is_used_again() {
    assert_eq!(place_on_the_stack(), place_on_the_stack());
}

#[test]
fn coroutines_alternate_on_stacks_of_their_own() {
    let order = Rc::new(Cell::new(0));
    let mut threads = [1, 2, 3].map(|digit| {
        let order = Rc::clone(&order);
        Gn::new(move || {
            for _ in 0..2 {
                order.set(order.get() * 10 + digit);
                yield_with(());
            }
        })
    });
    for _ in 0..3 {
        threads.iter_mut().for_each(|thread| thread.resume());
    }
    assert_eq!(order.get(), 123_123);
    assert!(threads.iter().all(|thread| thread.is_done()));
}

#[test]
fn a_panic_reaches_the_one_who_resumed() {
    let mut thread = Gn::new(|| {
        yield_with(());
        panic!("of the coroutine");
    });
    thread.resume();
    let panic = catch_unwind(AssertUnwindSafe(|| thread.resume())).expect_err("it panics");
    assert_eq!(panic.downcast_ref(), Some(&"of the coroutine"));
}

#[test]
fn a_suspended_coroutine_that_is_dropped_drops_what_it_has() {
    let kept = Rc::new(());
    let theirs = Rc::clone(&kept);
    let mut thread = Gn::new(move || {
        let _theirs = theirs;
        yield_with(());
    });
    thread.resume();
    assert_eq!(Rc::strong_count(&kept), 2);
    drop(thread);
    assert_eq!(Rc::strong_count(&kept), 1);
}
