//! Rings over keys: reports name the keys.

use super::{Meeting, REFUSE, REPORT, lasting};
use spanlock::deadlock::{self, Deadlocks};
use spanlock::range::keys::{Builder, between, point};
use spanlock::range::{Owner, Refusal};
use std::fmt;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

fn as_text(key: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&String::from_utf8_lossy(key))
}

#[test]
fn two_threads_in_one_table() {
    let meeting = Meeting::of(2);
    let builder = Builder::<[u8]>::new().deadlocks(REPORT).shown_by(as_text);
    let table = lasting(builder.build());
    let long = lasting([b'x'; 300]);
    meeting.party(move |meet| {
        let (_held, line) = (table.write(between(b"order/1", b"order/2")), line!());
        meet(line, line!() + 1);
        drop(table.read(point(&long[..])));
    });
    meeting.party(move |meet| {
        let (_held, line) = (table.write(point(&long[..])), line!());
        meet(line, line!() + 1);
        drop(table.write((Unbounded, Included(&b"order/17"[..]))));
    });
    let ring = meeting.ring(file!());
    for step in &ring.steps {
        let (asked, held) = (
            step.keys.expect("it is known"),
            step.held.keys.expect("it is known"),
        );
        let cut = format!("{}\u{2026}", "x".repeat(48));
        let both = [asked.as_str(), held.as_str()];
        let long = format!("{cut}..={cut}");
        assert!(
            both == ["..=order/17", "order/1..order/2"] || both == [long.as_str(); 2],
            "{both:?}"
        );
    }
    let text = ring.to_string();
    assert!(
        text.contains("waits for ..=order/17 exclusive of the lock 0x"),
        "{text}"
    );
    assert!(
        text.contains(" holds: order/1..order/2 exclusive"),
        "{text}"
    );
}

#[test]
fn an_owner_is_refused_and_knows_the_keys() {
    let table = Builder::<str>::new().deadlocks(REFUSE).build();
    let both_hold_one = Barrier::new(2);
    let transaction = |first: &str, second: &str| {
        let me = Owner::new();
        let mut held = table.by(&me).write(point(first)).expect("it is free");
        both_hold_one.wait();
        match held.extend(point(second)) {
            Ok(()) => None,
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Deadlock);
                let ring = me.deadlock().expect("it is kept");
                Some(ring.to_string())
            }
        }
    };
    let refused = thread::scope(|scope| {
        let other = scope.spawn(|| transaction("b", "a"));
        [transaction("a", "b"), other.join().expect("it ends")]
    });
    let texts: Vec<_> = refused.into_iter().flatten().collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    for part in [
        r#"waits for "a"..="a" exclusive"#,
        r#"waits for "b"..="b" exclusive"#,
        r#"holds: "a"..="a" exclusive"#,
    ] {
        assert!(texts[0].contains(part), "{texts:?}");
    }
}

/// A key whose `Debug` panics.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Mute(u8);

impl fmt::Debug for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::panic::resume_unwind(Box::new("it does not say"))
    }
}

#[test]
fn a_dump_names_keys_that_can_be_named() {
    let names = Builder::<str>::new().deadlocks(REPORT).build();
    let mutes = Builder::<Mute>::new().deadlocks(REPORT).build();
    let (name, mute) = (
        names.write(between("k", "kz")),
        mutes.write(Mute(3)..Mute(5)),
    );
    thread::scope(|scope| {
        scope.spawn(|| drop(names.read(point("key"))));
        scope.spawn(|| drop(mutes.read(Mute(4)..=Mute(4))));
        let lists = |text: &str| deadlock::dump_all().contains(text);
        while !(lists(r#""key"..="key" shared, behind the holder thread"#)
            && lists(r#": "k".."kz" exclusive"#)
            && lists("..=18446744073709551615 shared, behind the holder"))
        {
            thread::yield_now();
        }
        drop((name, mute));
    });
}

/// However many wait for it.
#[test]
fn the_keys_of_a_holder_are_formatted_once() {
    static FORMATTED: AtomicUsize = AtomicUsize::new(0);
    let counted = |key: &str, f: &mut fmt::Formatter<'_>| {
        FORMATTED.fetch_add(usize::from(key == "held"), Relaxed);
        f.write_str(key)
    };
    let table = Builder::<str>::new()
        .deadlocks(REPORT)
        .shown_by(counted)
        .build();
    let held = table.write(between("held", "z"));
    thread::scope(|scope| {
        for key in ["k", "m", "m"] {
            let table = &table;
            scope.spawn(move || drop(table.read(point(key))));
        }
        while table.snapshot().waiters.len() < 3 {
            thread::yield_now();
        }
        assert_eq!(FORMATTED.load(Relaxed), 1);
        drop(held);
    });
}

/// What the environment says is read once, and other tests write it: so the lock says for itself that nobody looks.
#[test]
fn nothing_is_formatted_unless_somebody_looks() {
    static FORMATTED: AtomicUsize = AtomicUsize::new(0);
    let counted = |_: &u8, _: &mut fmt::Formatter<'_>| {
        FORMATTED.fetch_add(1, Relaxed);
        Ok(())
    };
    let builder = Builder::<u8>::new().ordered_by(|one: &u8, other: &u8| one.cmp(other));
    let table = builder.deadlocks(Deadlocks::OFF).shown_by(counted).build();
    let held = table.write(1..3);
    thread::scope(|scope| {
        scope.spawn(|| drop(table.read(2..=2)));
        while table.snapshot().waiters.is_empty() {
            thread::yield_now();
        }
        drop(held);
    });
    assert_eq!(FORMATTED.load(Relaxed), 0);
}
