//! What a cache of leases brings where machines work mostly in places of their own: `locality [SECONDS [CONNECTION]]`,
//! with `'host=… user=… dbname=…'` as `scripts/postgres start` prints it. Without a server, calls go to an engine in
//! memory and take 1 ms.
//!
//! Three machines, here with a thread each, have places of 64 blocks. An access writes a few positions of a block. In a
//! turn, a machine chooses a block, its own mostly, and has so many accesses there. The same accesses are made by the
//! caches, and by a lease for each. A block that another machine has used must be handed over, and back.

use spanlock_lease::{
    Answer, Cache, Engine, Memory, Mode, News, RangeLease, Renewal, Request, RequestId, Span,
    Trouble,
};
use spanlock_lease_postgres::Postgres;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};

const TTL: Duration = Duration::from_secs(30);
const DELAY: Duration = Duration::from_millis(1);
const MACHINES: u64 = 3;
/// Of each machine.
const BLOCKS: u64 = 64;
/// Blocks have `2^K` positions.
const K: u32 = 6;
const POSITIONS: u64 = 8;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Where leases are kept.
enum Kept {
    Postgres(Box<Postgres>),
    /// In memory, and as far away as a server.
    Memory(Memory),
}

/// An engine whose grants are counted.
struct Counted {
    kept: Kept,
    grants: Arc<AtomicU64>,
}

macro_rules! call {
    ($self:ident, $engine:ident => $call:expr) => {
        match &$self.kept {
            Kept::Postgres($engine) => $call.await,
            Kept::Memory($engine) => {
                tokio::time::sleep(DELAY).await;
                $call.await
            }
        }
    };
}

impl Engine for Counted {
    type Range = Span;

    async fn open(&self) -> Result<(), Trouble> {
        call!(self, engine => engine.open())
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        let answer = call!(self, engine => engine.acquire(request));
        if let Ok(Answer::Granted { .. }) = answer {
            self.grants.fetch_add(1, Relaxed);
        }
        answer
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        call!(self, engine => engine.renew(id, ttl))
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        call!(self, engine => engine.release(id))
    }

    async fn news(&self) -> News {
        match &self.kept {
            Kept::Postgres(engine) => engine.news().await,
            Kept::Memory(engine) => engine.news().await,
        }
    }
}

/// What machines do.
#[derive(Clone, Copy)]
struct Traffic {
    /// Of a thousand turns so many are in a block of one's own.
    local: u64,
    /// Accesses of a turn.
    turn: u64,
}

/// All machines work for a time, each by what `machine` makes for it. Accesses in a second.
fn rate<A: FnMut(Range<u64>) -> Outcome<()>>(
    traffic: Traffic,
    time: Duration,
    machine: impl Fn(u64) -> Outcome<A> + Sync,
) -> Outcome<f64> {
    let (accesses, machine) = (AtomicU64::new(0), &machine);
    let works = |number: u64| -> Outcome<()> {
        let (mut access, mut random) = (machine(number)?, fastrand::Rng::with_seed(number));
        let (end, mut done) = (Instant::now() + time, 0);
        while Instant::now() < end {
            let away = match random.u64(..1000) < traffic.local {
                true => 0,
                false => random.u64(1..MACHINES),
            };
            let place = (number + away) % MACHINES;
            let block = place * BLOCKS + random.u64(..BLOCKS);
            for _ in (0..traffic.turn).take_while(|_| Instant::now() < end) {
                let first = (block << K) + random.u64(..=(1 << K) - POSITIONS);
                access(first..first + POSITIONS)?;
                done += 1;
            }
        }
        accesses.fetch_add(done, Relaxed);
        Ok(())
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let machines: Vec<_> = (0..MACHINES)
            .map(|number| scope.spawn(move || works(number)))
            .collect();
        let mut ended = machines.into_iter().map(|machine| machine.join());
        ended.try_for_each(|ended| ended.expect("it does not panic"))
    })?;
    Ok(accesses.into_inner() as f64 / start.elapsed().as_secs_f64())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let config = arguments.next().map(|text| text.parse::<Config>());
    let config = config.transpose()?;
    let (grants, memory) = (Arc::new(AtomicU64::new(0)), Memory::new());
    let leases = (0..MACHINES).map(|_| {
        let kept = match &config {
            Some(config) => Kept::Postgres(Box::new(Postgres::new(config.clone(), "locality"))),
            None => Kept::Memory(memory.clone()),
        };
        let grants = Arc::clone(&grants);
        RangeLease::open(Counted { kept, grants }).wait()
    });
    let leases = leases.collect::<Result<Vec<_>, _>>()?;
    println!(
        "{:>7} {:>6} {:>13} {:>13} {:>8} {:>10}",
        "local", "turn", "cached, /s", "uncached, /s", "ratio", "misses, /s"
    );
    let of = |local, turn| Traffic { local, turn };
    let all = [
        of(900, 1),
        of(900, 10),
        of(900, 100),
        of(900, 1000),
        of(990, 1),
        of(999, 1),
        of(1000, 1),
    ];
    for traffic in all {
        let uncached = rate(traffic, time, |number| {
            let lease = &leases[number as usize];
            Ok(move |range| {
                let token = lease.acquire(range, Mode::Exclusive, TTL).wait()?;
                Ok(token.release().wait()?)
            })
        })?;
        let caches = leases.iter().map(|lease| Cache::new(lease.clone(), K, TTL));
        let caches: Vec<_> = caches.collect();
        // Each machine has its own blocks when the time begins.
        for (number, cache) in (0..).zip(&caches) {
            for block in number * BLOCKS..(number + 1) * BLOCKS {
                drop(cache.lock_blocking(block << K..(block + 1) << K, Mode::Exclusive)?);
            }
        }
        let before = grants.load(Relaxed);
        let cached = rate(traffic, time, |number| {
            let cache = &caches[number as usize];
            Ok(move |range| {
                drop(cache.lock_blocking(range, Mode::Exclusive)?);
                Ok(())
            })
        })?;
        let misses = (grants.load(Relaxed) - before) as f64 / seconds;
        println!(
            "{:>5.1} % {:>6} {cached:>13.0} {uncached:>13.0} {:>8.1} {misses:>10.0}",
            traffic.local as f64 / 10.0,
            traffic.turn,
            cached / uncached
        );
    }
    let Some(config) = config else {
        return Ok(());
    };
    let advisory = rate(of(900, 1), time, |_| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (client, connection) = runtime.block_on(config.connect(NoTls))?;
        runtime.spawn(connection);
        let lock = runtime.block_on(client.prepare("select pg_advisory_lock($1)"))?;
        let unlock = runtime.block_on(client.prepare("select pg_advisory_unlock($1)"))?;
        Ok(move |range: Range<u64>| {
            let block = (range.start >> K).cast_signed();
            for statement in [&lock, &unlock] {
                runtime.block_on(client.query_one(statement, &[&block]))?;
            }
            Ok(())
        })
    })?;
    println!("pg_advisory_lock and unlock of a block, for each access: {advisory:.0} /s");
    Ok(())
}
