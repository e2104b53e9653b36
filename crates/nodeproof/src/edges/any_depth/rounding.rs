//! At most how far rounding takes bounds from what they are (Lemma 66 of `docs/maths.md`).

use super::super::Problem;
use super::base::{add_radius, width};
use super::region::Region;
use crate::dense::{Matrix, add_scaled};
use crate::model::{Source, Term, Weight};

/// How large numbers may be that a bound is made of.
#[derive(Debug)]
pub(super) struct Magnitude<'p> {
    /// Of each unit of each layer: the sum of the magnitudes that it is made of, whichever edges are deleted.
    pub(super) sums: Vec<Matrix>,
    /// The length of each column of the weight of terms.
    pub(super) lengths: Vec<(&'p Term, Vec<f64>)>,
    /// How far rounding takes anything, relatively.
    pub(super) relative: f64,
}

impl<'p> Magnitude<'p> {
    pub(super) fn new(problem: &Problem<'p>, region: &Region) -> Self {
        let (graph, layers) = (problem.network.graph(), problem.network.layers());
        let degrees: Vec<usize> = region.nodes.iter().map(|node| graph.adjacency().row(node.index()).len()).collect();
        let most = |n: usize| problem.limits.at(region.nodes[n]).min(problem.limits.global());
        let largest =
            |n: usize, of: &dyn Fn(usize) -> f64| (0..=most(n)).map(|k| of(degrees[n] - k)).fold(0.0, f64::max);
        let mut sums: Vec<Matrix> = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            let mut made = Matrix::zeros(region.rows[i].len(), layer.units());
            for (place, &m) in region.rows[i].iter().enumerate() {
                let m = m as usize;
                made.row_mut(place).iter_mut().zip(layer.bias()).for_each(|(sum, b)| *sum = b.abs());
                for (t, term) in layer.terms().iter().enumerate() {
                    let share = problem.shares[term.propagation()];
                    let mut gathered = vec![0.0; width(problem, i, t)];
                    let mut add = |n: usize, factor: f64| match term.source() {
                        Source::Attributes => {
                            let sizes = &region.sizes.row(n)[problem.network.attribute_columns(i, t)];
                            add_scaled(&mut gathered, factor, sizes);
                        }
                        Source::Ones => {
                            gathered
                                .iter_mut()
                                .zip(term.weight().values())
                                .for_each(|(sum, w)| *sum += factor * w.abs());
                        }
                        Source::Layer(source) => {
                            add_scaled(&mut gathered, factor, sums[source].row(region.places[source][n] as usize));
                        }
                    };
                    let own = largest(m, &|degree| share.mixing.own(degree, region.has_loop[m]));
                    let into = share.mixed.abs() * largest(m, &|degree| share.mixing.into(degree));
                    add(m, share.identity.abs() + share.mixed.abs() * own);
                    for &n in graph.adjacency().row(region.nodes[m].index()).iter().filter(|_| share.mixed != 0.0) {
                        let n = region.number(crate::ids::NodeId(n)) as usize;
                        if n != m {
                            add(n, into * largest(n, &|degree| share.mixing.from(degree)));
                        }
                    }
                    add_radius(made.row_mut(place), &gathered, term);
                }
            }
            sums.push(made);
        }
        let longest = degrees.iter().copied().max().unwrap_or(0);
        let lengths = layers.iter().flat_map(|layer| layer.terms()).map(|term| (term, lengths(term))).collect();
        Self { sums, lengths, relative: 8.0 * problem.relative_error(longest) }
    }
}

fn lengths(term: &Term) -> Vec<f64> {
    let Weight::Dense(weight) = term.weight() else { return Vec::new() };
    let mut squares = vec![0.0; weight.columns()];
    for row in 0..weight.rows() {
        squares.iter_mut().zip(weight.row(row)).for_each(|(sum, w)| *sum += w * w);
    }
    squares.into_iter().map(f64::sqrt).collect()
}
