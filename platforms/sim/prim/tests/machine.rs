//! What things take, and that a run is the same every time.

use prim_sim::atomic::{AtomicU64, Ordering};
use prim_sim::barrier;
use prim_sim::clock::{Duration, Instant};
use prim_sim::{
    Asymmetry, Ended, Fuzz, Machine, Placement, Setup, cost, futex, run, sync, thread, workload,
};
use std::collections::HashSet;
use std::sync::Arc;

#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

#[repr(align(64))]
#[derive(Default)]
struct Word(AtomicU64);

fn xeon(placement: Placement) -> Setup {
    let mut machine = Machine::find("xeon-2x10x2").unwrap();
    machine.gigahertz = 1.0; // A cycle is a nanosecond.
    Setup {
        placement,
        ..Setup::new(machine)
    }
}

/// The duration of `f`, less the cost of reading the clock.
fn cycles<R>(f: impl FnOnce() -> R) -> u64 {
    let reading = || {
        let start = Instant::now();
        start.elapsed().as_nanos() as u64
    };
    let reading = reading();
    let start = Instant::now();
    let _ = f();
    start.elapsed().as_nanos() as u64 - reading
}

fn ended<T: Send + 'static>(setup: &Setup, f: impl FnOnce() -> T + Send + 'static) -> Ended<T> {
    run(setup, f).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn an_uncontended_access_takes_what_the_machine_says() {
    let setup = xeon(Placement::Compact);
    let latencies = setup.machine.cycles.clone();
    let took = ended(&setup, || {
        let word = Word::default();
        let first = cycles(|| word.0.load(Ordering::Relaxed));
        let again = cycles(|| word.0.load(Ordering::Relaxed));
        let add = cycles(|| word.0.fetch_add(1, Ordering::Relaxed));
        let work = cycles(|| cost::work(1000));
        [first, again, add, work]
    });
    let expected = [latencies.memory, latencies.load_hit, latencies.rmw, 1000];
    assert_eq!(took.value, expected);
}

#[test]
fn an_asymmetric_fence_costs_its_caller_and_running_threads() {
    let setup = xeon(Placement::Scatter);
    let latencies = setup.machine.cycles.clone();
    let took = ended(&setup, || {
        let alone = cycles(barrier::light) + cycles(barrier::heavy);
        let asked = Arc::new(Word::default());
        let theirs = Arc::clone(&asked);
        // Works all the time, and is interrupted.
        let other = thread::spawn(move || {
            cycles(|| {
                theirs.0.load(Ordering::Relaxed);
                cost::work(1_000_000);
                theirs.0.load(Ordering::Relaxed);
            })
        });
        cost::work(500_000);
        barrier::heavy();
        [alone, other.join().unwrap()]
    });
    let [alone, other] = took.value;
    // Entering the system takes a random time, from half to one and a half.
    let system = latencies.system / 2..=latencies.system * 3 / 2;
    assert!(system.contains(&(alone - latencies.interrupt)), "{alone}");
    let loads = latencies.memory + latencies.load_hit;
    assert_eq!(other, 1_000_000 + loads + latencies.interrupted);
}

#[test]
fn asymmetric_fences_may_be_two_fences() {
    let setup = Setup {
        asymmetry: Asymmetry::Fences,
        ..xeon(Placement::Scatter)
    };
    let both = 2 * setup.machine.cycles.fence;
    let took = ended(&setup, || cycles(barrier::light) + cycles(barrier::heavy));
    assert_eq!(took.value, both);
}

#[test]
fn siblings_are_different_processors_of_one_node() {
    let setup = xeon(Placement::Compact);
    let contexts = setup.machine.contexts();
    let here = ended(&setup, move || {
        // The first is this thread's.
        let mut here = workload::crew(contexts - 1, |_| (thread::cpu(), thread::node()), || ());
        here.push((thread::cpu(), thread::node()));
        here
    });
    let cpus: HashSet<_> = here.value.iter().map(|(cpu, _)| *cpu).collect();
    assert_eq!(cpus, (0..contexts).collect());
    let on = |node| here.value.iter().filter(|(_, at)| *at == node).count();
    assert_eq!([on(0), on(1)], [contexts / 2; 2]);
}

#[test]
fn what_things_are_told_apart_by_does_not_follow_from_the_host() {
    let addresses = || {
        ended(&xeon(Placement::Compact), || {
            let words: Vec<Word> = (0..4).map(|_| Word::default()).collect();
            words.iter().map(prim_sim::address_of).collect::<Vec<_>>()
        })
        .value
    };
    let first = addresses();
    let disturbance = vec![0_u8; 4096];
    assert_eq!(first, addresses());
    drop(disturbance);
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), 4);
}

#[test]
fn a_stack_is_new_to_each_thread() {
    let first_uses = ended(&xeon(Placement::Compact), || {
        let first_use = || cycles(|| Word::default().0.load(Ordering::Relaxed));
        [(); 3].map(|()| thread::spawn(first_use).join().unwrap())
    });
    let machine = xeon(Placement::Compact).machine;
    assert_eq!(first_uses.value, [machine.cycles.memory; 3]);
}

/// What the second thread's load of a line takes that the first has modified.
fn load_of_modified(placement: Placement) -> u64 {
    let ended = ended(&xeon(placement), || {
        let word = Arc::new(Word::default());
        word.0.fetch_add(1, Ordering::Relaxed);
        // The second thread of a compact placement is the first one's sibling.
        let spare = thread::spawn(|| ());
        let theirs = Arc::clone(&word);
        let other = thread::spawn(move || cycles(|| theirs.0.load(Ordering::Relaxed)));
        spare.join().unwrap();
        other.join().unwrap()
    });
    ended.value
}

#[test]
fn another_socket_is_farther() {
    let machine = Machine::find("xeon-2x10x2").unwrap();
    let compact = load_of_modified(Placement::Compact);
    assert_eq!(compact, machine.cycles.load_modified_local);
    let took = ended(&xeon(Placement::Scatter), || {
        let word = Arc::new(Word::default());
        word.0.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || cycles(|| word.0.load(Ordering::Relaxed)))
            .join()
            .unwrap()
    });
    assert_eq!(took.value, machine.cycles.load_modified_remote);
}

#[test]
fn contended_additions_queue() {
    let throughput = |threads: usize| {
        let ended = ended(&xeon(Placement::Compact), move || {
            let word = Arc::new(Word::default());
            let crew: Vec<_> = (0..threads)
                .map(|_| {
                    let word = Arc::clone(&word);
                    thread::spawn(move || {
                        for _ in 0..200 {
                            word.0.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            crew.into_iter().for_each(|one| one.join().unwrap());
            assert_eq!(word.0.load(Ordering::Relaxed), 200 * threads as u64);
        });
        200.0 * threads as f64 / ended.elapsed.as_secs_f64()
    };
    let [one, four, ten] = [1, 4, 10].map(throughput);
    assert!(one > four, "a line moves: {one} {four}");
    assert!(ten < 2.0 * four, "and serves one at a time: {four} {ten}");
}

#[test]
fn private_lines_scale() {
    let elapsed = |threads: usize| {
        ended(&xeon(Placement::Scatter), move || {
            let crew: Vec<_> = (0..threads)
                .map(|_| {
                    thread::spawn(|| {
                        let word = Word::default();
                        for _ in 0..5000 {
                            word.0.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            crew.into_iter().for_each(|one| one.join().unwrap());
        })
        .elapsed
    };
    assert!(elapsed(20) < elapsed(1) * 2);
}

#[test]
fn a_futex_times_out_at_its_deadline_and_not_before() {
    let took = ended(&xeon(Placement::Compact), || {
        let word = prim_sim::atomic::AtomicU32::new(0);
        let patience = Duration::from_millis(3);
        let start = Instant::now();
        let woken = futex::wait(&word, 0, Some(start + patience));
        assert_eq!(woken, futex::Woken::TimedOut);
        assert_eq!(futex::wait(&word, 1, None), futex::Woken::Recheck);
        (start.elapsed(), patience)
    });
    let (took, patience) = took.value;
    assert!(took >= patience && took < patience * 2, "{took:?}");
}

#[test]
fn a_woken_sleeper_goes_on_before_its_deadline() {
    let took = ended(&xeon(Placement::Compact), || {
        let word = Arc::new(prim_sim::atomic::AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let start = Instant::now();
        let sleeper = thread::spawn(move || {
            let deadline = Some(start + Duration::from_secs(1));
            while theirs.load(Ordering::Acquire) == 0 {
                futex::wait(&theirs, 0, deadline);
            }
        });
        cost::work(100_000);
        word.store(1, Ordering::Release);
        futex::wake_all(&word);
        sleeper.join().unwrap();
        start.elapsed()
    });
    assert!(took.value < Duration::from_millis(1), "{:?}", took.value);
}

/// Four threads of everything there is.
fn busy(setup: &Setup) -> Ended<u64> {
    ended(setup, || {
        let word = Arc::new(Word::default());
        let sum = Arc::new(sync::Mutex::new(0));
        let crew: Vec<_> = (0..4)
            .map(|number| {
                let (word, sum) = (Arc::clone(&word), Arc::clone(&sum));
                thread::spawn(move || {
                    while word.0.load(Ordering::Acquire) < number {
                        workload::until_changed(&word.0, number - 1);
                    }
                    for _ in 0..20 {
                        *sum.lock() += word.0.fetch_add(1, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        crew.into_iter().for_each(|one| one.join().unwrap());
        let sum = sum.lock();
        *sum
    })
}

#[test]
fn the_same_setup_gives_the_same_run_and_another_seed_another() {
    let mut setup = xeon(Placement::Unpinned);
    setup.fuzz = Fuzz {
        jitter: 100,
        preempted: 50,
        preemption: 10_000,
        drain: 100,
        ..Fuzz::default()
    };
    let runs: Vec<_> = (0..4)
        .map(|seed| {
            setup.seed = seed;
            let first = busy(&setup);
            let disturbance: Vec<u8> = Vec::with_capacity(24 + seed as usize * 100);
            assert_eq!(first, busy(&setup));
            drop(disturbance);
            first.digest
        })
        .collect();
    assert_ne!(runs[0], runs[1]);
}
