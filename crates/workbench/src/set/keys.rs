//! How threads choose keys.

use super::Chosen;
use fastrand::Rng;

/// Chooses keys from 0 on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys {
    Uniform {
        keys: u64,
    },
    Zipfian {
        keys: u64,
        /// The logarithm of one more than their number.
        log: f64,
    },
}

impl Keys {
    /// From so many.
    pub(crate) fn of(chosen: Chosen, keys: usize) -> Self {
        let keys = keys as u64;
        match chosen {
            Chosen::Uniform => Self::Uniform { keys },
            Chosen::Zipfian => Self::Zipfian {
                keys,
                log: (keys as f64 + 1.0).ln(),
            },
        }
    }

    #[inline]
    pub(crate) fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform { keys } => rng.u64(..keys),
            Self::Zipfian { keys, log } => {
                // The continuous distribution with the density 1/x from 1 to n + 1, rounded down, less one.
                let rank = ((rng.f64() * log).exp() as u64 - 1).min(keys - 1);
                scattered(rank, keys)
            }
        }
    }
}

/// Where the key of a rank is: neighbours in rank are far from each other.
fn scattered(rank: u64, keys: u64) -> u64 {
    let mixed = (rank + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = (u128::from(mixed) * u128::from(keys)) >> u64::BITS;
    // Below the number of keys.
    place as u64
}

#[cfg(test)]
mod tests {
    use super::{Chosen, Keys, scattered};
    use fastrand::Rng;

    fn drawn(keys: usize, chosen: Chosen) -> Vec<u64> {
        let keys = Keys::of(chosen, keys);
        let mut rng = Rng::with_seed(1);
        (0..100_000).map(|_| keys.draw(&mut rng)).collect()
    }

    #[test]
    fn keys_are_within_their_number() {
        for keys in [1, 2, 1000] {
            for chosen in Chosen::ALL {
                let drawn = drawn(keys, chosen);
                assert!(drawn.iter().all(|key| *key < keys as u64), "{chosen}");
            }
        }
    }

    #[test]
    fn the_first_rank_is_drawn_in_proportion() {
        let first = scattered(0, 1000);
        let drawn = drawn(1000, Chosen::Zipfian);
        let part = drawn.iter().filter(|key| **key == first).count() as f64 / drawn.len() as f64;
        // ln 2 / ln 1001
        assert!((0.09..0.12).contains(&part), "{part}");
    }
}
