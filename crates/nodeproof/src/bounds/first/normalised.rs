//! The same where the ones of a row are divided by their number (Lemma 46 of `docs/maths.md`).
//!
//! A set of flips at node n that leaves m' ≥ 1 ones raises `P_mn X_n W_j` by `P_mn / m' · Σ σ (W_dj − μ_nj)`, and one that leaves none
//! by `−P_mn μ_nj`. What each row can gain is known for each number of flips, and rows share the budget.

use super::Problem;
use crate::dense::Matrix;
use crate::ids::AttributeId;
use crate::selection::{OverRows, RowGains, RowScores, share};
use crate::slice::SlicedFlip;

/// Calls `visit` for each node of the layer how far `unit` can be moved up and down and, where they are `wanted`, with the flips that do so.
/// Where the unit is stable and nothing but that matters, it hears of no flips, and may hear of larger moves.
pub(super) fn visit(
    problem: &Problem,
    means: &Matrix,
    unit: usize,
    wanted: bool,
    mut visit: impl FnMut(f64, f64, [Vec<SlicedFlip>; 2]),
) {
    let terms: Vec<Column> = problem
        .asked
        .network
        .attribute_terms_of(problem.asked.layer)
        .zip(&problem.weights)
        .map(|(term, weights)| Column::new(problem, weights.row(unit), means, term.columns.start + unit))
        .collect();
    let known = terms.iter().map(|_| [(); 2].map(|()| Vec::new())).collect();
    let number = unit;
    let mut unit = Unit { problem, known, terms, totals: Vec::new() };
    for place in 0..problem.neighbourhoods.len() {
        let (z, only_signs_matter) = (problem.asked.clean.get(place, number), problem.asked.only_signs_matter);
        if only_signs_matter {
            let most = unit.at_most(place);
            if z.abs() > most {
                visit(most, most, Default::default());
                continue;
            }
        }
        let [up, down] = [1.0, -1.0].map(|way| unit.most(place, way));
        let is_stable = z - down >= 0.0 || z + up <= 0.0;
        let flips = if wanted && !(only_signs_matter && is_stable) {
            [1.0, -1.0].map(|way| unit.flips(place, way))
        } else {
            Default::default()
        };
        visit(up, down, flips);
    }
}

/// One unit of the layer, with its weights in each term.
struct Unit<'a> {
    problem: &'a Problem<'a>,
    terms: Vec<Column<'a>>,
    /// For each term what each node of level 0 gains, up and down, once that was asked for.
    known: Vec<[Vec<Option<RowGains>>; 2]>,
    totals: Vec<f64>,
}

impl Unit<'_> {
    /// A number that is no less than what admissible sets move the unit by at a node of its level: as many flips as there may be, each of what the
    /// largest difference of weights and μ does with the fewest ones.
    fn at_most(&self, place: usize) -> f64 {
        let Self { problem, terms, .. } = self;
        let (mut flips, mut largest) = (0, 0.0f64);
        for entry in problem.neighbourhoods.range(place) {
            let (n, factors) = (problem.neighbourhoods.places[entry] as usize, problem.neighbourhoods.factors(entry));
            flips += problem.capacities[n];
            let widest: f64 = factors.iter().zip(terms).map(|(p, term)| p.abs() * term.widest(n)).sum();
            let fewest = problem.attributes(n).len().saturating_sub(problem.capacities[n]).max(1);
            largest = largest.max(widest / fewest as f64);
        }
        // Rounding is far below the difference.
        flips.min(problem.asked.limits.global()) as f64 * largest * (1.0 + 1e-9)
    }

    /// The most that admissible sets move the unit at a node of its level, up (1) or down (−1).
    fn most(&mut self, place: usize, way: f64) -> f64 {
        let flips = self.flips_within(place);
        let mut totals = std::mem::take(&mut self.totals);
        totals.clear();
        totals.resize(flips + 1, 0.0);
        self.each_row(place, way, |_, gains, factor| share(&mut totals, gains, factor, |_, _| ()));
        self.totals = totals;
        self.totals[flips]
    }

    /// The flips that move it so.
    fn flips(&mut self, place: usize, way: f64) -> Vec<SlicedFlip> {
        let flips = self.flips_within(place);
        let (mut over, mut entries) = (OverRows::new(flips), Vec::new());
        self.each_row(place, way, |entry, gains, factor| {
            over.add(gains, factor);
            entries.push(entry);
        });
        let mut taken: Vec<(usize, usize)> = entries.into_iter().rev().zip(over.taken(flips)).collect();
        taken.retain(|&(_, taken)| taken > 0);
        let mut ways = Vec::new();
        self.each_row(place, way, |entry, gains, _| {
            ways.extend(taken.iter().find(|of| of.0 == entry).map(|&(_, taken)| (entry, gains.way(taken))));
        });
        let best = |(entry, counts)| self.best_of(entry, way, counts).into_iter().map(move |d| (entry as u32, d));
        ways.into_iter().flat_map(best).collect()
    }

    /// Most flips at the neighbours of a node of the unit's level.
    fn flips_within(&self, place: usize) -> usize {
        let Problem { neighbourhoods, capacities, asked, .. } = self.problem;
        let capacities = neighbourhoods.range(place).map(|entry| capacities[neighbourhoods.places[entry] as usize]);
        capacities.sum::<usize>().min(asked.limits.global())
    }

    /// Calls `visit` with each neighbour's entry, what its row gains, and a factor of that.
    fn each_row(&mut self, place: usize, way: f64, mut visit: impl FnMut(usize, &RowGains, f64)) {
        let Self { problem, terms, known, .. } = self;
        for entry in problem.neighbourhoods.range(place) {
            let (n, factors) = (problem.neighbourhoods.places[entry] as usize, problem.neighbourhoods.factors(entry));
            let mut gathered = (0..factors.len()).filter(|&term| factors[term] != 0.0);
            match (gathered.next(), gathered.next()) {
                (Some(term), None) => {
                    let way = if factors[term] < 0.0 { -way } else { way };
                    let known = &mut known[term][usize::from(way < 0.0)];
                    known.resize(problem.nodes.len(), None);
                    let gains = known[n].get_or_insert_with(|| terms[term].gains(problem, n, way));
                    visit(entry, gains, factors[term].abs());
                }
                (Some(_), Some(_)) => visit(entry, &together(problem, terms, factors, n, way), 1.0),
                (None, _) => {}
            }
        }
    }

    /// So many additions and removals of a neighbour's row that move the unit most.
    fn best_of(&self, entry: usize, way: f64, (added, removed): (usize, usize)) -> Vec<u32> {
        let Self { problem, terms, .. } = self;
        let (n, factors) = (problem.neighbourhoods.places[entry] as usize, problem.neighbourhoods.factors(entry));
        let (own, limits) = (problem.attributes(n), problem.asked.limits);
        let score = |d: u32| -> f64 {
            let terms = factors.iter().zip(terms);
            terms.map(|(p, term)| way * p * (term.weights[d as usize] - term.means[n])).sum()
        };
        let missing = |d: &u32| own.binary_search(d).is_err();
        let mut gathered = (0..factors.len()).filter(|&term| factors[term] != 0.0);
        let mut best: Vec<u32> = match (gathered.next(), gathered.next()) {
            (Some(term), None) if way * factors[term] > 0.0 => {
                terms[term].falling.iter().copied().filter(missing).take(added).collect()
            }
            (Some(term), None) => terms[term].falling.iter().rev().copied().filter(missing).take(added).collect(),
            _ => {
                let mut additions: Vec<u32> = terms[0].falling.iter().copied().filter(missing).collect();
                additions.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
                additions.truncate(added);
                additions
            }
        };
        if removed > 0 {
            let removable = own.iter().copied().filter(|&d| limits.flippable(AttributeId(d)));
            let mut removals: Vec<(f64, u32)> = removable.map(|d| (score(d), d)).collect();
            removals.select_nth_unstable_by(removed - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            best.extend(removals[..removed].iter().map(|&(_, d)| d));
        }
        best
    }
}

/// The weights of a unit in a term.
struct Column<'a> {
    weights: &'a [f64],
    /// Attributes that may be added, by falling weights.
    falling: Vec<u32>,
    /// μ of the unit for each node of level 0.
    means: Vec<f64>,
    /// The smallest and the largest weight.
    ends: (f64, f64),
}

impl<'a> Column<'a> {
    fn new(problem: &Problem, weights: &'a [f64], means: &Matrix, column: usize) -> Self {
        let limits = problem.asked.limits;
        let mut falling: Vec<u32> = (0..weights.len() as u32).filter(|&d| limits.flippable(AttributeId(d))).collect();
        if !limits.additions() {
            falling.clear();
        }
        falling.sort_by(|&a, &b| weights[b as usize].total_cmp(&weights[a as usize]));
        let means = (0..means.rows()).map(|place| means.get(place, column)).collect();
        let ends = weights.iter().fold((0.0f64, 0.0f64), |(low, high), &w| (low.min(w), high.max(w)));
        Self { weights, falling, means, ends }
    }

    /// The largest difference of μ of a node and a weight, or 0.
    fn widest(&self, n: usize) -> f64 {
        let mean = self.means[n];
        (self.ends.1 - mean).max(mean - self.ends.0).max(mean.abs())
    }

    /// What a node gains that moves the unit up (1) or down (−1).
    fn gains(&self, problem: &Problem, n: usize, way: f64) -> RowGains {
        let (own, enough) = (problem.attributes(n), problem.capacities[n]);
        let score = |d: u32| way * (self.weights[d as usize] - self.means[n]);
        let missing = |d: &u32| own.binary_search(d).is_err();
        let useful = |score: &f64| *score > 0.0;
        let additions: Vec<f64> = if way > 0.0 {
            self.falling.iter().copied().filter(missing).map(score).take_while(useful).take(enough).collect()
        } else {
            self.falling.iter().rev().copied().filter(missing).map(score).take_while(useful).take(enough).collect()
        };
        of_row(problem, n, &additions, |d| -score(d), -way * self.means[n])
    }
}

/// What a node gains that several terms gather from, with these factors.
fn together(problem: &Problem, terms: &[Column], factors: &[f64], n: usize, way: f64) -> RowGains {
    let (own, limits) = (problem.attributes(n), problem.asked.limits);
    let sum =
        |of: &dyn Fn(&Column) -> f64| -> f64 { factors.iter().zip(terms).map(|(p, term)| way * p * of(term)).sum() };
    let mean = sum(&|term| term.means[n]);
    let score = |d: u32| sum(&|term| term.weights[d as usize]) - mean;
    let mut additions: Vec<f64> = Vec::new();
    if limits.additions() {
        let attributes = (0..terms[0].weights.len() as u32).filter(|&d| limits.flippable(AttributeId(d)));
        additions.extend(attributes.filter(|d| own.binary_search(d).is_err()).map(score).filter(|&score| score > 0.0));
        additions.sort_by(|a, b| b.total_cmp(a));
        additions.truncate(problem.capacities[n]);
    }
    of_row(problem, n, &additions, |d| -score(d), -mean)
}

/// What a row gains, given the scores of additions, those of removals, and what it gains to be emptied.
fn of_row(problem: &Problem, n: usize, additions: &[f64], removal: impl Fn(u32) -> f64, emptied: f64) -> RowGains {
    let (own, capacity, limits) = (problem.attributes(n), problem.capacities[n], problem.asked.limits);
    let mut removals = Vec::with_capacity(own.len());
    if limits.deletions() {
        removals.extend(own.iter().filter(|&&d| limits.flippable(AttributeId(d))).map(|&d| removal(d)));
    }
    let emptied = (!own.is_empty() && removals.len() == own.len()).then_some(emptied);
    if removals.len() > capacity && capacity > 0 {
        removals.select_nth_unstable_by(capacity - 1, |a, b| b.total_cmp(a));
        removals.truncate(capacity);
    }
    removals.sort_unstable_by(|a, b| b.total_cmp(a));
    RowGains::best(RowScores { ones: own.len(), capacity, additions, removals: &removals, emptied })
}
