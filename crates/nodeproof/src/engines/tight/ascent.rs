//! Better parameters of the additive bounds, by climbing along a supergradient.
//!
//! The bound is concave in the slopes. Every parameter in [0, 1] gives a valid bound, so that nothing depends on where the
//! climb ends (Lemma 19 of `docs/maths.md`): Polyak's step length towards the smallest margin seen, and a heavy ball.

use super::bounding::{Bounding, Evaluation, Kind};
use crate::dense::relu;
use crate::relax::additive::{Additive, split_range};

/// Parameters of one unit's bound.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parameters {
    /// Of a convex unit's line; NaN where it has not been set.
    pub(crate) slope: f64,
    /// Of the threshold bound.
    pub(crate) share: f64,
    /// Of the sign split.
    pub(crate) position: f64,
}

impl Parameters {
    /// The default slope, which depends on bounds, and the threshold bound.
    pub(crate) const START: Self = Self { slope: f64::NAN, share: 1.0, position: 1.0 };
}

/// How far a bound is to rise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    /// Above this.
    Above(f64),
    /// To the smallest margin seen, which it cannot exceed.
    SmallestMargin,
}

impl Aim {
    fn is_met(self, bound: f64, smallest: f64) -> bool {
        match self {
            Self::Above(enough) => bound > enough,
            Self::SmallestMargin => bound >= smallest,
        }
    }

    /// What to climb towards, given the smallest margin seen.
    fn height(self, smallest: f64) -> f64 {
        match self {
            Self::Above(enough) => smallest.max(enough),
            Self::SmallestMargin => smallest,
        }
    }
}

impl Bounding<'_> {
    /// Climbs from `parameters` for some steps, towards the smallest margin seen, until the bound is as high as `aim` says
    /// or `visit` breaks off. The best evaluation comes back, with its parameters in place.
    pub(crate) fn climb(
        &mut self,
        parameters: &mut Vec<Parameters>,
        free: &[u32],
        steps: usize,
        aim: Aim,
        mut visit: impl FnMut(&Evaluation) -> bool,
    ) -> Evaluation {
        let mut best = self.evaluate(parameters, free);
        let mut goal = best.margin;
        let mut go_on = visit(&best);
        let mut current = parameters.clone();
        for unit in 0..current.len() {
            current[unit].slope = self.slope(&current, unit);
        }
        let mut velocity = vec![Parameters::default(); current.len()];
        let mut bound = best.bound;
        for _ in 0..steps {
            if !go_on || aim.is_met(best.bound, goal) {
                break;
            }
            if !self.step(&mut current, &mut velocity, aim.height(goal) - bound) {
                break;
            }
            let evaluation = self.evaluate(&current, free);
            bound = evaluation.bound;
            goal = goal.min(evaluation.margin);
            go_on = visit(&evaluation);
            if evaluation.bound > best.bound {
                best = evaluation;
                parameters.clone_from(&current);
            }
        }
        // The state of the last evaluation is left behind; callers look at gains, so they get those of the best.
        self.evaluate(parameters, free);
        best
    }

    /// One step of Polyak's length towards a bound that is higher by `missing`, with a heavy ball; false at a top.
    fn step(&self, parameters: &mut [Parameters], velocity: &mut [Parameters], missing: f64) -> bool {
        const INERTIA: f64 = 0.4;
        let inside = |value: f64, slope: f64| {
            if (value <= 0.0 && slope < 0.0) || (value >= 1.0 && slope > 0.0) { 0.0 } else { slope }
        };
        let mut ascent = Vec::with_capacity(parameters.len());
        let mut square = 0.0;
        for (unit, parameters) in parameters.iter().enumerate() {
            let mut by = self.supergradient(unit, parameters);
            by.slope = inside(parameters.slope, by.slope);
            by.share = inside(parameters.share, by.share);
            by.position = inside(parameters.position, by.position);
            square += by.slope * by.slope + by.share * by.share + by.position * by.position;
            ascent.push(by);
        }
        if square == 0.0 || missing.is_nan() {
            return false;
        }
        let length = missing / square;
        for ((parameters, velocity), by) in parameters.iter_mut().zip(velocity).zip(ascent) {
            let advance = |value: &mut f64, velocity: &mut f64, by: f64| {
                *velocity = INERTIA * *velocity + length * by;
                *value = (*value + *velocity).clamp(0.0, 1.0);
            };
            advance(&mut parameters.slope, &mut velocity.slope, by.slope);
            advance(&mut parameters.share, &mut velocity.share, by.share);
            advance(&mut parameters.position, &mut velocity.position, by.position);
        }
        true
    }

    /// The derivative of the bound by a unit's parameters, the selected flips being fixed.
    fn supergradient(&self, unit: usize, parameters: &Parameters) -> Parameters {
        let (c, z, sums) = (self.coefficients[unit], self.z[unit], self.sums[unit]);
        match self.kinds[unit] {
            Kind::Dead | Kind::Linear => Parameters::default(),
            Kind::Convex => Parameters { slope: c * self.at(unit), ..Parameters::default() },
            Kind::Concave => {
                let ends = (self.lo[unit], self.hi[unit]);
                let split = Additive::sign_split(z, ends, parameters.position);
                let by_split = split.total(sums.up, sums.down, 0.0);
                let by_threshold = relu(z) + sums.threshold;
                let (lowest, highest) = split_range(z, ends);
                let up = if ends.1 > z { sums.up / (ends.1 - z) } else { 0.0 };
                let down = if z > ends.0 { sums.down / (z - ends.0) } else { 0.0 };
                Parameters {
                    slope: 0.0,
                    share: c * (by_threshold - by_split),
                    position: c * (1.0 - parameters.share) * (highest - lowest) * (1.0 - up + down),
                }
            }
        }
    }
}
