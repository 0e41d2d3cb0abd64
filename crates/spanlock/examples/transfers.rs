//! Transactions move money between accounts. Each locks its accounts as an owner, and goes over a pool of threads.
//!
//! ```text
//!   thread 1   A: lock    B: pay    C: lock     A: settle      a thread does one step of a transaction,
//!   thread 2   B: lock    A: pay    B: settle   C: pay         and then one of another
//! ```
//!
//! A transaction shares a group of accounts, finds the richest, and converts it to have it alone. Transactions may wait
//! for each other, or for one that no thread runs at the time. So each wait ends: some by a timeout, the others because
//! the main thread cancels owners that are old. Some transactions change their mind after they have paid. No money is
//! made or lost.
//!
//! `cargo run --release --example transfers`

use spanlock::range::raw::Mode::{Exclusive, Shared};
use spanlock::range::{Holding, Owner, RangeLock, Refusal};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 600;
const GROUP: u64 = 8;
const BALANCE: u64 = 1_000;
const TRANSACTIONS: u64 = 10_000;
/// Transactions that have begun and not ended: more than threads.
const BEGUN: usize = 12;
const THREADS: usize = 4;
const TIMEOUT: Duration = Duration::from_micros(300);
const OLD: Duration = Duration::from_millis(3);

struct Bank {
    accounts: RangeLock,
    /// Changed by a load and a store: only the lock keeps them right.
    balances: Vec<AtomicU64>,
}

#[derive(Clone, Copy)]
enum End {
    Committed,
    Aborted,
    TimedOut,
    Cancelled,
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => Self::TimedOut,
            Refusal::Cancelled => Self::Cancelled,
            _ => Self::Aborted, // Another one wants to have alone what both share.
        }
    }
}

enum Step<'a> {
    Lock,
    Pay(Holding<&'a RangeLock>),
    Settle(Holding<&'a RangeLock>, &'a AtomicU64, u64),
}

struct Transaction<'a> {
    owner: Owner,
    random: fastrand::Rng,
    /// The first account of the group.
    first: u64,
    payee: u64,
    next: Step<'a>,
}

impl<'a> Transaction<'a> {
    /// Does one step. What is held goes on to the thread that does the next one.
    fn step(mut self, Bank { accounts, balances }: &'a Bank) -> Result<Self, End> {
        let (first, payee) = (self.first, self.payee);
        let by = accounts.by(&self.owner);
        self.next = match self.next {
            Step::Lock => {
                let wanted = [
                    (first..first + GROUP, Shared),
                    (payee..payee + 1, Exclusive),
                ];
                Step::Pay(match self.random.bool() {
                    true => by.try_lock_many_for(wanted, TIMEOUT)?,
                    false => by.lock_many(wanted)?,
                })
            }
            Step::Pay(mut held) => {
                let group = first..first + GROUP;
                let richest = group.max_by_key(|at| balances[*at as usize].load(Relaxed));
                let payer = richest.expect("a group has accounts");
                match self.random.bool() {
                    true => held.try_convert_for(payer..=payer, Exclusive, TIMEOUT)?,
                    false => held.convert(payer..=payer, Exclusive)?,
                }
                held.release(first..payer);
                held.release(payer + 1..first + GROUP);
                let payer = &balances[payer as usize];
                let amount = self.random.u64(..=payer.load(Relaxed));
                payer.store(payer.load(Relaxed) - amount, Relaxed);
                Step::Settle(held, payer, amount)
            }
            Step::Settle(_held, payer, amount) => {
                let (receiver, end) = match self.random.u8(..8) {
                    0 => (payer, End::Aborted),
                    _ => (&balances[payee as usize], End::Committed),
                };
                receiver.store(receiver.load(Relaxed) + amount, Relaxed);
                return Err(end);
            }
        };
        Ok(self)
    }
}

#[derive(Default)]
struct Pool<'a> {
    made: u64,
    ready: VecDeque<Transaction<'a>>,
    /// When each owner began, the oldest first.
    owners: VecDeque<(Instant, Owner)>,
}

impl<'a> Pool<'a> {
    fn next(&mut self) -> Option<Transaction<'a>> {
        if self.ready.len() >= BEGUN || self.made == TRANSACTIONS {
            return self.ready.pop_front();
        }
        self.made += 1;
        let owner = Owner::new();
        self.owners.push_back((Instant::now(), owner.clone()));
        let mut random = fastrand::Rng::with_seed(self.made);
        let first = random.u64(..ACCOUNTS - GROUP);
        let payee = (first + random.u64(GROUP..ACCOUNTS)) % ACCOUNTS; // Not of the group.
        Some(Transaction {
            owner,
            random,
            first,
            payee,
            next: Step::Lock,
        })
    }

    /// Cancels the old ones. To those that have ended nothing happens.
    fn cancel_old(&mut self) {
        let old = self
            .owners
            .partition_point(|(begun, _)| begun.elapsed() > OLD);
        self.owners
            .drain(..old)
            .for_each(|(_, owner)| owner.cancel());
    }
}

fn main() {
    let balances = (0..ACCOUNTS).map(|_| AtomicU64::new(BALANCE)).collect();
    let bank = Bank {
        accounts: RangeLock::new(),
        balances,
    };
    let ends = [const { AtomicUsize::new(0) }; 4];
    let pool = Mutex::new(Pool::default());
    let pool = || pool.lock().expect("no thread panics");
    let next = || pool().next();
    let work = || {
        while let Some(transaction) = next() {
            match transaction.step(&bank) {
                Ok(transaction) => pool().ready.push_back(transaction),
                Err(end) => _ = ends[end as usize].fetch_add(1, Relaxed),
            }
        }
    };
    thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(work));
        while !threads.iter().all(|thread| thread.is_finished()) {
            pool().cancel_old();
            thread::sleep(OLD / 4);
        }
    });
    let sum: u64 = bank.balances.iter().map(|one| one.load(Relaxed)).sum();
    assert_eq!(sum, ACCOUNTS * BALANCE, "money was made or lost");
    let [committed, aborted, timed_out, cancelled] = ends.map(AtomicUsize::into_inner);
    println!(
        "{committed} committed, {aborted} aborted, {timed_out} timed out, {cancelled} cancelled"
    );
}
