//! Counts and times what leases cost on a server: `round_trips 'host=… user=… dbname=…'`. `scripts/postgres start`
//! prints such a server.

use spanlock_lease::{
    Answer, Cache, Engine, Mode, News, RangeLease, Renewal, Request, RequestId, Trouble,
};
use spanlock_lease_postgres::Postgres;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio_postgres::{Config, NoTls};

const TTL: Duration = Duration::from_secs(30);

/// An engine whose calls are counted. Each is a round trip.
struct Counted {
    inside: Postgres,
    calls: Arc<AtomicU64>,
}

impl Counted {
    fn count(&self) {
        self.calls.fetch_add(1, Relaxed);
    }
}

impl Engine for Counted {
    async fn open(&self) -> Result<(), Trouble> {
        self.inside.open().await
    }

    async fn acquire(&self, request: &Request) -> Result<Answer, Trouble> {
        self.count();
        self.inside.acquire(request).await
    }

    async fn renew(&self, id: RequestId, ttl: Duration) -> Result<Renewal, Trouble> {
        self.count();
        self.inside.renew(id, ttl).await
    }

    async fn release(&self, id: RequestId) -> Result<(), Trouble> {
        self.count();
        self.inside.release(id).await
    }

    async fn news(&self) -> News {
        self.inside.news().await
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
        let before = self.calls.load(Relaxed);
        let mut took = Vec::new();
        for _ in 0..times {
            let start = Instant::now();
            work()?;
            took.push(start.elapsed());
        }
        took.sort_unstable();
        let calls = (self.calls.load(Relaxed) - before) as f64 / f64::from(times);
        let at = |percent: usize| took[(took.len() - 1) * percent / 100];
        println!("{what:44} {:>10.1?} {:>10.1?} {calls:>6.2}", at(50), at(95));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let config: Config = std::env::args()
        .nth(1)
        .ok_or("usage: round_trips CONNECTION")?
        .parse()?;
    let calls = Arc::new(AtomicU64::new(0));
    let engine = || Counted {
        inside: Postgres::new(config.clone(), "round trips"),
        calls: Arc::clone(&calls),
    };
    let (a, b) = (
        RangeLease::open(engine()).wait()?,
        RangeLease::open(engine()).wait()?,
    );
    let bench = Bench {
        calls: Arc::clone(&calls),
    };
    println!("{:44} {:>10} {:>10} {:>6}", "", "median", "95 %", "trips");

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
