//! A network with one hidden layer, its terms added up.

use std::collections::HashMap;

use crate::dense::{Matrix, add_scaled};
use crate::edges::Problem;
use crate::edges::evaluate::{Sent, Sums};
use crate::edges::mixing::Mixing;
use crate::ids::NodeId;
use crate::model::{Source, Weight};

/// With N(m) the neighbours of m, and sums over terms,
///
/// ```text
/// z_m = b + S_m + own(d_m) T_m + into(d_m) Σ_{n ∈ N(m)} from(d_n) T_n,   h = activation(z),
/// logits_t = β + R_t + h_t W + own(d_t) (V_t + h_t U) + into(d_t) Σ_{m ∈ N(t)} from(d_m) (V_m + h_m U).
/// ```
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) mixing: Mixing,
    /// b, and the slope of the activation below 0.
    pub(super) bias: Vec<f64>,
    pub(super) slope: f64,
    /// U, units × classes.
    pub(super) mixed: Matrix,
    /// W, units × classes.
    pub(super) own: Matrix,
    /// The magnitudes of what U and W add up: terms may cancel.
    pub(super) mixed_sizes: Matrix,
    pub(super) own_sizes: Matrix,
    /// β.
    pub(super) last_bias: Vec<f64>,
}

impl Weights {
    /// The network of a problem, if it has one hidden layer, and all of it mixes in one way.
    pub(super) fn of(problem: &Problem) -> Option<Self> {
        let [first, last] = problem.network.layers() else { return None };
        let mut mixings = first.terms().iter().chain(last.terms()).filter_map(|term| {
            let share = problem.shares[term.propagation()];
            (share.mixed != 0.0).then_some(share.mixing)
        });
        let mixing = mixings.next().unwrap_or(Mixing::Sum);
        if mixings.any(|other| other != mixing) || first.terms().iter().any(|term| term.source() == Source::Layer(0)) {
            return None;
        }
        let (units, classes) = (first.units(), last.units());
        let [mut mixed, mut own, mut mixed_sizes, mut own_sizes] =
            std::array::from_fn(|_| Matrix::zeros(units, classes));
        for term in last.terms().iter().filter(|term| term.source() == Source::Layer(0)) {
            let share = problem.shares[term.propagation()];
            for unit in 0..units {
                let mut weight = vec![0.0; classes];
                add_weight(&mut weight, 1.0, unit, term.weight());
                add_scaled(mixed.row_mut(unit), share.mixed, &weight);
                add_scaled(own.row_mut(unit), share.identity, &weight);
                weight.iter_mut().for_each(|w| *w = w.abs());
                add_scaled(mixed_sizes.row_mut(unit), share.mixed.abs(), &weight);
                add_scaled(own_sizes.row_mut(unit), share.identity.abs(), &weight);
            }
        }
        let (bias, last_bias) = (first.bias().to_vec(), last.bias().to_vec());
        Some(Self { mixing, bias, slope: first.activation().slope(), mixed, own, mixed_sizes, own_sizes, last_bias })
    }
}

/// Adds a multiple of row `row` of a weight.
fn add_weight(to: &mut [f64], factor: f64, row: usize, weight: &Weight) {
    match weight {
        Weight::Dense(dense) => add_scaled(to, factor, dense.row(row)),
        Weight::Scalar(scalar) => to[row] += factor * scalar,
    }
}

/// What a node makes of its attributes, and the magnitudes of what that adds up.
#[derive(Debug)]
pub(super) struct Inputs {
    /// T.
    pub(super) sent: Sums,
    /// S.
    pub(super) own: Sums,
    /// V.
    pub(super) skipped: Sums,
    /// R.
    pub(super) skipped_own: Sums,
}

/// Those of the nodes that were looked at so far.
#[derive(Debug, Default)]
pub(super) struct AllInputs {
    known: HashMap<NodeId, Inputs>,
}

impl AllInputs {
    /// Looks at a node.
    pub(super) fn know(&mut self, problem: &Problem, sent: &mut Sent, node: NodeId) {
        self.known.entry(node).or_insert_with(|| inputs(problem, sent, node));
    }

    /// What a node that was looked at makes of its attributes.
    pub(super) fn of(&self, node: NodeId) -> &Inputs {
        &self.known[&node]
    }
}

fn inputs(problem: &Problem, sent: &mut Sent, node: NodeId) -> Inputs {
    let layers = problem.network.layers();
    let all = sent.of(problem, node);
    let mut made: Vec<Sums> = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        let (mut mixed, mut own) = (Sums::zeros(layer.units()), Sums::zeros(layer.units()));
        for (place, term) in layer.terms().iter().enumerate() {
            let share = problem.shares[term.propagation()];
            let columns = problem.network.attribute_columns(i, place);
            for (sums, factor) in [(&mut mixed, share.mixed), (&mut own, share.identity)] {
                match term.source() {
                    Source::Attributes => sums.add_columns(factor, all, columns.clone()),
                    Source::Ones => {
                        let mut ones = vec![0.0; layer.units()];
                        add_weight(&mut ones, 1.0, 0, term.weight());
                        sums.add(factor, &Sums::exact(ones));
                    }
                    Source::Layer(_) => {}
                }
            }
        }
        made.extend([mixed, own]);
    }
    let [sent, own, skipped, skipped_own] = <[Sums; 4]>::try_from(made).unwrap_or_else(|_| unreachable!("two layers"));
    Inputs { sent, own, skipped, skipped_own }
}
