//! Who waits for whom. The parties are threads and owners.
//!
//! - A request waits for each holder in its way. So it is stuck if one of them is.
//! - A thread waits in one place. It is stuck if that request is.
//! - An owner may wait in several places, and goes on with whatever comes first. It is stuck if all are. A wait for
//!   what it holds itself does not count: another of its threads or tasks may release that, if it is not stuck
//!   elsewhere.
//!
//! A holder that waits nowhere ends a chain, and so does one that nobody knows.

use super::account::Account;
use super::report::{Deadlock, Step};
use crate::range::id::OwnerId;
use crate::range::mode::Mode;
use crate::range::shown::{HeldRange, ShownKeys};
use crate::range::span::Span;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;

/// Names one wait. No other has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A request in a queue, by the queue's number and the request's number there.
    Request(u64, u64),
    /// An account, by its number.
    #[cfg(feature = "rw")]
    Account(u64),
}

/// A request that sleeps, and has no end but its grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) key: Key,
    pub(crate) owner: OwnerId,
    /// The thread that sleeps, if it is not a task.
    pub(crate) thread: Option<u32>,
    pub(crate) lock: usize,
    pub(crate) span: Span,
    pub(crate) keys: Option<ShownKeys>,
    pub(crate) mode: Mode,
    pub(crate) at: &'static Location<'static>,
    /// Who is in the way.
    pub(crate) behind: Vec<(OwnerId, HeldRange)>,
}

impl Wait {
    /// Who does not go on before this wait is over.
    fn parties(&self) -> impl Iterator<Item = u32> {
        let thread = self.thread.map(OwnerId::of_thread);
        let owner = Some(self.owner).filter(|&owner| owner.is_same(owner));
        let thread = thread.filter(|&thread| owner != Some(thread));
        owner.into_iter().chain(thread).map(OwnerId::number)
    }

    /// What is in its way, if that is an owner's, and its own.
    fn own(&self) -> Option<HeldRange> {
        let is_own = |(owner, _): &&(OwnerId, HeldRange)| {
            owner.thread().is_none() && owner.is_same(self.owner)
        };
        self.behind.iter().find(is_own).map(|&(_, held)| held)
    }

    fn step(&self, held: HeldRange) -> Step {
        Step {
            owner: self.owner,
            thread: self.thread,
            lock: self.lock,
            span: self.span,
            keys: self.keys,
            mode: self.mode,
            place: self.at,
            held,
        }
    }
}

/// Says of each wait in a lock which does not know its holders who is in the way, by the accounts; and adds those that
/// stand in no queue.
#[allow(clippy::ptr_arg, reason = "with `rw`, waits are added")]
pub(super) fn join(waits: &mut Vec<Wait>, accounts: &[Account]) {
    for waiting in accounts {
        let Some(wish) = waiting.waits else {
            continue;
        };
        let others = accounts
            .iter()
            .filter(|other| other.thread != waiting.thread);
        let holds = others.flat_map(|other| {
            let owner = OwnerId::of_thread(other.thread);
            other.holds.iter().map(move |held| (owner, held))
        });
        let in_the_way = holds.filter(|(_, held)| wish.waits_for(held));
        let described = |span| {
            move |(owner, held): (OwnerId, &super::Wish)| {
                let (mode, place) = (held.mode, Some(held.at));
                (owner, HeldRange::new(span, mode, place))
            }
        };
        let thread = Some(waiting.thread);
        match wish.lock {
            super::LockKey::Segments(_) => {
                if let Some(wait) = waits.iter_mut().find(|wait| wait.thread == thread) {
                    wait.behind = in_the_way.map(described(wait.span)).collect();
                }
            }
            #[cfg(feature = "rw")]
            super::LockKey::Whole(lock) => waits.push(Wait {
                key: Key::Account(waiting.number),
                owner: OwnerId::of_thread(waiting.thread),
                thread,
                lock,
                span: Span::ALL,
                keys: None,
                mode: wish.mode,
                at: wish.at,
                behind: in_the_way.map(described(Span::ALL)).collect(),
            }),
        }
    }
}

/// A ring: the waits in it, each with which of those in its way is the next.
pub(super) struct Ring<'a>(Vec<(&'a Wait, HeldRange)>);

impl<'a> Ring<'a> {
    /// The waits of owners, those of the owners first that were made last.
    pub(super) fn of_owners(&self) -> Vec<&'a Wait> {
        let is_owner =
            |wait: &&Wait| wait.owner.thread().is_none() && wait.owner.is_same(wait.owner);
        let mut owners: Vec<_> = self.waits().filter(is_owner).collect();
        owners.sort_unstable_by_key(|wait| Reverse((wait.owner.number(), wait.key)));
        owners
    }

    fn waits(&self) -> impl Iterator<Item = &'a Wait> {
        self.0.iter().map(|&(wait, _)| wait)
    }

    pub(super) fn told(&self) -> Deadlock {
        Deadlock {
            steps: self.0.iter().map(|(wait, held)| wait.step(*held)).collect(),
        }
    }
}

/// The waits of owners for what they hold themselves.
pub(super) fn for_own<'a>(waits: impl Iterator<Item = &'a Wait>) -> impl Iterator<Item = Ring<'a>> {
    waits.filter_map(|wait| Some(Ring(vec![(wait, wait.own()?)])))
}

/// A ring that was told.
pub(super) struct ToldRing(BTreeMap<Key, Wait>);

impl ToldRing {
    pub(super) fn new(ring: &Ring<'_>) -> Self {
        Self(ring.waits().map(|wait| (wait.key, wait.clone())).collect())
    }

    /// Whether all in it wait as they did.
    pub(super) fn lasts(&self, waiting: &BTreeMap<Key, Wait>) -> bool {
        let waits = |(key, wait)| waiting.get(key) == Some(wait);
        self.0.iter().all(waits)
    }

    /// Whether it is that ring.
    pub(super) fn is(&self, ring: &Ring<'_>) -> bool {
        let is_in_it = |wait: &Wait| self.0.get(&wait.key) == Some(wait);
        ring.0.len() == self.0.len() && ring.waits().all(is_in_it)
    }
}

/// The rings among these waits.
pub(super) fn rings<'a>(waits: impl Iterator<Item = &'a Wait>) -> Vec<Ring<'a>> {
    let mut of_party: BTreeMap<u32, Vec<&Wait>> = BTreeMap::new();
    for wait in waits {
        let is_own = wait.own().is_some();
        for party in wait.parties() {
            if !(is_own && party == wait.owner.number()) {
                of_party.entry(party).or_default().push(wait);
            }
        }
    }
    let mut stuck: BTreeSet<u32> = of_party.keys().copied().collect();
    // Who has a wait that nobody who is stuck is in the way of may go on. The rest is stuck.
    loop {
        let next = |wait: &&Wait| next_of(wait, &stuck).is_some();
        let remain = |party: &u32| of_party[party].iter().all(next);
        let remaining: BTreeSet<u32> = stuck.iter().copied().filter(remain).collect();
        if remaining.len() == stuck.len() {
            break;
        }
        stuck = remaining;
    }
    let mut rings = Vec::new();
    let mut visited = BTreeSet::new();
    for &party in &stuck {
        let mut path: Vec<(u32, &Wait, HeldRange)> = Vec::new();
        let mut party = party;
        while visited.insert(party) {
            let wait = of_party[&party][0];
            let (next, held) = next_of(wait, &stuck).expect("it is stuck");
            path.push((party, wait, held));
            party = next;
        }
        if let Some(at) = path.iter().position(|&(first, ..)| first == party) {
            let ring = path[at..].iter().map(|&(_, wait, held)| (wait, held));
            rings.push(Ring(ring.collect()));
        }
    }
    rings
}

/// The first one in the way of a wait who is stuck.
fn next_of(wait: &Wait, stuck: &BTreeSet<u32>) -> Option<(u32, HeldRange)> {
    let mut numbers = wait
        .behind
        .iter()
        .map(|&(owner, held)| (owner.number(), held));
    numbers.find(|(number, _)| stuck.contains(number))
}

#[cfg(test)]
mod tests {
    use super::{HeldRange, Key, Location, Mode, OwnerId, Span, Wait, for_own, rings};

    fn held() -> HeldRange {
        HeldRange::new(Span::ALL, Mode::Exclusive, None)
    }

    fn wait(owner: OwnerId, thread: Option<u32>, behind: &[OwnerId]) -> Wait {
        Wait {
            key: Key::Request(0, 0),
            owner,
            thread,
            lock: 0,
            span: Span::ALL,
            keys: None,
            mode: Mode::Exclusive,
            at: Location::caller(),
            behind: behind.iter().map(|&owner| (owner, held())).collect(),
        }
    }

    /// A thread that waits for these.
    fn thread(id: u32, behind: &[u32]) -> Wait {
        let behind: Vec<_> = behind.iter().copied().map(OwnerId::of_thread).collect();
        wait(OwnerId::of_thread(id), Some(id), &behind)
    }

    /// The numbers in each ring.
    fn found(waits: &[Wait]) -> Vec<Vec<u32>> {
        let rings = rings(waits.iter());
        let owners = rings.iter().map(|ring| ring.told().steps);
        let numbers = owners.map(|steps| steps.iter().map(|step| step.owner.number()).collect());
        numbers.collect()
    }

    #[test]
    fn a_chain_that_ends_is_no_ring() {
        assert!(found(&[thread(1, &[2]), thread(2, &[3])]).is_empty());
        assert!(found(&[thread(1, &[0])]).is_empty());
    }

    #[test]
    fn rings_are_found_without_those_who_wait_for_them() {
        let waits = [
            thread(1, &[2]),
            thread(2, &[3]),
            thread(3, &[9, 2]),
            thread(4, &[4]),
        ];
        assert_eq!(found(&waits), [vec![2, 3], vec![4]]);
    }

    #[test]
    fn one_of_several_in_the_way_is_enough() {
        assert_eq!(found(&[thread(1, &[7, 2]), thread(2, &[8, 1])]), [[1, 2]]);
    }

    #[test]
    fn an_owner_is_stuck_if_all_its_waits_are() {
        let [one, two] = [1, 2].map(OwnerId::of_owner);
        let (first, second) = (OwnerId::of_thread(1), OwnerId::of_thread(2));
        let waits = [wait(one, Some(1), &[two]), wait(two, Some(2), &[one])];
        assert_eq!(found(&waits).len(), 1);
        // It also waits for somebody who runs.
        let mut more = waits.to_vec();
        more.push(wait(one, None, &[OwnerId::of_thread(9)]));
        assert!(found(&more).is_empty());
        // A thread that waits for an owner holds its own ranges, too.
        let waits = [
            wait(one, Some(1), &[second]),
            wait(second, Some(2), &[first]),
        ];
        assert_eq!(found(&waits).len(), 1);
    }

    #[test]
    fn what_an_owner_holds_itself_is_no_ring() {
        let [one, two] = [1, 2].map(OwnerId::of_owner);
        let own = [wait(one, None, &[one]), wait(one, Some(1), &[one])];
        for waits in [&own[..1], &own[1..], &own] {
            assert!(found(waits).is_empty());
            assert_eq!(for_own(waits.iter()).count(), waits.len());
        }
        // It counts neither for a ring nor against it.
        let mut more = own.to_vec();
        more.extend([wait(one, None, &[two]), wait(two, None, &[one])]);
        let numbers = [one, two].map(OwnerId::number);
        assert_eq!(found(&more), [numbers]);
        // Threads have nobody else.
        assert_eq!(for_own([thread(4, &[4])].iter()).count(), 0);
    }

    #[test]
    fn anonymous_owners_are_nobody() {
        let nobody = crate::range::Owner::anonymous().id();
        let other = OwnerId::of_thread(2);
        let waits = [
            wait(nobody, None, &[other]),
            wait(other, Some(2), &[nobody]),
        ];
        assert!(found(&waits).is_empty());
    }
}
