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

/// What a term of the last layer reads of a neighbour of the target, as long as no edge is deleted between them.
struct Reading<'r> {
    making: &'r Making<'r>,
    cones: &'r Cones,
    term: usize,
    source: usize,
    neighbour: u32,
    /// The deletion of the edge between them, and which of its ends the neighbour is.
    cut: (usize, usize),
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
    let read = read(making);
    let rest = Gradient::of_margin(making, pair, read.iter().map(|&(t, n, _)| (t, n)).collect());
    let mut gains: Vec<Gain> = (0..making.listed.len()).map(|f| rest.gain(cones, making.listed, f)).collect();
    let mut constant = rest.value() - rest.slack();
    for of in read {
        let reading = Reading::new(making, cones, &rest, of);
        constant -= reading.slack;
        reading.add_to(&mut gains);
    }
    (constant, gains)
}

/// Terms of the last layer with neighbours of the target of which they read a layer, and the deletions of the edges to these.
fn read(making: &Making) -> Vec<(usize, u32, (usize, usize))> {
    let last = making.problem.network.layers().len() - 1;
    let target = making.region.rows[last][0];
    let mut read = Vec::new();
    for (t, term) in making.problem.network.layers()[last].terms().iter().enumerate() {
        let Source::Layer(_) = term.source() else { continue };
        for (f, listed) in making.listed.iter().enumerate() {
            let Some(of_target) = listed.ends.iter().position(|&n| n == target) else { continue };
            let neighbour = listed.ends[1 - of_target];
            if neighbour != NOWHERE && making.base.entry(term.propagation(), target, neighbour) != 0.0 {
                read.push((t, neighbour, (f, 1 - of_target)));
            }
        }
    }
    read
}

impl<'r> Reading<'r> {
    fn new(
        making: &'r Making<'r>,
        cones: &'r Cones,
        rest: &Gradient,
        (term, neighbour, cut): (usize, u32, (usize, usize)),
    ) -> Self {
        let layers = making.problem.network.layers();
        let last = layers.len() - 1;
        let (of, target) = (&layers[last].terms()[term], making.region.rows[last][0]);
        let Source::Layer(source) = of.source() else { unreachable!("only what layers read is looked at") };
        let entry = making.base.entry(of.propagation(), target, neighbour);
        let functional: Vec<f64> = rest.read_by_target(term).iter().map(|x| entry * x).collect();
        let place = making.region.places[source][neighbour as usize] as usize;
        let gradient = Gradient::of(making, source, place, functional.clone());
        let is_near = near(making, neighbour, source + 1);
        let touches = |listed: &Listed| listed.ends.iter().any(|&n| n != NOWHERE && is_near[n as usize]);
        let touching = making.listed.iter().enumerate().filter(|(_, listed)| touches(listed));
        let gains = touching.map(|(f, _)| (f, gradient.gain(cones, making.listed, f))).collect();
        let (value, slack) = (gradient.value(), gradient.slack());
        Self { making, cones, term, source, neighbour, cut, functional, value, slack, gains }
    }

    fn add_to(&self, gains: &mut [Gain]) {
        for (f, gain) in self.gains.iter().filter(|(f, _)| *f != self.cut.0) {
            gains[*f].add(gain);
        }
        let end = |f: usize| self.making.listed[f].ends.iter().position(|&n| n == self.neighbour);
        let (base, magnitude) = (self.making.base, self.making.magnitude);
        let layers = self.making.problem.network.layers();
        let term = &layers[layers.len() - 1].terms()[self.term];
        let (mixing, scale) = (self.making.problem.shares[term.propagation()].mixing, base.source_scale(term));
        let sent = |k: usize| Step::of(Some(mixing), scale, base.degrees[self.neighbour as usize], k).sent;
        let steps: Vec<f64> = (1..=self.cones.most[self.neighbour as usize]).map(sent).collect();
        // What others at the neighbour are said to add to what it sends, at most.
        let mut added = vec![0.0f64; steps.len()];
        let lows = self.lows();
        for ((f, _), low) in self.gains.iter().zip(lows) {
            let (f, Some(e)) = (*f, end(*f)) else { continue };
            if f == self.cut.0 {
                continue;
            }
            let range = self.range(self.cones.ends[f][e].h[self.source].as_ref());
            for ((gain, step), added) in gains[f].ends[e].iter_mut().zip(&steps).zip(&mut added) {
                let least = if *step >= 0.0 { step * low.max(range[0]) } else { step * range[1] };
                let least = least - magnitude.relative * least.abs();
                *gain -= least;
                *added = added.max(least);
            }
        }
        let (cut, e) = self.cut;
        let whole = self.value + self.slack + self.given_back();
        for (k, (gain, added)) in gains[cut].ends[e].iter_mut().zip(&added).enumerate() {
            *gain += whole + k as f64 * added;
        }
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
        for (f, gain) in self.gains.iter().filter(|(f, _)| *f != self.cut.0) {
            let least = -gain.least();
            if least > 0.0 {
                given.extend(std::iter::repeat_n(least, self.making.listed[*f].count.min(others)));
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
