//! An attack that exchanges one flip after the other, led by the gradient at the flips made so far.

use super::base::{Base, Knows};
use super::bound::At;
use super::linearisation::Linearisation;
use super::target::Target;
use crate::engines::best::Attacks;
use crate::engines::patience::Patience;
use crate::ids::ClassId;
use crate::slice::SlicedFlip;

/// Most exchanges, and how many are tried for each.
const EXCHANGES: usize = 16;
const TRIED: usize = 4;

/// Exchanges flips of `flips` for those of `candidates` as long as the margin falls; true if they become a witness.
pub(super) fn exchange(
    target: &Target,
    attacks: &mut Attacks,
    linear: &mut Linearisation,
    k: ClassId,
    mut flips: Vec<SlicedFlip>,
    candidates: &[SlicedFlip],
    patience: &Patience,
) -> bool {
    let y = attacks.y;
    let mut margin = f64::INFINITY;
    if attacks.attempt(flips.iter().copied()) {
        return true;
    }
    for _ in 0..EXCHANGES {
        if patience.is_spent() {
            break;
        }
        let base = Base::tried(target, attacks.attack, y, flips.clone(), Knows::Bounds);
        margin = margin.min(base.margin(k));
        // Nothing but the gradient is asked for, and no error of it.
        linear.compute(At { target, base: &base, pair: (y, k) }, None);
        let mut pairs = best_pairs(target, linear, &base, candidates);
        pairs.retain(|&(gain, ..)| gain > 0.0);
        let mut exchanged = false;
        for &(_, out, into) in pairs.iter().take(TRIED) {
            let mut other = flips.clone();
            match out {
                Some(place) => other[place] = into,
                None => other.push(into),
            }
            if attacks.attempt(other.iter().copied()) {
                return true;
            }
            let reached = attacks.attack.margin_of(y, k);
            if reached < margin {
                (margin, flips, exchanged) = (reached, other, true);
                break;
            }
        }
        if !exchanged {
            break;
        }
    }
    false
}

/// The most promising exchanges: what they gain by the gradient, the place of the flip that goes, if one must, and the flip that comes.
fn best_pairs(
    target: &Target,
    linear: &Linearisation,
    base: &Base,
    candidates: &[SlicedFlip],
) -> Vec<(f64, Option<usize>, SlicedFlip)> {
    let gain = |&flip: &SlicedFlip| linear.linear_gain(target, base, flip);
    let mut going: Vec<(f64, usize)> = base.flips.iter().map(gain).zip(0..).collect();
    going.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut pairs = Vec::new();
    for &flip in candidates.iter().filter(|flip| !base.flips.contains(flip)) {
        if let Some(place) = base.freed.iter().position(|&back| back == flip) {
            pairs.push((gain(&flip), Some(place), flip));
            continue;
        }
        let full = base.capacities[flip.0 as usize] == 0;
        if base.left > 0 && !full {
            pairs.push((gain(&flip), None, flip));
            continue;
        }
        // Where the node's own budget is spent, one of its flips must go.
        let may_go = |&&(_, place): &&(f64, usize)| !full || base.flips[place].0 == flip.0;
        if let Some(&(lost, place)) = going.iter().find(may_go) {
            pairs.push((gain(&flip) - lost, Some(place), flip));
        }
    }
    pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    pairs
}
