//! Processes that are stopped and killed at work, and a server that crashes.

use crate::child::{self, Child, Client};
use crate::network::{Direction, Network, Way};
use crate::server::{LONG, Server};
use crate::store::{Checks, Store};
use spanlock_lease::Mode::Exclusive;
use std::thread;
use std::time::Duration;

/// A process reads, and is stopped. Its lease runs out, and another client reads and writes. Then it goes on, and
/// writes without a look at its lease.
fn with_a_late_write<S: Server>(server: &S, checks: Checks) -> Store {
    let store = Store::new(checks);
    store.stop_the_next();
    let late = Child::start(&server.at, &store, "1", S::TTL);
    store.stopped();
    let next = server
        .lease()
        .acquire(0..4, Exclusive, LONG)
        .wait()
        .unwrap();
    let mut client = Client::new(store.socket.to_str().unwrap());
    let read = client.read(&next).expect("its fence is the largest");
    assert!(client.write(&next, &read));
    late.go_on();
    store.wait_for_writes(2);
    drop(late);
    store
}

/// A resource that checks fences refuses it.
pub fn a_late_write_is_refused<S: Server>(server: &S) {
    let store = with_a_late_write(server, Checks::Fences);
    assert_eq!(store.refused(), 1);
    assert_eq!(store.holders_follow_each_other(), Ok(()));
}

/// So what fences prevent is found.
pub fn a_late_write_without_fences_is_found<S: Server>(server: &S) {
    let store = with_a_late_write(server, Checks::Nothing);
    assert_eq!(store.refused(), 0);
    let why = store.holders_follow_each_other();
    let why = why.expect_err("an update was lost, and an earlier fence came back");
    let is_said = why.contains("came back: true") && why.contains("is lost: true");
    assert!(is_said, "{why}");
}

/// What happens to a machine and its network in a round.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The server's processes are killed, and it starts again.
    Crash,
    Kill,
    /// For longer than the ttl.
    Stop,
    /// The same, between a read and its write, which comes late then.
    StopAtWork,
    /// All connections are closed.
    Cut,
    Delay,
    /// Without a word, in one direction or in both.
    Lose,
}

const FAULTS: [Fault; 10] = [
    Fault::Crash,
    Fault::Kill,
    Fault::Stop,
    Fault::Stop,
    Fault::StopAtWork,
    Fault::StopAtWork,
    Fault::Cut,
    Fault::Delay,
    Fault::Lose,
    Fault::Lose,
];

/// A run of so many rounds has writes that come too late, in all likelihood: one round of five stops somebody at work.
const MANY: u32 = 100;

/// A random time up to one and a half ttl.
fn a_while<S: Server>() -> Duration {
    S::TTL.mul_f64(1.5 * fastrand::f64())
}

fn disturb<S: Server>(network: &Network, way: Way) {
    let both = [Direction::ToServer, Direction::FromServer];
    let directions = match fastrand::u32(..3) {
        0 => &both[..1],
        1 => &both[1..],
        _ => &both,
    };
    for direction in directions {
        network.set(*direction, way);
    }
    thread::sleep(a_while::<S>());
    network.mend();
}

/// Whatever fails.
pub fn no_update_is_lost<S: Server>(server: &S) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::seed(seed);
    let store = Store::new(Checks::Fences);
    let networks: Vec<Network> = (0..3).map(|_| server.network()).collect();
    let start =
        |number: usize| Child::start(&S::at_port(networks[number].port()), &store, "60", S::TTL);
    let mut children: Vec<Child> = (0..3).map(start).collect();
    let rounds: u32 = std::env::var("SPANLOCK_LEASE_ROUNDS")
        .map_or(16, |rounds| rounds.parse().expect("a number"));
    let mut happened = [0; 7];
    for _ in 0..rounds {
        server.step();
        thread::sleep(Duration::from_millis(fastrand::u64(..200)));
        let (number, fault) = (fastrand::usize(..3), fastrand::usize(..FAULTS.len()));
        let (child, network) = (&mut children[number], &networks[number]);
        happened[FAULTS[fault] as usize] += 1;
        match FAULTS[fault] {
            Fault::Crash => server.crash(),
            Fault::Kill => {
                child.kill();
                *child = start(number);
            }
            Fault::Stop => {
                child.stop();
                thread::sleep(S::TTL * 3 / 2);
                child.go_on();
            }
            Fault::StopAtWork => {
                if let Some(pid) = store.stopped_within(5 * S::TTL) {
                    thread::sleep(S::TTL * 3 / 2);
                    child::go_on(pid);
                }
            }
            Fault::Cut => network.cut(),
            Fault::Delay => disturb::<S>(network, Way::Delays(a_while::<S>())),
            Fault::Lose => disturb::<S>(network, Way::Loses),
        }
        if child.has_ended() {
            *child = start(number);
        }
    }
    for child in &mut children {
        child.wait();
        server.step();
    }
    let faults = "crashed, killed, stopped, stopped at work, cut, delayed, lost";
    println!(
        "{faults}: {:?}; {} writes were accepted, {} requests refused",
        happened,
        store.written(),
        store.refused()
    );
    assert!(
        rounds < MANY || store.refused() > 0,
        "no write came too late"
    );
    assert_eq!(store.holders_follow_each_other(), Ok(()));
}
