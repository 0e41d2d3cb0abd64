//! Tries and timed requests of one thread, exactly as a sequential model has them: granted if, and only if, no unit of
//! the range is held in a mode that conflicts.

use crate::suite::Make;
use crate::support::{self, Exclusive, Shared};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spanlock::range::Span;
use spanlock::range::raw::{Ask, Mode, RawRangeMutex, Wait};
use std::time::Duration;

#[derive(Debug, Clone)]
enum Step {
    Ask(Mode, Span, Patience),
    /// Releases one of those held, chosen by a number that may be too large.
    Release(usize),
    /// Downgrades one of those held, if it is exclusive.
    Downgrade(usize),
}

#[derive(Debug, Clone, Copy)]
enum Patience {
    Try,
    Timed,
}

impl Patience {
    /// Nobody releases meanwhile, so what is not granted at once never is.
    fn wait(self) -> Wait {
        match self {
            Self::Try => Wait::Never,
            Self::Timed => Wait::at_most(Duration::from_micros(20)),
        }
    }
}

/// How a lock is asked and told.
struct Operations<L: RawRangeMutex> {
    acquire: fn(&L, Mode, Span, Wait) -> Option<L::Token>,
    downgrade: fn(&L, L::Token) -> L::Token,
}

/// Plays steps that ask in these modes, each time with a fresh lock. Positions from `tail` on are one unit.
fn agrees<L: Exclusive>(
    make: &Make<L>,
    tail: u64,
    modes: impl Strategy<Value = Mode>,
    operations: &Operations<L>,
) {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(200)
    };
    let steps = prop::collection::vec(step(tail, modes), 1..80);
    let result = TestRunner::new(config).run(&steps, |steps| {
        let raw = make();
        support::watched(&raw, || play(&raw, tail, &steps, operations));
        support::assert_nothing_held(&raw);
        Ok(())
    });
    result.unwrap();
}

fn play<L: Exclusive>(raw: &L, tail: u64, steps: &[Step], operations: &Operations<L>) {
    let units = |span: Span| span.start().min(tail)..=span.last().min(tail);
    let release = |token| {
        // SAFETY: the lock's own token.
        unsafe { raw.unlock(token) };
    };
    let mut held: Vec<(Mode, Span, L::Token)> = Vec::new();
    for step in steps {
        match *step {
            Step::Ask(mode, span, patience) => {
                let wanted = units(span);
                let is_free = held.iter().all(|&(other, held, _)| {
                    let held = units(held);
                    let apart = wanted.end() < held.start() || held.end() < wanted.start();
                    apart || !mode.conflicts(other)
                });
                let token = (operations.acquire)(raw, mode, span, patience.wait());
                assert_eq!(token.is_some(), is_free, "{step:?}");
                held.extend(token.map(|token| (mode, span, token)));
            }
            Step::Release(which) if !held.is_empty() => {
                let (.., token) = held.swap_remove(which % held.len());
                release(token);
            }
            Step::Downgrade(which) if !held.is_empty() => {
                let (mode, span, token) = held.swap_remove(which % held.len());
                let token = match mode {
                    Mode::Exclusive => (operations.downgrade)(raw, token),
                    Mode::Shared => token,
                };
                held.push((Mode::Shared, span, token));
            }
            Step::Release(_) | Step::Downgrade(_) => {}
        }
    }
    held.into_iter().for_each(|(.., token)| release(token));
}

/// Few positions, so that ranges meet; at both ends of what there is, in the middle, and where the tail begins.
fn position(tail: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..24_u64,
        1 => (0..6_u64).prop_map(|below| u64::MAX - below),
        1 => (0..6_u64).prop_map(move |around| (tail - 3).saturating_add(around)),
        1 => Just(1 << 63),
    ]
}

fn span(tail: u64) -> impl Strategy<Value = Span> {
    let ends = (position(tail), position(tail)).prop_map(|(a, b)| a.min(b)..=a.max(b));
    let narrow = (0..24_u64, 0..3_u64).prop_map(|(start, more)| start..=start + more);
    prop_oneof![ends, narrow].prop_map(|range| Span::of(range).expect("not empty"))
}

fn step(tail: u64, modes: impl Strategy<Value = Mode>) -> impl Strategy<Value = Step> {
    let patience = prop_oneof![7 => Just(Patience::Try), 1 => Just(Patience::Timed)];
    prop_oneof![
        8 => (modes, span(tail), patience).prop_map(|(mode, span, patience)| Step::Ask(mode, span, patience)),
        4 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Downgrade),
    ]
}

/// The exclusive half.
pub fn exclusive<L: Exclusive>(make: &Make<L>, tail: u64) {
    let operations = Operations {
        acquire: |raw: &L, _, span, wait| raw.lock_exclusive(Ask::new(span, wait)),
        downgrade: |_, token| token,
    };
    agrees(make, tail, Just(Mode::Exclusive), &operations);
}

/// Both halves.
pub fn shared<L: Shared>(make: &Make<L>, tail: u64) {
    let operations = Operations {
        acquire: |raw: &L, mode, span, wait| match mode {
            Mode::Shared => raw.lock_shared(Ask::new(span, wait)),
            Mode::Exclusive => raw.lock_exclusive(Ask::new(span, wait)),
        },
        // SAFETY: the lock's own token, and exclusive.
        downgrade: |raw, token| unsafe { raw.downgrade(token) },
    };
    let modes = prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)];
    agrees(make, tail, modes, &operations);
}
