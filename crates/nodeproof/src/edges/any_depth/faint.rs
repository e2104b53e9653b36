//! Deletions that take little of any margin, whichever others are made (Lemma 71 of `docs/maths.md`).

use std::borrow::Cow;

use super::super::Problem;
use super::super::mixing::Share;
use super::base::{Base, width};
use super::region::{Candidate, NOWHERE, Region};
use super::rounding::Magnitude;
use super::rows::Rows;
use crate::dense::{Matrix, add_scaled, dot};
use crate::ids::ClassId;
use crate::model::{Source, Term, Weight};

/// More than rounding adds to sums and products of numbers that are not negative, and to differences of entries.
const ROUNDED_UP: f64 = 1.0 + 1e-4;

/// At most what each candidate takes of the lead over each class, beside any others.
#[derive(Debug)]
pub(super) struct Faint {
    /// Of each class, for each candidate; nothing for the class that leads.
    takes: Vec<Vec<f64>>,
    /// For each candidate: the largest part of a lead that it takes.
    parts: Vec<f64>,
}

impl Faint {
    pub(super) fn new(
        problem: &Problem,
        region: &Region,
        magnitude: &Magnitude,
        base: &Base,
        candidates: &[Candidate],
        y: ClassId,
    ) -> Self {
        let everywhere = Everywhere::new(problem, region, magnitude, base);
        let logits = base.h.last().map_or(&[][..], |logits| logits.row(0));
        let (mut takes, mut parts) = (Vec::new(), vec![0.0f64; candidates.len()]);
        for k in (0..logits.len()).map(|k| ClassId(k as u32)) {
            if k == y {
                takes.push(Vec::new());
                continue;
            }
            let lead = (logits[y.index()] - logits[k.index()]).max(f64::MIN_POSITIVE);
            let of_class = everywhere.takes(candidates, (y, k));
            parts.iter_mut().zip(&of_class).for_each(|(part, takes)| *part = part.max(takes / lead));
            takes.push(of_class);
        }
        Self { takes, parts }
    }

    /// At most what a candidate takes of the lead over a class.
    pub(super) fn takes(&self, candidate: usize, k: ClassId) -> f64 {
        self.takes[k.index()][candidate]
    }

    /// Whether a candidate takes at most this part of each lead.
    pub(super) fn is_faint(&self, candidate: usize, part: f64) -> bool {
        self.parts[candidate] <= part
    }
}

/// The largest size of a factor, and the most that one deletion changes it by.
#[derive(Debug, Clone, Copy, Default)]
struct Factor {
    most: f64,
    step: f64,
}

impl Factor {
    /// Of what it is after no deletion, after one, and so on.
    fn of(numbers: &[f64]) -> Self {
        let most = numbers.iter().map(|x| x.abs()).fold(0.0, f64::max);
        Self { most, step: numbers.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f64::max) }
    }
}

/// What a node receives, sends, and sends to itself is multiplied by.
#[derive(Debug, Clone, Copy, Default)]
struct Factors {
    into: Factor,
    from: Factor,
    own: Factor,
}

/// Sums of numbers that are not negative: what is at most above zero, and what is at most below.
#[derive(Debug)]
struct Sides {
    above: Matrix,
    below: Matrix,
}

/// What is known of the network on all graphs that sets of deletions leave.
#[derive(Debug)]
pub(super) struct Everywhere<'e> {
    problem: &'e Problem<'e>,
    region: &'e Region,
    base: &'e Base,
    /// Of each propagation, for each node.
    factors: Vec<Vec<Factors>>,
    /// What is sent of the attributes, above and below zero.
    sent: Sides,
    /// Of each term of each layer: the sums of what rows read of their neighbours, but for what rows multiply them by.
    gathered: Vec<Vec<Sides>>,
    /// Of each hidden layer: the largest sizes of activations.
    pub(super) sizes: Vec<Matrix>,
}

impl<'e> Everywhere<'e> {
    pub(super) fn new(problem: &'e Problem<'e>, region: &'e Region, magnitude: &Magnitude, base: &'e Base) -> Self {
        let factors = problem.shares.iter().map(|share| factors(problem, region, base, *share)).collect();
        let (mut above, mut below) = (region.sent.clone(), region.sent.clone());
        for (side, sign) in [(&mut above, 1.0), (&mut below, -1.0)] {
            for (x, size) in side.values_mut().iter_mut().zip(region.sizes.values()) {
                *x = (sign * *x + magnitude.relative * size).max(0.0);
            }
        }
        let sent = Sides { above, below };
        let mut all = Self { problem, region, base, factors, sent, gathered: Vec::new(), sizes: Vec::new() };
        for (i, layer) in problem.network.layers().iter().enumerate() {
            let gathered = (0..layer.terms().len()).map(|t| all.gathered(i, t)).collect();
            all.gathered.push(gathered);
            if i + 1 < problem.network.layers().len() {
                let sizes = all.sizes(i, magnitude);
                all.sizes.push(sizes);
            }
        }
        all
    }

    fn term(&self, i: usize, t: usize) -> &Term {
        &self.problem.network.layers()[i].terms()[t]
    }

    /// What a term reads of a node, at most above zero, and at most below.
    fn read(&self, i: usize, t: usize, n: u32) -> [Cow<'_, [f64]>; 2] {
        let term = self.term(i, t);
        match term.source() {
            Source::Attributes => {
                let columns = self.problem.network.attribute_columns(i, t);
                [&self.sent.above, &self.sent.below].map(|side| (&side.row(n as usize)[columns.clone()]).into())
            }
            Source::Ones => {
                let side = |sign: f64| term.weight().values().iter().map(|x| (sign * x).max(0.0)).collect::<Vec<_>>();
                [side(1.0).into(), side(-1.0).into()]
            }
            Source::Layer(source) => {
                let sizes = self.sizes[source].row(self.region.places[source][n as usize] as usize);
                let is_positive = self.problem.network.layers()[source].activation().slope() == 0.0;
                [sizes.into(), if is_positive { vec![0.0; sizes.len()].into() } else { sizes.into() }]
            }
        }
    }

    /// The largest size of what a term reads of a node.
    fn size(&self, i: usize, t: usize, n: u32) -> Vec<f64> {
        let [above, below] = self.read(i, t, n);
        above.iter().zip(&*below).map(|(a, b)| a.max(*b)).collect()
    }

    fn gathered(&self, i: usize, t: usize) -> Sides {
        let (rows, width, propagation) =
            (&self.region.rows[i], width(self.problem, i, t), self.term(i, t).propagation());
        let mut sides = [(); 2].map(|()| Matrix::zeros(rows.len(), width));
        if self.problem.shares[propagation].mixed != 0.0 {
            for (place, &m) in rows.iter().enumerate() {
                for &n in &self.base.neighbours[m as usize] {
                    let from = self.factors[propagation][n as usize].from.most;
                    for (side, read) in sides.iter_mut().zip(self.read(i, t, n)) {
                        add_scaled(side.row_mut(place), from, &read);
                    }
                }
            }
        }
        let [above, below] = sides;
        Sides { above, below }
    }

    /// The largest sizes of the activations of a layer.
    fn sizes(&self, i: usize, magnitude: &Magnitude) -> Matrix {
        let layer = &self.problem.network.layers()[i];
        let slope = layer.activation().slope().abs();
        let mut sizes = Matrix::zeros(self.region.rows[i].len(), layer.units());
        for (place, &m) in self.region.rows[i].iter().enumerate() {
            let mut sums = [layer.bias().to_vec(), layer.bias().iter().map(|b| -b).collect()];
            for (t, term) in layer.terms().iter().enumerate() {
                let share = self.problem.shares[term.propagation()];
                let factors = self.factors[term.propagation()][m as usize];
                let Sides { above, below } = &self.gathered[i][t];
                let (own, into) = (share.identity.abs() + factors.own.most, factors.into.most);
                let mut sides = self.read(i, t, m).map(|side| side.iter().map(|x| own * x).collect::<Vec<f64>>());
                if share.identity < 0.0 || share.mixed < 0.0 {
                    // Its own numbers may count either way.
                    let larger: Vec<f64> = sides[0].iter().zip(&sides[1]).map(|(a, b)| a.max(*b)).collect();
                    sides = [larger.clone(), larger];
                }
                let gathered = if share.mixed < 0.0 { [below, above] } else { [above, below] };
                sides.iter_mut().zip(gathered).for_each(|(side, of)| add_scaled(side, into, of.row(place)));
                add_sides(&mut sums, &sides, term);
            }
            let slack = magnitude.sums[i].row(place);
            for (j, size) in sizes.row_mut(place).iter_mut().enumerate() {
                let [up, down] = [0, 1].map(|side: usize| sums[side][j] + magnitude.relative * slack[j]);
                *size = up.max(slope * down).max(0.0);
            }
        }
        sizes
    }

    /// At most what each candidate takes of the lead of y over k.
    fn takes(&self, candidates: &[Candidate], pair: (ClassId, ClassId)) -> Vec<f64> {
        let layers = self.problem.network.layers();
        let mut reach: Vec<Rows> =
            layers.iter().zip(&self.region.rows).map(|(layer, rows)| Rows::zeros(rows.len(), layer.units())).collect();
        let mut taken = Taken { at: vec![0.0; self.region.nodes.len()], over: vec![0.0; candidates.len()] };
        for i in (0..layers.len()).rev() {
            let of_layer = self.of_pre_activations(i, &reach[i]);
            for t in 0..layers[i].terms().len() {
                self.add_term((i, t), &of_layer, pair, &mut reach, candidates, &mut taken);
            }
        }
        let at_ends =
            |ends: &[u32; 2]| ends.iter().filter(|&&n| n != NOWHERE).map(|&n| taken.at[n as usize]).sum::<f64>();
        candidates.iter().zip(&taken.over).map(|(of, over)| ROUNDED_UP * (over + at_ends(&of.ends))).collect()
    }

    /// From coefficients of activations to those of pre-activations.
    fn of_pre_activations(&self, i: usize, reach: &Rows) -> Vec<(usize, Vec<f64>)> {
        let layers = self.problem.network.layers();
        if i + 1 == layers.len() {
            return vec![(0, Vec::new())];
        }
        let slope = layers[i].activation().slope().abs().max(1.0);
        let of = |reach: &[f64], sizes: &[f64]| {
            reach.iter().zip(sizes).map(|(x, &size)| if size > 0.0 { slope * x } else { 0.0 }).collect()
        };
        reach.iter().map(|(place, reach)| (place, of(reach, self.sizes[i].row(place)))).collect()
    }

    fn add_term(
        &self,
        (i, t): (usize, usize),
        of_layer: &[(usize, Vec<f64>)],
        pair: (ClassId, ClassId),
        reach: &mut [Rows],
        candidates: &[Candidate],
        taken: &mut Taken,
    ) {
        let (term, is_last) = (self.term(i, t), i + 1 == self.problem.network.layers().len());
        let share = self.problem.shares[term.propagation()];
        let factors = &self.factors[term.propagation()];
        let place = |n: u32| {
            let Source::Layer(source) = term.source() else { return None };
            Some((source, self.region.places[source][n as usize] as usize))
        };
        let width = width(self.problem, i, t);
        let mut at_rows = Rows::zeros(self.region.rows[i].len(), width);
        let mut at_nodes = Rows::zeros(self.region.nodes.len(), width);
        for (number, of) in of_layer {
            let (m, row) = (self.region.rows[i][*number], at_rows.row_mut(*number));
            if is_last {
                difference(row, pair, term)
            } else {
                back(row, of, term)
            }
            let Factors { into, own, .. } = factors[m as usize];
            taken.at[m as usize] += own.step * dot(row, &self.size(i, t, m));
            if let Some((source, to)) = place(m) {
                add_scaled(reach[source].row_mut(to), share.identity.abs() + own.most, row);
            }
            if share.mixed != 0.0 {
                let Sides { above, below } = &self.gathered[i][t];
                let sizes = above.row(*number).iter().zip(below.row(*number)).map(|(a, b)| a.max(*b));
                taken.at[m as usize] += into.step * row.iter().zip(sizes).map(|(x, size)| x * size).sum::<f64>();
                for &n in &self.base.neighbours[m as usize] {
                    add_scaled(at_nodes.row_mut(n as usize), into.most, row);
                }
            }
        }
        for (n, row) in at_nodes.iter() {
            let from = factors[n].from;
            taken.at[n] += from.step * dot(row, &self.size(i, t, n as u32));
            if let Some((source, to)) = place(n as u32) {
                add_scaled(reach[source].row_mut(to), from.most, row);
            }
        }
        if share.mixed != 0.0 {
            for (over, of) in taken.over.iter_mut().zip(candidates) {
                let [a, b] = of.ends;
                *over += self.over((i, t), &at_rows, [a, b]) + self.over((i, t), &at_rows, [b, a]);
            }
        }
    }

    /// At most what a row loses of what it reads of a node.
    fn over(&self, (i, t): (usize, usize), at_rows: &Rows, [m, n]: [u32; 2]) -> f64 {
        if m == NOWHERE || n == NOWHERE {
            return 0.0;
        }
        let factors = &self.factors[self.term(i, t).propagation()];
        let row = Some(self.region.places[i][m as usize]).filter(|&place| place != NOWHERE);
        let row = row.and_then(|place| at_rows.row(place as usize));
        let entry = factors[m as usize].into.most * factors[n as usize].from.most;
        row.map_or(0.0, |row| entry * dot(row, &self.size(i, t, n)))
    }
}

/// What deletions take: at each node, and over each edge.
struct Taken {
    at: Vec<f64>,
    over: Vec<f64>,
}

/// Of each node.
fn factors(problem: &Problem, region: &Region, base: &Base, Share { mixed, mixing, .. }: Share) -> Vec<Factors> {
    let of = |n: usize| {
        let most = problem.limits.at(region.nodes[n]).min(problem.limits.global());
        let degrees: Vec<usize> = (0..=most).map(|k| base.degrees[n].saturating_sub(k)).collect();
        let of = |of: &dyn Fn(usize) -> f64| Factor::of(&degrees.iter().map(|&degree| of(degree)).collect::<Vec<_>>());
        Factors {
            into: of(&|degree| mixed * mixing.into(degree)),
            from: of(&|degree| mixing.from(degree)),
            own: of(&|degree| mixed * mixing.own(degree, region.has_loop[n])),
        }
    };
    (0..region.nodes.len()).map(of).collect()
}

/// Adds what a term makes of what it reads, above and below zero.
fn add_sides(sums: &mut [Vec<f64>; 2], sides: &[Vec<f64>; 2], term: &Term) {
    let [up, down] = sums;
    match (term.source(), term.weight()) {
        (Source::Layer(_), Weight::Dense(dense)) => {
            for (input, (&above, &below)) in sides[0].iter().zip(&sides[1]).enumerate() {
                if above == 0.0 && below == 0.0 {
                    continue;
                }
                for ((up, down), &w) in up.iter_mut().zip(&mut *down).zip(dense.row(input)) {
                    let (more, less) = (w.max(0.0), (-w).max(0.0));
                    *up += above * more + below * less;
                    *down += above * less + below * more;
                }
            }
        }
        (Source::Layer(_), Weight::Scalar(by)) => {
            let (above, below) = if *by >= 0.0 { (0, 1) } else { (1, 0) };
            add_scaled(up, by.abs(), &sides[above]);
            add_scaled(down, by.abs(), &sides[below]);
        }
        _ => {
            add_scaled(up, 1.0, &sides[0]);
            add_scaled(down, 1.0, &sides[1]);
        }
    }
}

/// `to = |W| of`, where a layer is read.
fn back(to: &mut [f64], of: &[f64], term: &Term) {
    match (term.source(), term.weight()) {
        (Source::Layer(_), Weight::Dense(dense)) => {
            let row = |input: usize| dense.row(input).iter().zip(of).map(|(w, x)| w.abs() * x).sum();
            to.iter_mut().enumerate().for_each(|(input, to)| *to = row(input));
        }
        (Source::Layer(_), Weight::Scalar(by)) => add_scaled(to, by.abs(), of),
        _ => to.copy_from_slice(of),
    }
}

/// `to = |W (e_y − e_k)|`, where a layer is read.
fn difference(to: &mut [f64], (y, k): (ClassId, ClassId), term: &Term) {
    match (term.source(), term.weight()) {
        (Source::Layer(_), Weight::Dense(dense)) => {
            let row = |input: usize| (dense.get(input, y.index()) - dense.get(input, k.index())).abs();
            to.iter_mut().enumerate().for_each(|(input, to)| *to = row(input));
        }
        (source, weight) => {
            let by = if let (Source::Layer(_), Weight::Scalar(by)) = (source, weight) { by.abs() } else { 1.0 };
            (to[y.index()], to[k.index()]) = (by, by);
        }
    }
}
