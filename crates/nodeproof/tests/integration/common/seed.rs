//! Seeds of random tests, for unit tests as well (`crate::seed`).
//!
//! They are the same ones in every run, so that what fails today failed yesterday unless the code has changed.
//! `NODEPROOF_SEED=random` draws others, and `NODEPROOF_SEED=7` others that can be had again. Every test program prints the
//! number in use to the terminal, whether its tests fail or not.

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::sync::LazyLock;

use proptest::test_runner::{Config, RngSeed};

static CHOSEN: LazyLock<Option<u64>> = LazyLock::new(|| {
    let text = env::var_os("NODEPROOF_SEED").filter(|text| !text.is_empty())?;
    let number = if text == "random" {
        RandomState::new().build_hasher().finish() % 1_000_000_000
    } else {
        let number = text.to_str().and_then(|text| text.parse().ok());
        number.unwrap_or_else(|| panic!("NODEPROOF_SEED={text:?} is neither a number nor `random`"))
    };
    // Not by `eprintln`, which the harness keeps to itself while tests pass.
    let _ = writeln!(std::io::stderr(), "random tests: NODEPROOF_SEED={number}");
    Some(number)
});

/// The seed of a random test: `usual`, or one for the number in `NODEPROOF_SEED` that differs where `usual` does.
pub(crate) fn seed(usual: u64) -> u64 {
    CHOSEN.map_or(usual, |number| number.wrapping_add(usual.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Settings of a property test with this many cases; where `PROPTEST_CASES` is set, with as many as it says.
pub(crate) fn config(cases: u32) -> Config {
    let rng_seed = RngSeed::Fixed(seed(20_190_804));
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}
