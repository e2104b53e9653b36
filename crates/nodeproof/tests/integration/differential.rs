//! We attack ourselves: random problems of every kind go through all engines, which are held against every admissible set in exact
//! arithmetic, and through the checker, which accepts what they say and nothing that is forged. `fuzz/differential` runs this for hours.

use std::cell::Cell;

use nodeproof::{Engine, Slopes};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::brute_force::{FEW, LONG, SETS, check_decided_at_ends, check_engines, dense_rows, sharpened, thorough};
use crate::common::seed::config;
use crate::common::{Problem, TINY, problems, problems_of_terms, with_normalised_rows, with_values};
use crate::proofs::{check_accepted, check_forged};

/// What was compared.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    problems: u64,
    sets: u64,
    verdicts: [u64; 3],
    forged: u64,
}

/// Sends problems through everything, and says how many.
fn attack(kind: &str, problems: impl Strategy<Value = Problem>) {
    let counts = Cell::new(Counts::default());
    let choices = prop::collection::vec(any::<u16>(), 64);
    let tried = TestRunner::new(config(thorough(200))).run(&(problems, choices), |(problem, choices)| {
        let (problem, sets) = problem.enumerable(SETS / 3);
        let all = check_engines(&problem, &sets, Engine::ALL, Slopes::Default);
        let mut now = counts.get();
        for certificate in all.iter().flatten() {
            now.verdicts[certificate.verdict() as usize] += 1;
        }
        check_decided_at_ends(&problem, &sets, &all[2])?;
        check_accepted(&problem)?;
        now.forged += check_forged(&problem, &sets, &choices) as u64;
        (now.problems, now.sets) = (now.problems + 1, now.sets + sets.len() as u64);
        counts.set(now);
        Ok(())
    });
    let Counts { problems, sets, verdicts: [robust, nonrobust, undecided], forged } = counts.get();
    println!(
        "differential, {kind}: {problems} problems, {sets} sets of flips; {robust} robust, {nonrobust} nonrobust, {undecided} undecided; \
         {forged} forged certificates that are right"
    );
    tried.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(robust > 0 && nonrobust > 0 && forged > 0, "nothing was put to the test");
}

#[test]
fn bits() {
    attack("bits", problems(TINY));
}

#[test]
fn layers_of_terms() {
    attack("layers of terms", problems_of_terms(TINY, 5));
}

#[test]
fn normalised_rows() {
    let any = prop_oneof![problems(TINY), problems(LONG), problems_of_terms(TINY, 5), dense_rows()];
    attack("normalised rows", with_normalised_rows(any));
}

#[test]
fn real_values() {
    attack("real values", with_values(prop_oneof![problems(FEW), problems_of_terms(FEW, 5)], FEW));
}

/// Where a node is robust or not by little.
#[test]
fn little_decides() {
    let sharp = |problem: Problem| {
        let (problem, sets) = problem.enumerable(SETS / 3);
        sharpened(&problem, &sets, &problem.certify_with(Engine::Fast, Slopes::Default))
    };
    attack("little decides", prop_oneof![dense_rows(), problems(TINY)].prop_map(sharp));
}
