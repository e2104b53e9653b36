//! The same where attributes are real values: a flip of an entry from x to the end of its range raises `P_mn X_n W_j` by
//! `P_mn (end − x) W_dj`, and each entry has the end that raises it, if it is not there yet (Lemma 49 of
//! `docs/maths.md`).

use super::{Problem, UnitMoves};
use crate::ids::{AttributeId, NodeId};
use crate::selection::Selection;
use crate::values::Values;

/// How far `unit` can be moved up and down, for each node of its layer.
pub(super) fn moves(problem: &Problem, values: &Values, unit: usize) -> UnitMoves {
    let columns: Vec<&[f64]> = problem.weights.iter().map(|weights| weights.row(unit)).collect();
    let known = columns.iter().map(|_| [(); 2].map(|()| vec![None; problem.nodes.len()])).collect();
    let mut unit = Unit { problem, values, columns, known };
    let mut moves = UnitMoves::default();
    for place in 0..problem.neighbourhoods.len() {
        let [up, down] = [1.0, -1.0].map(|way| unit.most(place, way));
        moves.push(up, down);
    }
    moves
}

/// One unit of the layer, with its weights in each term.
struct Unit<'a> {
    problem: &'a Problem<'a>,
    values: &'a Values,
    columns: Vec<&'a [f64]>,
    /// For each term what each node of level 0 gains, up and down, once that was asked for: its largest gains.
    known: Vec<[Vec<Option<Vec<f64>>>; 2]>,
}

impl Unit<'_> {
    /// The most that admissible sets move the unit at a node of its level, up (1) or down (−1).
    fn most(&mut self, place: usize, way: f64) -> f64 {
        let Self { problem, values, columns, known } = self;
        let mut selection = Selection::new(problem.asked.limits.global());
        for entry in problem.neighbourhoods.range(place) {
            let (n, factors) = (problem.neighbourhoods.places[entry] as usize, problem.neighbourhoods.factors(entry));
            let mut gathered = (0..factors.len()).filter(|&term| factors[term] != 0.0);
            match (gathered.next(), gathered.next()) {
                (Some(term), None) => {
                    let way = if factors[term] < 0.0 { -way } else { way };
                    let known = &mut known[term][usize::from(way < 0.0)][n];
                    let gains = known.get_or_insert_with(|| largest(problem, values, n, |d| way * columns[term][d]));
                    gains.iter().for_each(|gain| selection.offer(factors[term].abs() * gain, ()));
                }
                (Some(_), Some(_)) => {
                    let weight = |d: usize| factors.iter().zip(&*columns).map(|(p, column)| way * p * column[d]).sum();
                    let gains = largest(problem, values, n, weight);
                    gains.into_iter().for_each(|gain| selection.offer(gain, ()));
                }
                (None, _) => {}
            }
        }
        selection.settle();
        selection.total()
    }
}

/// The largest gains of a node of level 0, as many as its budget allows, given what raising each attribute by 1 gains.
fn largest(problem: &Problem, values: &Values, n: usize, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let (node, limits) = (NodeId(problem.nodes[n]), problem.asked.limits);
    let mut selection = Selection::new(problem.capacities[n]);
    for (d, &value) in values.row(node).iter().enumerate() {
        if let Some((low, high)) = limits.range(values, node, AttributeId(d as u32)) {
            let weight = weight(d);
            selection.offer((if weight < 0.0 { low } else { high } - value) * weight, ());
        }
    }
    selection.settle();
    selection.best().iter().map(|&(gain, ())| gain).collect()
}
