//! Leases of ranges of byte strings.

use crate::child::Client;
use crate::server::{LONG, random_id, runtime};
use crate::store::{Checks, POSITIONS, Store};
use spanlock_lease::{
    Answer, Engine, Fence, KeyLease, KeySpan, Mode, Request, RequestId, Span, Trouble, Wanted,
    point, prefix,
};
use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::thread;

/// Strings at whose ends something may be mistaken: signs, zeros, and the byte behind which there is none.
const BYTES: [u8; 4] = [0, 1, 0x80, u8::MAX];

/// All strings of these bytes, up to a length.
fn strings(length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut first = 0;
    for _ in 0..length {
        let longer = all[first..].iter().flat_map(|string| {
            BYTES.map(|byte| {
                let mut string = string.clone();
                string.push(byte);
                string
            })
        });
        let longer: Vec<_> = longer.collect();
        first = all.len();
        all.extend(longer);
    }
    all
}

/// A range as somebody writes it.
#[derive(Debug, Clone)]
enum Written {
    Between(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl Written {
    fn random(strings: &[Vec<u8>]) -> Self {
        let string = || strings[fastrand::usize(..strings.len())].clone();
        let bound = || match fastrand::u32(..8) {
            0 => Unbounded,
            1..4 => Excluded(string()),
            _ => Included(string()),
        };
        match fastrand::u32(..4) {
            0 => Self::Prefix(string()),
            1 => {
                let point = string();
                Self::Between(Included(point.clone()), Included(point))
            }
            _ => Self::Between(bound(), bound()),
        }
    }

    /// What the library makes of it, unless it is empty or reversed.
    fn span(&self) -> Option<KeySpan> {
        match self {
            Self::Between(start, end) => {
                let bounds = (
                    start.as_ref().map(Vec::as_slice),
                    end.as_ref().map(Vec::as_slice),
                );
                KeySpan::new(bounds).ok().flatten()
            }
            Self::Prefix(start) => KeySpan::of(prefix(start)),
        }
    }

    /// Whether it has the key, by what its words mean.
    fn has(&self, key: &[u8]) -> bool {
        match self {
            Self::Prefix(start) => key.starts_with(start),
            Self::Between(start, end) => {
                let is_behind_start = match start {
                    Included(start) => key >= start.as_slice(),
                    Excluded(start) => key > start.as_slice(),
                    Unbounded => true,
                };
                let is_before_end = match end {
                    Included(end) => key <= end.as_slice(),
                    Excluded(end) => key < end.as_slice(),
                    Unbounded => true,
                };
                is_behind_start && is_before_end
            }
        }
    }
}

/// Who holds each key, and whether alone, and the largest fence under which each was held: alone, and by anybody.
#[derive(Default)]
struct Key {
    holders: Vec<(RequestId, Mode)>,
    alone: Option<Fence>,
    any: Option<Fence>,
}

/// Random requests and releases, to an engine and to a map of keys. The map has each string that begins an overlap of
/// two ranges: a string between which and others ranges were written, or one that follows it.
pub fn agrees_with_a_map(engine: &impl Engine<Range = KeySpan>) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::seed(seed);
    let (ends, keys) = (strings(2), strings(3));
    runtime().block_on(async {
        engine.open().await.unwrap();
        let mut map: BTreeMap<Vec<u8>, Key> =
            keys.into_iter().map(|key| (key, Key::default())).collect();
        let (mut held, mut granted, mut refused, mut empty) = (Vec::new(), 0, 0, 0);
        for _ in 0..1500 {
            if held.len() > 6 || fastrand::u32(..4) == 0 {
                if !held.is_empty() {
                    let id = held.swap_remove(fastrand::usize(..held.len()));
                    engine.release(id).await.unwrap();
                    for key in map.values_mut() {
                        key.holders.retain(|(holder, _)| *holder != id);
                    }
                }
                continue;
            }
            let written = Written::random(&ends);
            let mode = [Mode::Shared, Mode::Exclusive][fastrand::usize(..2)];
            let within: Vec<_> = map.iter_mut().filter(|(key, _)| written.has(key)).collect();
            let Some(span) = written.span() else {
                assert!(within.is_empty(), "{written:?} has keys");
                empty += 1;
                continue;
            };
            assert!(!within.is_empty(), "{written:?} has no keys, and is {span}");
            let mut holders = within.iter().flat_map(|(_, key)| &key.holders);
            let is_free = !holders.any(|(_, other)| other.conflicts(mode));
            let id = random_id();
            let request = Request {
                id,
                span: span.clone(),
                mode,
                ttl: LONG,
                grow: None,
            };
            match engine.acquire(&request).await.unwrap() {
                Answer::Granted { span: got, fence } => {
                    assert!(is_free, "{written:?} was granted, and is held");
                    assert_eq!(got, span);
                    for (_, key) in within {
                        let before = match mode {
                            Mode::Shared => key.alone,
                            Mode::Exclusive => key.any,
                        };
                        assert!(before < Some(fence), "{before:?}, then {fence:?}");
                        key.any = key.any.max(Some(fence));
                        if mode == Mode::Exclusive {
                            key.alone = Some(fence);
                        }
                        key.holders.push((id, mode));
                    }
                    held.push(id);
                    granted += 1;
                }
                Answer::Busy { .. } => {
                    assert!(!is_free, "{written:?} was refused, and is free");
                    engine.release(id).await.unwrap();
                    refused += 1;
                }
            }
        }
        assert!(
            granted > 100 && refused > 100 && empty > 20,
            "{granted} granted, {refused} refused, {empty} empty"
        );
    });
}

/// Keys as long as they may be are leased, longer ones refused.
pub fn long_keys(engine: &impl Engine<Range = KeySpan>, longest: usize) {
    let ask = async |span| {
        let request = Request {
            id: random_id(),
            span,
            mode: Mode::Shared,
            ttl: LONG,
            grow: None,
        };
        engine.acquire(&request).await
    };
    let key = |length| -> Vec<u8> {
        std::iter::repeat_with(|| fastrand::u8(..))
            .take(length)
            .collect()
    };
    runtime().block_on(async {
        engine.open().await.unwrap();
        // Many, since an index has pages above others.
        for _ in 0..200 {
            let mut ends = [key(longest), key(longest)];
            ends.sort();
            let [start, last] = ends.each_ref().map(Vec::as_slice);
            let span = KeySpan::of((Excluded(start), Included(last))).expect("two keys");
            let answer = ask(span).await;
            assert!(matches!(answer, Ok(Answer::Granted { .. })), "{answer:?}");
        }
        // One byte more is that which follows an excluded key.
        let longer = key(longest + 2);
        let span = KeySpan::of((Included(longer.as_slice()), Unbounded)).expect("one key");
        let answer = ask(span).await;
        match answer {
            Err(Trouble::Refused(why)) => {
                assert!(why.to_string().contains(&longest.to_string()), "{why}");
            }
            other => panic!("{:?}", other.map(drop)),
        }
    });
}

/// Who waits is told, in turn. Nobody polls.
pub fn who_waits_is_told(open: impl Fn() -> KeyLease) {
    let (a, b) = (open(), open());
    let key = b"user/7".as_slice();
    // So often that leases which run out instead take too long.
    for _ in 0..20 {
        let held = a.acquire(prefix(b"user/"), Mode::Exclusive, LONG);
        let held = held.wait().unwrap();
        let next = b.acquire((Excluded(key), Unbounded), Mode::Shared, LONG);
        let (next, with_it) = (
            next.start(),
            b.acquire(point(key), Mode::Shared, LONG).start(),
        );
        assert_eq!(held.wanted().wait(), Wanted::Yes);
        let fence = held.fence();
        held.release().wait().unwrap();
        let (next, with_it) = (next.wait().unwrap(), with_it.wait().unwrap());
        assert!(next.fence() > fence && with_it.fence() > fence);
        assert!(!next.span().overlaps(&with_it.span()));
    }
}

/// Clients count keys up, each over connections of its own. `disturbs` is called meanwhile.
pub fn no_update_is_lost(open: impl Fn() -> KeyLease + Sync, times: u32, disturbs: impl FnOnce()) {
    let store = Store::new(Checks::Fences);
    let socket = store.socket.to_str().expect("it is text");
    // Between three of four and the next one there is no other string.
    let key = |position: u64| {
        let mut key = vec![(position / 4) as u8 * 85];
        key.resize(1 + (position % 4) as usize, 0);
        key
    };
    let work = || {
        let (lease, mut client) = (open(), Client::new(socket));
        for _ in 0..times {
            let first = fastrand::u64(..POSITIONS);
            let last = (first + fastrand::u64(..4)).min(POSITIONS - 1);
            let (start, before) = (key(first), first.checked_sub(1).map(key));
            let (end, behind) = (
                key(last),
                Some(last + 1).filter(|it| *it < POSITIONS).map(key),
            );
            let start = match before.as_deref() {
                Some(before) if fastrand::bool() => Excluded(before),
                None if fastrand::bool() => Unbounded,
                _ => Included(start.as_slice()),
            };
            let end = match behind.as_deref() {
                Some(behind) if fastrand::bool() => Excluded(behind),
                None if fastrand::bool() => Unbounded,
                _ => Included(end.as_slice()),
            };
            let asks = lease.acquire((start, end), Mode::Exclusive, LONG);
            let token = asks.wait().expect("the server comes back");
            let span = Span::inclusive(first, last).expect("in order");
            let read = client.read_at(span, token.fence());
            thread::yield_now();
            let read = read.expect("nobody is late");
            assert!(
                client.write_at(span, token.fence(), &read),
                "nobody is late"
            );
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
        store.wait_for_writes(u64::from(times));
        disturbs();
    });
    assert_eq!(store.written(), 4 * u64::from(times));
    assert_eq!(store.holders_follow_each_other(), Ok(()));
}

#[cfg(test)]
mod tests {
    use spanlock_lease::{KeyLease, Memory};
    use spanlock_testkit::watchdog::{HANG, watched};

    fn within_the_watchdog(work: impl FnOnce()) {
        watched(HANG, || (), |()| "nothing happens".to_owned(), work);
    }

    #[test]
    fn the_engine_in_memory_agrees_with_a_map() {
        within_the_watchdog(|| super::agrees_with_a_map(&Memory::over_keys()));
    }

    #[test]
    fn the_engine_in_memory_loses_no_update() {
        let engine = Memory::over_keys();
        let open = || KeyLease::open(engine.clone()).wait().expect("it opens");
        within_the_watchdog(|| super::no_update_is_lost(open, 50, || ()));
    }

    #[test]
    fn the_engine_in_memory_tells_who_waits() {
        let engine = Memory::over_keys();
        let open = || KeyLease::open(engine.clone()).wait().expect("it opens");
        within_the_watchdog(|| super::who_waits_is_told(open));
    }
}
