//! Machines of which each has a cache and tasks that lock ranges, over one engine. Calls, answers and reports are late
//! or lost, requests are cut, blocks are given up in between, and leases are lost in outages.
//!
//! `SPANLOCK_LEASE_SEEDS` says how many schedules there are, and `SPANLOCK_LEASE_SEED` with which one they begin.

use super::net::{Faults, Net, up_to};
use super::simulate;
use crate::cache::{Cache, Cached};
use crate::{Fence, Memory, Mode, Options, RangeLease, Refused, Span, Token, clock};
use spanlock::timer::{self, Call, CallAt};
use spanlock_testkit::watchdog::{HANG, watched};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};

const MACHINES: u32 = 3;
const TASKS: u32 = 2;
/// What each task does.
const STEPS: u32 = 8;
const POSITIONS: u64 = 32;
/// Blocks have `2^K` positions.
const K: u32 = 3;

/// Nobody works for longer, in four steps.
const WORK: Duration = ms(32_000);
/// Nor has a lease of a longer ttl. An outage takes two of them at most.
const TTL: Duration = ms(8000);
/// Nobody waits for longer, in simulated time: all others work once before, and lose a lease each in an outage.
const PATIENCE: Duration = ms(5 * (32_000 + 3 * 8000));

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What somebody holds.
enum Lease {
    Cached(Cached),
    Token(Token),
}

/// Who has leases.
#[derive(Clone, Copy)]
struct Client {
    /// Of one, holders exclude each other whatever becomes of the lease.
    number: u32,
    way: Way,
}

/// How a client reaches the engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// So that no lease is lost.
    Calm,
    Stormy,
}

struct Held {
    client: Client,
    span: Span,
    mode: Mode,
    lease: Lease,
}

impl Held {
    fn is_open(&self) -> bool {
        match &self.lease {
            Lease::Cached(held) => held.check().is_ok(),
            Lease::Token(held) => held.check().is_ok(),
        }
    }

    fn fence(&self) -> Fence {
        match &self.lease {
            Lease::Cached(held) => held.fence(),
            Lease::Token(held) => held.fence(),
        }
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.span.overlaps(other.span) && self.mode.conflicts(other.mode)
    }
}

/// The largest fences that have entered a position.
#[derive(Clone, Copy, Default)]
struct Mark {
    exclusive: Option<Fence>,
    any: Option<Fence>,
}

/// What was seen in a schedule.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    /// Of all that has happened, and when.
    trace: u64,
    entered: u32,
    cut: u32,
    /// Steps of work after the lease was closed, and those of them that the resource refused.
    closed: u32,
    refused: u32,
    longest: Duration,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.entered += other.entered;
        self.cut += other.cut;
        self.closed += other.closed;
        self.refused += other.refused;
        self.longest = self.longest.max(other.longest);
    }
}

/// The resource, and who holds what of it.
struct World {
    random: Rc<RefCell<fastrand::Rng>>,
    held: RefCell<Vec<Rc<Held>>>,
    marks: RefCell<[Mark; POSITIONS as usize]>,
    trace: RefCell<DefaultHasher>,
    seen: RefCell<Seen>,
    clients: Cell<u32>,
}

impl World {
    fn new(seed: u64) -> Rc<Self> {
        Rc::new(Self {
            random: Rc::new(RefCell::new(fastrand::Rng::with_seed(seed))),
            held: RefCell::default(),
            marks: RefCell::new([Mark::default(); POSITIONS as usize]),
            trace: RefCell::default(),
            seen: RefCell::default(),
            clients: Cell::new(0),
        })
    }

    fn up_to(&self, most: Duration) -> Duration {
        up_to(most, &mut self.random.borrow_mut())
    }

    fn number(&self, numbers: RangeInclusive<u64>) -> u64 {
        self.random.borrow_mut().u64(numbers)
    }

    fn client(&self, way: Way) -> Client {
        let number = self.clients.replace(self.clients.get() + 1);
        Client { number, way }
    }

    /// The resource looks at the fence of what arrives. Whether it takes it.
    fn takes(&self, held: &Held) -> bool {
        let (mut marks, fence) = (self.marks.borrow_mut(), Some(held.fence()));
        let positions = held.span.start() as usize..=held.span.last() as usize;
        let marks = &mut marks[positions];
        let is_late = marks.iter().any(|mark| match held.mode {
            Mode::Shared => mark.exclusive > fence,
            Mode::Exclusive => mark.any > fence,
        });
        for mark in marks.iter_mut().filter(|_| !is_late) {
            mark.any = mark.any.max(fence);
            if held.mode == Mode::Exclusive {
                mark.exclusive = mark.exclusive.max(fence);
            }
        }
        !is_late
    }

    /// Something has happened. Of holders that conflict, all but one know that they have lost their leases, and those
    /// of one client do not meet.
    fn look(&self, what: &str, held: &Held) {
        let event = (clock::now(), what, held.client.number, held.span.start());
        event.hash(&mut *self.trace.borrow_mut());
        held.fence().hash(&mut *self.trace.borrow_mut());
        let all = self.held.borrow();
        for (at, one) in all.iter().enumerate() {
            for other in all[at + 1..].iter().filter(|other| one.conflicts(other)) {
                let (one_client, other_client) = (one.client.number, other.client.number);
                assert_ne!(one_client, other_client, "two of one client meet");
                let both = one.is_open() && other.is_open();
                assert!(!both, "two hold at a time, and both may work");
            }
        }
    }

    /// Works under a lease for a while, and ends it.
    async fn work(&self, client: Client, span: Span, mode: Mode, lease: Lease) {
        #[rustfmt::skip]
        let held = Rc::new(Held { client, span, mode, lease });
        self.held.borrow_mut().push(Rc::clone(&held));
        self.seen.borrow_mut().entered += 1;
        for step in 0..self.number(1..=4) {
            let (is_open, is_taken) = (held.is_open(), self.takes(&held));
            assert!(is_taken || !is_open, "who may work is refused");
            // The cache looks when it finds the block, which is now.
            let is_found = step == 0 && matches!(held.lease, Lease::Cached(_));
            assert!(is_open || !is_found, "a lease that is lost is found");
            let may_close = client.way == Way::Stormy;
            assert!(is_open || may_close, "a lease is closed without need");
            self.seen.borrow_mut().closed += u32::from(!is_open);
            self.seen.borrow_mut().refused += u32::from(!is_taken);
            self.look("works", &held);
            let most = match self.number(0..=9) {
                0 => WORK / 4,
                _ => ms(200),
            };
            sleep(self.up_to(most)).await;
        }
        self.look("ends", &held);
        self.held
            .borrow_mut()
            .retain(|other| !Rc::ptr_eq(other, &held));
    }

    /// Works in a block that was leased. The ttl may be too short for a stormy way.
    async fn enter(&self, client: Client, span: Span, mode: Mode, held: Result<Cached, Refused>) {
        match held {
            Ok(held) => self.work(client, span, mode, Lease::Cached(held)).await,
            Err(Refused::TtlTooShort { .. }) if client.way == Way::Stormy => {}
            Err(refused) => panic!("nothing else is refused: {refused}"),
        }
    }

    /// Waits for something, and notes for how long.
    async fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let outcome = timeout(PATIENCE, work).await;
        let mut seen = self.seen.borrow_mut();
        seen.longest = seen.longest.max(start.elapsed());
        outcome.expect("somebody waits for too long")
    }

    /// A task of a machine.
    async fn task(self: Rc<Self>, client: Client, lease: RangeLease, cache: Cache, ttl: Duration) {
        for _ in 0..STEPS {
            sleep(self.up_to(ms(500))).await;
            let first = self.number(0..=POSITIONS - 1);
            let last = self.number(first..=(first + 5).min(POSITIONS - 1));
            let mode = match self.number(0..=1) {
                0 => Mode::Shared,
                _ => Mode::Exclusive,
            };
            let span = Span::inclusive(first, last).expect("in order");
            let lock = cache.lock(first..=last, mode);
            match self.number(0..=11) {
                0 => {
                    let token = lease.acquire(first..=last, mode, ttl);
                    let token = token.within(self.up_to(ms(3000)));
                    if let Ok(token) = self.wait(token.start()).await {
                        let client = self.client(client.way);
                        self.work(client, span, mode, Lease::Token(token)).await;
                    }
                }
                1 => {
                    let given_up = timeout(self.up_to(ms(1000)), cache.give_up()).await;
                    self.seen.borrow_mut().cut += u32::from(given_up.is_err());
                }
                2 | 3 => match timeout(self.up_to(ms(1000)), lock).await {
                    Ok(held) => self.enter(client, span, mode, held).await,
                    Err(_) => self.seen.borrow_mut().cut += 1,
                },
                _ => {
                    let held = self.wait(lock).await;
                    self.enter(client, span, mode, held).await;
                }
            }
        }
    }

    /// Faults of a way, and when it is out.
    fn faults(&self, ttl: Duration) -> (Faults, Vec<(Instant, Instant)>) {
        let mut random = self.random.borrow_mut();
        let of = |random: &mut fastrand::Rng, values: &[u32]| values[random.usize(..values.len())];
        let faults = Faults {
            lost: of(&mut random, &[0, 0, 2, 10, 30]),
            delay: ms(of(&mut random, &[1, 20, 200, 1000]).into()),
            reports_lost: of(&mut random, &[0, 10, 50, 100]),
        };
        let outages = (0..random.u32(..4)).map(|_| {
            let from = Instant::now() + up_to(ms(30_000), &mut random);
            (from, from + up_to(2 * ttl, &mut random))
        });
        (faults, outages.collect())
    }
}

/// Waits for all. What one panics with all panic with, at once.
async fn join(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    }
}

/// Where machines have their leases.
#[derive(Clone, Copy)]
enum Engines {
    One,
    /// One for each: so nothing is excluded.
    Many,
}

async fn all(world: &Rc<World>, engines: Engines) {
    let memory = Memory::new();
    let (mut tasks, mut keepers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..MACHINES {
        let ttl = TTL / 4 + world.up_to(TTL / 4 * 3);
        let (faults, outages) = world.faults(ttl);
        let is_calm = faults.lost == 0 && faults.delay < ttl / 8 && outages.is_empty();
        let way = if is_calm { Way::Calm } else { Way::Stormy };
        let engine = match engines {
            Engines::One => memory.clone(),
            Engines::Many => Memory::new(),
        };
        let net = Net::new(engine, faults, outages, &world.random);
        let (opening, keeps) = RangeLease::open_here(net, Options::default());
        keepers.spawn_local(keeps);
        let lease = opening.await.expect("it opens");
        let (client, cache) = (world.client(way), Cache::new(lease.clone(), K, ttl));
        for _ in 0..TASKS {
            let (world, lease, cache) = (Rc::clone(world), lease.clone(), cache.clone());
            tasks.spawn_local(world.task(client, lease, cache, ttl));
        }
    }
    join(tasks).await;
    // All caches are dropped, so everything is released, or runs out.
    world.wait(join(keepers)).await;
    let (opening, keeps) = RangeLease::open_here(memory, Options::default());
    spawn_local(keeps);
    let rest = opening.await.expect("it opens");
    let rest = rest.acquire(.., Mode::Exclusive, ms(2000)).start();
    drop(world.wait(rest).await.expect("nothing is refused"));
}

/// The range locks' timer ends the turn of a task that was woken and is not polled for a millisecond of the machine's
/// time. Here all are polled before the clock advances.
struct Never;

impl CallAt for Never {
    fn call_at(&self, _: std::time::Instant, _: Call) {}
}

/// A schedule.
fn storm(seed: u64, engines: Engines) -> Result<Seen, String> {
    // The other schedules have installed it before.
    let _ = timer::install(Box::new(Never));
    let world = World::new(seed);
    let run = || simulate(all(&world, engines));
    let told = catch_unwind(AssertUnwindSafe(run));
    told.map_err(|panic| format!("seed {seed}: {}", text(&*panic)))?;
    let mut seen = world.seen.borrow().clone();
    seen.trace = world.trace.borrow().finish();
    Ok(seen)
}

fn text(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words")
}

fn chosen(name: &str, otherwise: u64) -> u64 {
    let number = |text: String| text.parse().expect("a number");
    std::env::var(name).map_or(otherwise, number)
}

#[test]
fn a_storm() {
    let first = chosen("SPANLOCK_LEASE_SEED", 0);
    let end = first + chosen("SPANLOCK_LEASE_SEEDS", 1000);
    let (next, sum) = (AtomicU64::new(first), Mutex::new(Seen::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= end {
                return;
            }
            let seen = storm(seed, Engines::One).unwrap_or_else(|failure| panic!("{failure}"));
            sum.lock().expect("no panic while held").add(&seen);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    watched(
        HANG,
        || next.load(Relaxed),
        |next| format!("before seed {next}"),
        || thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work)))),
    );
    let sum = sum.into_inner().expect("no panic while held");
    println!("{sum:?}");
    // Enough of them do what they are for.
    let least = sum.cut.min(sum.closed).min(sum.refused);
    assert!(end - first < 1000 || least > 0);
}

/// It can be repeated. Not always at the first time: for how long a range lock grants no reservations, and so who is
/// next within a machine, goes by the clock of the host.
#[test]
fn a_seed_is_a_schedule() {
    for seed in 0..10 {
        let mut runs = HashSet::new();
        let mut again = || !runs.insert(storm(seed, Engines::One).expect("nothing fails").trace);
        assert!((0..20).any(|_| again()), "seed {seed} is never the same");
    }
}

/// The oracle finds an engine that excludes nobody, and says in which schedule.
#[test]
fn a_failure_tells_its_seed() {
    let failures = (0..20).filter_map(|seed| storm(seed, Engines::Many).err());
    let failures: Vec<_> = failures.collect();
    println!("{failures:#?}");
    let tells = |failure: &&String| failure.starts_with("seed ") && failure.contains("two hold");
    assert!(failures.iter().any(|failure| tells(&failure)));
}
