//! Times what leases cost on a cluster, beside etcd's own lock: `round_trips etcd://…`. `scripts/etcd start` prints
//! such a cluster.

use bytes::{Buf, BufMut, BytesMut};
use h2::client::SendRequest;
use prost::Message;
use spanlock_lease::{Answer, Engine, Mode, RangeLease, Request, Span};
use spanlock_lease_etcd::Etcd;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

const TTL: Duration = Duration::from_secs(30);

/// As the keeper has it.
const POLL: Duration = Duration::from_millis(500);

/// How long each rate is measured.
const TIME: Duration = Duration::from_secs(3);

/// The lock of etcd: the server makes a key with a lease, and answers when no earlier one is left.
#[derive(Clone, PartialEq, Eq, Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct LockResponse {
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct UnlockRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    id: i64,
}

/// A connection to the first member, with what these calls need and no more.
struct Connection(SendRequest<bytes::Bytes>);

impl Connection {
    async fn to(at: &str) -> Result<Self, Box<dyn Error>> {
        let socket = at
            .strip_prefix("etcd://")
            .and_then(|members| members.split(',').next());
        let socket = socket
            .filter(|socket| socket.starts_with('/'))
            .ok_or("etcd's lock is asked through a socket of this machine")?;
        let (requests, connection) =
            h2::client::handshake(UnixStream::connect(socket).await?).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self(requests))
    }

    /// One message for one answer. An error is told by a missing answer.
    async fn call<A: Message + Default>(
        &self,
        path: &str,
        asked: &impl Message,
    ) -> Result<A, Box<dyn Error>> {
        let request = http::Request::post(format!("http://etcd/{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (answer, mut sends) = self.0.clone().ready().await?.send_request(request, false)?;
        let mut frame = BytesMut::new();
        frame.put_u8(0);
        frame.put_u32(u32::try_from(asked.encoded_len())?);
        asked.encode(&mut frame)?;
        sends.send_data(frame.freeze(), true)?;
        let mut body = answer.await?.into_body();
        let mut came = BytesMut::new();
        while let Some(more) = body.data().await {
            let more = more?;
            body.flow_control().release_capacity(more.len())?;
            came.extend_from_slice(&more);
        }
        if came.len() < 5 {
            return Err(format!("{path}: {:?}", body.trailers().await?).into());
        }
        came.advance(5);
        Ok(A::decode(came)?)
    }
}

fn runtime() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("the system has what it needs")
}

/// What clients ask for, each by its number.
#[derive(Clone, Copy)]
enum Asks {
    /// All for the same range.
    OneRange,
    /// Each for one of its own, of the same resource.
    OneResource,
    /// Each for one of another resource.
    Apart,
}

impl Asks {
    fn resource(self, client: u64) -> String {
        match self {
            Self::OneRange | Self::OneResource => "round trips".to_owned(),
            Self::Apart => format!("round trips {client}"),
        }
    }

    fn position(self, client: u64) -> u64 {
        match self {
            Self::OneRange | Self::Apart => 0,
            Self::OneResource => client,
        }
    }
}

/// What all clients have done.
#[derive(Default)]
struct Done {
    pairs: AtomicU64,
    collisions: AtomicU64,
}

/// Counts pairs until the time is over.
async fn repeat(done: &Done, mut pair: impl AsyncFnMut()) {
    let start = Instant::now();
    while start.elapsed() < TIME {
        pair().await;
        done.pairs.fetch_add(1, Relaxed);
    }
}

/// A client of the engine. Who waits asks again when he is told, and after a while.
async fn leases(at: &str, asks: Asks, client: u64, done: &Done) {
    let config = at.parse().expect("it was read before");
    let engine = Etcd::new(config, asks.resource(client));
    engine.open().await.expect("it opens");
    let first = asks.position(client);
    repeat(done, async || {
        let request = Request {
            id: format!("{:x}", fastrand::u128(..))
                .parse()
                .expect("a number"),
            span: Span::inclusive(first, first).expect("in order"),
            mode: Mode::Exclusive,
            ttl: TTL,
            grow: None,
        };
        let mut looks = 0;
        while let Answer::Busy { .. } = engine.acquire(&request).await.expect("it answers") {
            looks += 1;
            // What was freed before the first refusal was told to nobody.
            if looks > 1 {
                let _ = timeout(POLL, engine.news()).await;
            }
        }
        engine.release(request.id).await.expect("it answers");
    })
    .await;
    done.collisions.fetch_add(engine.collisions(), Relaxed);
}

/// A client of etcd's lock.
async fn locks(at: &str, asks: Asks, client: u64, done: &Done) {
    let connection = Connection::to(at).await.expect("it opens");
    let asked = LeaseGrantRequest { ttl: 30 };
    let lease = connection.call("etcdserverpb.Lease/LeaseGrant", &asked);
    let LeaseGrantResponse { id: lease } = lease.await.expect("it answers");
    let name = format!("round trips {}", asks.resource(client)).into_bytes();
    repeat(done, async || {
        let name = name.clone();
        let lock = LockRequest { name, lease };
        let locked = connection.call("v3lockpb.Lock/Lock", &lock);
        let LockResponse { key } = locked.await.expect("it answers");
        let unlock = UnlockRequest { key };
        let unlocked = connection.call("v3lockpb.Lock/Unlock", &unlock);
        let () = unlocked.await.expect("it answers");
    })
    .await;
}

/// Prints how many pairs some clients do in a second, and how many collisions there were for each.
fn row(what: &str, client: impl AsyncFn(u64, &Done) + Sync) {
    print!("{what:44}");
    for clients in [1, 2, 4, 8] {
        let done = Done::default();
        let start = Instant::now();
        thread::scope(|scope| {
            for number in 0..clients {
                let (client, done) = (&client, &done);
                scope.spawn(move || runtime().block_on(client(number, done)));
            }
        });
        let pairs = done.pairs.into_inner() as f64;
        let collisions = done.collisions.into_inner() as f64 / pairs;
        print!(
            "{:>7.0} ({collisions:.2})",
            pairs / start.elapsed().as_secs_f64()
        );
    }
    println!();
}

/// Prints what each time took.
fn timed(
    what: &str,
    times: u32,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut took = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        work()?;
        took.push(start.elapsed());
    }
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    println!(
        "{what:44} {:>10.1?} {:>10.1?} {:>10.1?}",
        at(50),
        at(95),
        at(100)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let at = std::env::args()
        .nth(1)
        .ok_or("usage: round_trips etcd://HOST")?;
    let open = || {
        RangeLease::open(Etcd::new(at.parse().map_err(Box::new)?, "round trips"))
            .wait()
            .map_err(Box::<dyn Error>::from)
    };
    let (a, b) = (open()?, open()?);
    println!(
        "{:44} {:>10} {:>10} {:>10}",
        "", "median", "95 %", "largest"
    );
    timed("a lease, free: acquired and released", 500, || {
        let token = a.acquire(0..64, Mode::Exclusive, TTL).wait()?;
        Ok(token.release().wait()?)
    })?;
    let mut token = Some(a.acquire(0..64, Mode::Exclusive, TTL).wait()?);
    let mut sides = [&b, &a].into_iter().cycle();
    timed("a lease that another waits for, handed over", 200, || {
        let held = token.take().expect("one side holds it");
        let next = sides.next().expect("it has no end");
        let next = next.acquire(0..64, Mode::Exclusive, TTL).start();
        held.wanted().wait();
        held.release().wait()?;
        token = Some(next.wait()?);
        Ok(())
    })?;
    drop(token);

    println!(
        "\npairs/s of clients (collisions for each)      1              2              4              8"
    );
    for (what, asks) in [
        ("one range", Asks::OneRange),
        ("ranges of one resource", Asks::OneResource),
        ("resources of their own", Asks::Apart),
    ] {
        row(&format!("leases: {what}"), async |client, done| {
            leases(&at, asks, client, done).await
        });
    }
    for (what, asks) in [
        ("one name", Asks::OneRange),
        ("names of their own", Asks::Apart),
    ] {
        row(&format!("etcd's lock: {what}"), async |client, done| {
            locks(&at, asks, client, done).await
        });
    }
    Ok(())
}
