//! What deletions take where each neighbour that the target may be unlinked from is looked at by itself (Lemma 67 of `docs/maths.md`).

use super::base::Step;
use super::cones::{Cones, Listed, Making};
use super::gains::Gradient;
use super::moves::Span;
use super::region::NOWHERE;
use super::selection::{Gain, most};
use crate::dense::dot;
use crate::ids::ClassId;
use crate::model::Source;

/// A neighbour of which a term of the last layer reads a layer at the target, and from which the target may be unlinked.
#[derive(Clone, Copy)]
struct Neighbour {
    term: usize,
    node: u32,
    /// The deletion that unlinks it, and which end of that it is.
    deletion: usize,
    end: usize,
}

/// What is read of a neighbour of the target, as long as no edge is deleted between them.
struct Reading<'r> {
    making: &'r Making<'r>,
    cones: &'r Cones,
    of: Neighbour,
    /// The layer that is read.
    source: usize,
    /// What is read is a sum of activations of the neighbour; the coefficients.
    functional: Vec<f64>,
    /// At the base point, and at most how far off.
    value: f64,
    slack: f64,
    /// Deletions that may change it, and at most what each takes of it.
    gains: Vec<(usize, Gain)>,
}

/// The margin at the base point, rounded down, and at most what each deletion takes of it.
pub(super) fn linearised(making: &Making, cones: &Cones, pair: (ClassId, ClassId)) -> (f64, Vec<Gain>) {
    let neighbours = neighbours(making);
    let rest = Gradient::of_margin(making, pair, neighbours.iter().map(|of| (of.term, of.node)).collect());
    let mut gains: Vec<Gain> = (0..making.listed.len()).map(|f| rest.gain(cones, making.listed, f)).collect();
    let mut constant = rest.value() - rest.slack();
    for of in neighbours {
        let reading = Reading::new(making, cones, &rest, of);
        constant -= reading.slack;
        reading.add_to(&mut gains);
    }
    (constant, gains)
}

/// The neighbours from which the target may be unlinked, for each term that reads a layer of them.
fn neighbours(making: &Making) -> Vec<Neighbour> {
    let last = making.problem.network.layers().len() - 1;
    let target = making.region.rows[last][0];
    let mut neighbours = Vec::new();
    for (t, term) in making.problem.network.layers()[last].terms().iter().enumerate() {
        let Source::Layer(_) = term.source() else { continue };
        for (deletion, listed) in making.listed.iter().enumerate() {
            let Some(of_target) = listed.ends.iter().position(|&n| n == target) else { continue };
            let (end, node) = (1 - of_target, listed.ends[1 - of_target]);
            if node != NOWHERE && making.base.entry(term.propagation(), target, node) != 0.0 {
                neighbours.push(Neighbour { term: t, node, deletion, end });
            }
        }
    }
    neighbours
}

impl<'r> Reading<'r> {
    fn new(making: &'r Making<'r>, cones: &'r Cones, rest: &Gradient, of: Neighbour) -> Self {
        let layers = making.problem.network.layers();
        let last = layers.len() - 1;
        let (term, target) = (&layers[last].terms()[of.term], making.region.rows[last][0]);
        let Source::Layer(source) = term.source() else { unreachable!("only what layers read is looked at") };
        let entry = making.base.entry(term.propagation(), target, of.node);
        let functional: Vec<f64> = rest.read_by_target(of.term).iter().map(|x| entry * x).collect();
        let place = making.region.places[source][of.node as usize] as usize;
        let gradient = Gradient::of(making, source, place, functional.clone());
        let is_near = near(making, of.node, source + 1);
        let touches = |listed: &Listed| listed.ends.iter().any(|&n| n != NOWHERE && is_near[n as usize]);
        let touching = making.listed.iter().enumerate().filter(|(_, listed)| touches(listed));
        let gains = touching.map(|(f, _)| (f, gradient.gain(cones, making.listed, f))).collect();
        let (value, slack) = (gradient.value(), gradient.slack());
        Self { making, cones, of, source, functional, value, slack, gains }
    }

    /// Adds what deletions take of it: others what Lemma 64 says, and the one that unlinks the neighbour all that these leave.
    fn add_to(&self, gains: &mut [Gain]) {
        for (f, gain) in self.others() {
            gains[f].add(gain);
        }
        let added = self.add_sent(gains);
        let whole = self.value + self.slack + self.given_back();
        let cut = &mut gains[self.of.deletion].ends[self.of.end];
        for (k, (gain, added)) in cut.iter_mut().zip(&added).enumerate() {
            *gain += whole + k as f64 * added;
        }
    }

    /// All deletions that may change it but the one that unlinks the neighbour.
    fn others(&self) -> impl Iterator<Item = (usize, &Gain)> {
        self.gains.iter().map(|(f, gain)| (*f, gain)).filter(|&(f, _)| f != self.of.deletion)
    }

    /// Adds what other deletions at the neighbour take of it as it sends more; returns what one of them is said to give by that at most, for
    /// each number of deletions there.
    fn add_sent(&self, gains: &mut [Gain]) -> Vec<f64> {
        let (base, magnitude, node) = (self.making.base, self.making.magnitude, self.of.node as usize);
        let layers = self.making.problem.network.layers();
        let term = &layers[layers.len() - 1].terms()[self.of.term];
        let (mixing, scale) = (self.making.problem.shares[term.propagation()].mixing, base.source_scale(term));
        let sent = |k: usize| Step::of(Some(mixing), scale, base.degrees[node], k).sent;
        let steps: Vec<f64> = (1..=self.cones.most[node]).map(sent).collect();
        let mut added = vec![0.0f64; steps.len()];
        for ((f, _), low) in self.gains.iter().zip(self.lows()).filter(|((f, _), _)| *f != self.of.deletion) {
            let Some(e) = self.making.listed[*f].ends.iter().position(|&n| n == self.of.node) else { continue };
            let range = self.range(self.cones.ends[*f][e].h[self.source].as_ref());
            for ((gain, step), added) in gains[*f].ends[e].iter_mut().zip(&steps).zip(&mut added) {
                let least = if *step >= 0.0 { step * low.max(range[0]) } else { step * range[1] };
                let least = least - magnitude.relative * least.abs();
                *gain -= least;
                *added = added.max(least);
            }
        }
        added
    }

    /// What is read at least in sets that have each of the deletions.
    fn lows(&self) -> Vec<f64> {
        let of: Vec<(&Listed, &Gain)> = self.gains.iter().map(|(f, gain)| (&self.making.listed[*f], gain)).collect();
        let with = most(&of, self.making.left).with;
        let low = |with: f64| self.value - self.slack - with - self.making.magnitude.relative * with.abs();
        with.into_iter().map(low).collect()
    }

    /// Between what it is where activations of the node are within bounds.
    fn range(&self, of: Option<&Span>) -> [f64; 2] {
        let Some(span) = of else { return [f64::NEG_INFINITY, f64::INFINITY] };
        let middle = dot(&self.functional, &span.centre);
        let terms = || self.functional.iter().zip(&span.centre).zip(&span.radius);
        let radius: f64 = terms().map(|((x, _), r)| x.abs() * r).sum();
        let size: f64 = terms().map(|((x, c), _)| (x * c).abs()).sum();
        let radius = radius + self.making.magnitude.relative * (size + radius);
        [middle - radius, middle + radius]
    }

    /// At most what others are said to take of it by less than nothing.
    fn given_back(&self) -> f64 {
        let others = self.making.left - 1;
        let mut given: Vec<f64> = Vec::new();
        for (f, gain) in self.others() {
            let least = -gain.least();
            if least > 0.0 {
                given.extend(std::iter::repeat_n(least, self.making.listed[f].count.min(others)));
            }
        }
        given.sort_by(|a, b| b.total_cmp(a));
        given.into_iter().take(others).sum()
    }
}

/// The nodes that are so many steps away at most.
fn near(making: &Making, from: u32, steps: usize) -> Vec<bool> {
    let mut is_near = vec![false; making.region.nodes.len()];
    is_near[from as usize] = true;
    let mut reached = vec![from];
    for _ in 0..steps {
        let mut next = Vec::new();
        for &n in &reached {
            for &m in &making.base.neighbours[n as usize] {
                if !std::mem::replace(&mut is_near[m as usize], true) {
                    next.push(m);
                }
            }
        }
        reached = next;
    }
    is_near
}
