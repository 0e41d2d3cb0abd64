//! Counts and times what leases cost on a server: `round_trips 'host=… user=… dbname=…'`. `scripts/postgres start`
//! prints such a server.

use spanlock_lease::{
    Answer, Cache, Engine, Mode, News, RangeLease, Renewal, Request, RequestId, Span, Token,
    Trouble,
};
use spanlock_lease_postgres::Postgres;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};

const TTL: Duration = Duration::from_secs(30);

/// An engine whose calls are counted. Each is a round trip.
struct Counted {
    inside: Postgres,
    calls: Arc<AtomicU64>,
    machine: Machine,
}

/// What a machine does wrong.
#[derive(Clone)]
enum Machine {
    Works,
    /// It is told nothing: what the server reports is lost.
    Deaf,
    /// When this is set, it says nothing any more.
    Dies(Arc<AtomicBool>),
}

impl Counted {
    fn count(&self) -> Result<(), Trouble> {
        self.calls.fetch_add(1, Relaxed);
        match &self.machine {
            Machine::Dies(has_died) if has_died.load(Relaxed) => {
                Err(Trouble::Unreachable("it has died".into()))
            }
            _ => Ok(()),
        }
    }
}

impl Engine for Counted {
    type Range = Span;

    async fn open(&self) -> Result<(), Trouble> {
        self.inside.open().await
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        self.count()?;
        self.inside.acquire(request).await
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        self.count()?;
        self.inside.renew(id, ttl).await
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        self.count()?;
        self.inside.release(id).await
    }

    async fn news(&self) -> News {
        match self.machine {
            Machine::Deaf => std::future::pending().await,
            _ => self.inside.news().await,
        }
    }
}

struct Bench {
    calls: Arc<AtomicU64>,
}

impl Bench {
    /// Does something so often, and prints what each time took and how many round trips it was.
    fn row(
        &self,
        what: &str,
        times: u32,
        mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        self.timed(what, times, || {
            let start = Instant::now();
            work()?;
            Ok(start.elapsed())
        })
    }

    /// As [`row`](Self::row), of what times itself.
    fn timed(
        &self,
        what: &str,
        times: u32,
        work: impl FnMut() -> Result<Duration, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let before = self.calls.load(Relaxed);
        let took: Result<Vec<_>, _> = std::iter::repeat_with(work).take(times as usize).collect();
        let mut took = took?;
        took.sort_unstable();
        let calls = (self.calls.load(Relaxed) - before) as f64 / f64::from(times);
        let at = |percent: usize| took[(took.len() - 1) * percent / 100];
        println!(
            "{what:48} {:>10.1?} {:>10.1?} {:>10.1?} {calls:>6.2}",
            at(50),
            at(95),
            at(100)
        );
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let config: Config = std::env::args()
        .nth(1)
        .ok_or("usage: round_trips CONNECTION")?
        .parse()?;
    let calls = Arc::new(AtomicU64::new(0));
    let open = |machine: &Machine| {
        let engine = Counted {
            inside: Postgres::new(config.clone(), "round trips"),
            calls: Arc::clone(&calls),
            machine: machine.clone(),
        };
        RangeLease::open(engine).wait()
    };
    let (a, b) = (open(&Machine::Works)?, open(&Machine::Works)?);
    let bench = Bench {
        calls: Arc::clone(&calls),
    };
    println!(
        "{:48} {:>10} {:>10} {:>10} {:>6}",
        "", "median", "95 %", "largest", "trips"
    );

    bench.row("a lease, free: acquired and released", 500, || {
        Ok(a.acquire(0..64, Mode::Exclusive, TTL)
            .wait()?
            .release()
            .wait()?)
    })?;
    // From the release to the grant; the trips are those of both sides.
    let mut token = Some(a.acquire(0..64, Mode::Exclusive, TTL).wait()?);
    let mut sides = [&a, &b].into_iter().cycle().skip(1);
    bench.row("a lease that another waits for, handed over", 200, || {
        let held = token.take().expect("one side holds it");
        let next = sides
            .next()
            .expect("it has no end")
            .acquire(0..64, Mode::Exclusive, TTL)
            .start();
        held.wanted().wait();
        held.release().wait()?;
        token = Some(next.wait()?);
        Ok(())
    })?;
    drop(token);
    let has_died = Arc::new(AtomicBool::new(false));
    let dying = open(&Machine::Dies(Arc::clone(&has_died)))?;
    let deaf = open(&Machine::Deaf)?;
    // From when the holder releases, or says nothing any more.
    let until_granted =
        |holder: &RangeLease, next: &RangeLease, ttl: Duration, ends: &dyn Fn(Token)| {
            let held = holder.acquire(0..64, Mode::Exclusive, ttl).wait()?;
            let next = next.acquire(0..64, Mode::Exclusive, TTL).start();
            held.wanted().wait();
            let start = Instant::now();
            ends(held);
            let next = next.wait()?;
            let took = start.elapsed();
            has_died.store(false, Relaxed);
            next.release().wait()?;
            Ok(took)
        };
    bench.timed("the wait after a release", 200, || {
        until_granted(&a, &b, TTL, &drop)
    })?;
    bench.timed("if its report is lost: up to 500 ms and a trip", 20, || {
        until_granted(&a, &deaf, TTL, &drop)
    })?;
    let dies = |token| {
        has_died.store(true, Relaxed);
        drop(token);
    };
    bench.timed(
        "after a death, ttl 1 s: up to 1.05 s and a trip",
        10,
        || until_granted(&dying, &b, Duration::from_secs(1), &dies),
    )?;
    let (here, there) = (Cache::new(a.clone(), 6, TTL), Cache::new(b.clone(), 6, TTL));
    drop(here.lock_blocking(0..1, Mode::Exclusive)?);
    bench.row("a hit in the cache, 1000 times", 200, || {
        for _ in 0..1000 {
            drop(here.lock_blocking(0..8, Mode::Exclusive)?);
        }
        Ok(())
    })?;
    let plain = spanlock::range::RangeLock::new();
    bench.row("a plain range lock, 1000 times", 200, || {
        (0..1000).for_each(|_| drop(plain.write(0..8)));
        Ok(())
    })?;
    bench.row("a block from cache to cache and back", 100, || {
        drop(there.lock_blocking(0..1, Mode::Exclusive)?);
        drop(here.lock_blocking(0..1, Mode::Exclusive)?);
        Ok(())
    })?;

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (client, connection) = runtime.block_on(config.connect(NoTls))?;
    runtime.spawn(connection);
    let acquire = runtime.block_on(client.prepare("select pg_advisory_lock(1)"))?;
    let release = runtime.block_on(client.prepare("select pg_advisory_unlock(1)"))?;
    bench.row("pg_advisory_lock and unlock (trips: 2)", 500, || {
        for statement in [&acquire, &release] {
            runtime.block_on(client.query_one(statement, &[]))?;
        }
        Ok(())
    })
}
