//! The same where attributes are real values: a flip of an entry from x to the end of its range raises `P_mn X_n W_j` by
//! `P_mn (end − x) W_dj`, and each entry has the end that raises it, if it is not there yet (Lemma 49 of
//! `docs/maths.md`).

use super::Problem;
use crate::ids::{AttributeId, NodeId};
use crate::selection::Selection;
use crate::slice::{DOWN, SlicedFlip};
use crate::values::Values;

/// Calls `visit` for each node of the layer how far `unit` can be moved up and down and, where they are `wanted`, with the flips that do so.
pub(super) fn visit(
    problem: &Problem,
    values: &Values,
    unit: usize,
    wanted: bool,
    mut visit: impl FnMut(f64, f64, [Vec<SlicedFlip>; 2]),
) {
    let columns: Vec<Column> = problem.weights.iter().map(|of| Column::new(problem, values, of.row(unit))).collect();
    let known = columns.iter().map(|_| [(); 2].map(|()| vec![None; problem.nodes.len()])).collect();
    let mut unit = Unit { problem, values, columns, known };
    for place in 0..problem.neighbourhoods.len() {
        let [up, down] = [1.0, -1.0].map(|way| unit.best(place, way));
        let flips = |of: &Selection<SlicedFlip>| of.best().iter().map(|&(_, flip)| flip).collect();
        visit(up.total(), down.total(), if wanted { [flips(&up), flips(&down)] } else { Default::default() });
    }
}

/// One unit of the layer, with its weights in each term.
struct Unit<'a> {
    problem: &'a Problem<'a>,
    values: &'a Values,
    columns: Vec<Column<'a>>,
    /// For each term what each node of level 0 gains, up and down, once that was asked for: its largest gains.
    known: Vec<[Vec<Option<Gains>>; 2]>,
}

/// Gains, and attributes with the way that their values go.
type Gains = Vec<(f64, u32)>;

/// The weights of a unit in a term.
struct Column<'a> {
    weights: &'a [f64],
    /// Attributes that may be flipped, with the most that they gain at any node, largest first.
    order: Vec<(f64, u32)>,
}

impl<'a> Column<'a> {
    fn new(problem: &Problem, values: &Values, weights: &'a [f64]) -> Self {
        let flippable = (0..weights.len() as u32).filter(|&d| problem.asked.limits.flippable(AttributeId(d)));
        // Rounding is far below the difference.
        let most = |d: u32| (weights[d as usize] * values.widest(AttributeId(d))).abs() * (1.0 + 1e-9);
        let mut order: Vec<(f64, u32)> = flippable.map(|d| (most(d), d)).collect();
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Self { weights, order }
    }
}

impl Unit<'_> {
    /// The flips that move the unit most at a node of its level, up (1) or down (−1).
    fn best(&mut self, place: usize, way: f64) -> Selection<SlicedFlip> {
        let Self { problem, values, columns, known } = self;
        let mut selection = Selection::new(problem.asked.limits.global());
        for entry in problem.neighbourhoods.range(place) {
            let (n, factors) = (problem.neighbourhoods.places[entry] as usize, problem.neighbourhoods.factors(entry));
            let mut gathered = (0..factors.len()).filter(|&term| factors[term] != 0.0);
            let mut offer = |factor: f64, gains: &Gains| {
                gains.iter().for_each(|&(gain, flip)| selection.offer(factor * gain, (entry as u32, flip)));
            };
            match (gathered.next(), gathered.next()) {
                (Some(term), None) => {
                    let way = if factors[term] < 0.0 { -way } else { way };
                    let known = &mut known[term][usize::from(way < 0.0)][n];
                    let gains = known.get_or_insert_with(|| {
                        let Column { weights, order } = &columns[term];
                        largest(problem, values, n, order, |d| way * weights[d as usize])
                    });
                    offer(factors[term].abs(), gains);
                }
                (Some(_), Some(_)) => {
                    let terms = || factors.iter().zip(&*columns);
                    let weight = |d: u32| terms().map(|(p, column)| way * p * column.weights[d as usize]).sum();
                    let order: Vec<(f64, u32)> = columns[0].order.iter().map(|&(_, d)| (f64::INFINITY, d)).collect();
                    offer(1.0, &largest(problem, values, n, &order, weight));
                }
                (None, _) => {}
            }
        }
        selection.settle();
        selection
    }
}

/// The largest gains of a node of level 0, as many as its budget allows, given attributes with the most that they gain, and what raising each
/// of them by 1 gains.
fn largest(problem: &Problem, values: &Values, n: usize, order: &[(f64, u32)], weight: impl Fn(u32) -> f64) -> Gains {
    let (node, limits) = (NodeId(problem.nodes[n]), problem.asked.limits);
    let mut selection = Selection::new(problem.capacities[n]);
    let row = values.row(node);
    for &(most, d) in order {
        if most <= selection.threshold() {
            break;
        }
        if let Some((low, high)) = limits.range(values, node, AttributeId(d)) {
            let weight = weight(d);
            let (end, flip) = if weight < 0.0 { (low, d | DOWN) } else { (high, d) };
            selection.offer((end - row[d as usize]) * weight, flip);
        }
    }
    selection.settle();
    selection.best().to_vec()
}
