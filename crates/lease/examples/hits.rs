//! What a hit in the cache costs beside a plain range lock: `hits [SECONDS]`. Threads lock ranges of their own in one
//! block, so they do not wait for each other. Turns of both alternate, and a ratio is of two turns after each other.

use spanlock::range::RangeLock;
use spanlock_lease::{Cache, Memory, Mode, RangeLease};
use std::error::Error;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(60);
const TIMES: u32 = 20_000;

/// The time of a turn, by all threads.
fn turn(threads: u64, once: impl Fn(u64) + Sync) -> Duration {
    let begin = Barrier::new(threads as usize + 1);
    let mut start = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            let (begin, once) = (&begin, &once);
            scope.spawn(move || {
                once(number);
                begin.wait();
                (0..TIMES).for_each(|_| once(number));
            });
        }
        begin.wait();
        start = Instant::now();
    });
    start.elapsed()
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    println!(
        "{:>9} {:>8} {:>12} {:>12} {:>18}",
        "mode", "threads", "plain, ns", "hit, ns", "ratio: 25 50 75 %"
    );
    for mode in [Mode::Exclusive, Mode::Shared] {
        for threads in [1, 2, 4, 8] {
            let cache = Cache::new(RangeLease::open(Memory::new()).wait()?, 10, TTL);
            let plain = RangeLock::new();
            drop(cache.lock_blocking(0..1024, Mode::Exclusive)?);
            let range = |number: u64| 64 * number..64 * number + 8;
            let hits = |number| drop(black_box(cache.lock_blocking(range(number), mode)));
            let locks = |number| match mode {
                Mode::Exclusive => drop(black_box(plain.write(range(number)))),
                Mode::Shared => drop(black_box(plain.read(range(number)))),
            };
            let (mut pairs, end) = (Vec::new(), Instant::now() + Duration::from_secs(seconds));
            while Instant::now() < end {
                let pair = match pairs.len() % 2 {
                    0 => (turn(threads, locks), turn(threads, hits)),
                    _ => {
                        let hit = turn(threads, hits);
                        (turn(threads, locks), hit)
                    }
                };
                pairs.push((pair.0.as_secs_f64(), pair.1.as_secs_f64()));
            }
            let sorted = |of: &dyn Fn(&(f64, f64)) -> f64| {
                let mut all: Vec<_> = pairs.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                move |part: usize| all[(all.len() - 1) * part / 4]
            };
            let (plain, hit) = (sorted(&|pair| pair.0), sorted(&|pair| pair.1));
            let ratio = sorted(&|pair| pair.1 / pair.0);
            let each = 1e9 / f64::from(TIMES);
            let mode = match mode {
                Mode::Exclusive => "exclusive",
                Mode::Shared => "shared",
            };
            println!(
                "{mode:>9} {threads:>8} {:>12.1} {:>12.1} {:>6.2}{:>6.2}{:>6.2}",
                plain(2) * each,
                hit(2) * each,
                ratio(1),
                ratio(2),
                ratio(3)
            );
        }
    }
    Ok(())
}
