//! The root of a search: which flips are worth listing, and the bound over all of them (Lemma 21 of `docs/maths.md`).

use std::collections::HashMap;
use std::rc::Rc;

use super::ascent::{Aim, Parameters};
use super::bounding::{Bounding, Evaluation};
use super::flips::Flips;
use super::potential::{Listing, Potentials};
use super::subproblem::Subproblem;
use super::surroundings::Surroundings;
use super::tail::Tail;
use crate::certificate::Obstacle;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::slice::SlicedFlip;

/// What the root leaves to be searched.
pub(crate) struct Root<'a> {
    pub(crate) bounding: Bounding<'a>,
    pub(crate) subproblem: Subproblem,
    /// The smallest bound over sets that were left out.
    pub(crate) least: f64,
}

/// Flips are listed by their potential, until those left out can neither change the bound
/// nor be in a counterexample. `visit` hears of evaluations and may end the search.
///
/// # Errors
/// If a limit is reached before.
pub(crate) fn listed<'a>(
    around: &'a Surroundings<'a>,
    listing: &mut Listing,
    pair: (ClassId, ClassId),
    error: f64,
    patience: Patience,
    visit: impl FnMut(&Evaluation, &Flips) -> bool,
) -> Result<Root<'a>, Obstacle> {
    let relevant = relevant(around, listing, pair);
    let climb = Climb { around, listing, pair, relevant: &relevant, steps: listing.tuning.steps.0, patience };
    let (climbed, go_on) = climb.run(Aim::Above(error), visit)?;
    let Climbed { bounding, flips, parameters, best } = climbed;
    if !go_on || best.bound > error {
        let least = if go_on { best.bound } else { f64::NEG_INFINITY };
        return Ok(Root { subproblem: Subproblem::all(flips, parameters, best.bound), bounding, least });
    }
    let Listing { potentials, tuning, .. } = listing;
    let list =
        |flips: Vec<SlicedFlip>| Flips::new(around, flips, |flip| potentials.of(flip), |unit| relevant[unit], patience);
    // A counterexample with a flip that gains less than this would have a positive bound.
    let needed = |node: u32| bounding.threshold(node) + best.bound - error;
    let mut kept = potentials.above(|node| needed(node).max(0.0));
    if kept.len() > tuning.many {
        // Those with less potential than what is selected anyway hardly matter.
        let cut = |node: u32| 0.9 * bounding.threshold(node);
        let unlisted = (0..around.capacities.len() as u32).map(cut).collect();
        let subproblem = Subproblem::all(Rc::new(list(potentials.above(cut))?), parameters, best.bound);
        return Ok(Root {
            subproblem: Subproblem { unlisted: Some(Rc::new(unlisted)), ..subproblem },
            bounding,
            least: f64::INFINITY,
        });
    }
    let mut least = f64::INFINITY;
    kept.retain(|&flip| {
        let gain = bounding.gain_anywhere(flip);
        // What is NaN proves nothing.
        let too_little = gain < needed(flip.0);
        let keep = !too_little;
        if !keep {
            least = least.min(best.bound + bounding.threshold(flip.0) - gain);
        }
        keep
    });
    // What was not even looked at has a smaller potential; a flip without any only helps.
    if (0..around.capacities.len() as u32).any(|node| needed(node) > 0.0) {
        least = least.min(error);
    }
    let mut flips = list(kept)?;
    flips.sort_by_unit(around.most);
    Ok(Root { subproblem: Subproblem::all(Rc::new(flips), parameters, best.bound), bounding, least })
}

/// The bound over all sets, raised by climbing as long as the smallest margin that
/// `visit` hears of is above it; no more than `steps` steps for each list of flips.
///
/// # Errors
/// If a limit is reached before.
pub(crate) fn highest(
    around: &Surroundings,
    listing: &mut Listing,
    pair: (ClassId, ClassId),
    steps: usize,
    patience: Patience,
    mut visit: impl FnMut(&Evaluation, &Flips),
) -> Result<f64, Obstacle> {
    let relevant = relevant(around, listing, pair);
    let climb = Climb { around, listing, pair, relevant: &relevant, steps, patience };
    let (climbed, _) = climb.run(Aim::SmallestMargin, |evaluation, flips| {
        visit(evaluation, flips);
        true
    })?;
    Ok(climbed.best.bound)
}

/// Where climbing ended.
struct Climbed<'a> {
    bounding: Bounding<'a>,
    /// The flips that are listed; no other would have been selected in the best evaluation.
    flips: Rc<Flips>,
    parameters: Vec<Parameters>,
    best: Evaluation,
}

/// The bound of a pair over all sets, to be raised. The potentials of `listing` must be those of the pair ([`relevant`]).
struct Climb<'c, 'a> {
    around: &'a Surroundings<'a>,
    listing: &'c Listing,
    pair: (ClassId, ClassId),
    relevant: &'c [bool],
    /// Most steps for each list of flips.
    steps: usize,
    patience: Patience<'c>,
}

impl<'a> Climb<'_, 'a> {
    /// Climbs with few flips listed, and again with more, until those left out do not change the bound; false if `visit` broke
    /// off before.
    fn run(
        self,
        aim: Aim,
        mut visit: impl FnMut(&Evaluation, &Flips) -> bool,
    ) -> Result<(Climbed<'a>, bool), Obstacle> {
        let Self { around, listing: Listing { potentials, tuning, .. }, relevant, steps, patience, .. } = self;
        let few = tuning.first.0 + tuning.first.1 * around.most;
        let mut listed = potentials.best(around, few);
        let mut bounding = Bounding::new(around, self.pair);
        let mut parameters = vec![Parameters::START; around.units()];
        loop {
            let potential = |flip| potentials.of(flip);
            let flips = Rc::new(Flips::new(around, listed.clone(), potential, |unit| relevant[unit], patience)?);
            let free: Vec<u32> = (0..flips.len() as u32).collect();
            bounding.take_all(&flips);
            let (mut go_on, mut spent) = (true, false);
            let best = bounding.climb(&mut parameters, &free, steps, aim, |evaluation| {
                (go_on, spent) = (visit(evaluation, &flips), patience.is_spent());
                go_on && !spent
            });
            if go_on && spent {
                return Err(Obstacle::Time);
            }
            let missing = if go_on { missing(&bounding, potentials, &listed, few) } else { Vec::new() };
            if missing.is_empty() {
                return Ok((Climbed { bounding, flips, parameters, best }, go_on));
            }
            listed.extend(missing);
            listed.sort_unstable();
        }
    }
}

/// Flips that are not listed, but would have been selected in the last evaluation, so that its bound does not hold; at most
/// `count`, those that gain most.
fn missing(bounding: &Bounding, potentials: &Potentials, listed: &[SlicedFlip], count: usize) -> Vec<SlicedFlip> {
    let mut missing: Vec<(f64, SlicedFlip)> = Vec::new();
    for flip in potentials.above(|node| bounding.threshold(node)) {
        let gain = bounding.gain_anywhere(flip);
        if gain > bounding.threshold(flip.0) && listed.binary_search(&flip).is_err() {
            missing.push((gain, flip));
        }
    }
    missing.sort_by(|a, b| b.0.total_cmp(&a.0));
    missing.truncate(count);
    missing.into_iter().map(|(_, flip)| flip).collect()
}

/// The subproblem with all flips listed.
///
/// # Errors
/// If a limit is reached before.
pub(crate) fn with_all_flips(
    around: &Surroundings,
    listing: &mut Listing,
    pair: (ClassId, ClassId),
    subproblem: &Subproblem,
    patience: Patience,
) -> Result<Subproblem, Obstacle> {
    let relevant = relevant(around, listing, pair);
    let potentials = &listing.potentials;
    let all = potentials.above(|_| 0.0);
    let mut flips = Flips::new(around, all, |flip| potentials.of(flip), |unit| relevant[unit], patience)?;
    flips.sort_by_unit(around.most);
    let places: HashMap<SlicedFlip, u32> = flips.flips.iter().copied().zip(0..).collect();
    let fixed: Vec<u32> = subproblem.fixed.iter().map(|&flip| places[&subproblem.flips.flips[flip as usize]]).collect();
    let mut capacities = around.capacities.clone();
    fixed.iter().for_each(|&flip| capacities[flips.flips[flip as usize].0 as usize] -= 1);
    let may_have = |flip: &u32| capacities[flips.flips[*flip as usize].0 as usize] > 0 && !fixed.contains(flip);
    let free = (0..flips.len() as u32).filter(may_have).collect();
    Ok(Subproblem { flips: Rc::new(flips), unlisted: None, fixed, free, ..subproblem.clone() })
}

/// Which units matter: those with a coefficient that can be positive, as far as doubles can say. Computes the
/// potentials of `listing` with them.
fn relevant(around: &Surroundings, listing: &mut Listing, pair: (ClassId, ClassId)) -> Vec<bool> {
    let tail = Tail::new(around, pair);
    let hidden = &around.shared.bounds.layers[0];
    let matters = |unit: usize| {
        let (place, j) = (around.place(unit / around.width), unit % around.width);
        tail.coefficients[unit] != 0.0 && hidden.hi.get(place, j) > -2.0 * hidden.error.unit(place, j)
    };
    let relevant: Vec<bool> = (0..tail.coefficients.len()).map(matters).collect();
    listing.potentials.compute(around, &tail.coefficients, |unit| relevant[unit]);
    relevant
}
