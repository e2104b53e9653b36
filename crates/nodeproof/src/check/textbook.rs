//! The paper's formulas, densely and in plain loops.
//!
//! This is Zügner and Günnemann's certificate as it is written down, evaluated on the slice of the graph that a target
//! sees. Every matrix of the formulas is a dense matrix here, and products are taken in the order in which they are
//! written: no zero is skipped, no product rearranged. Four corrections are made:
//!
//! * bounds of deeper layers include the bias and the ReLU; without them they are wrong;
//! * a unit with `lo == 0 < hi` is active, not dead;
//! * a budget larger than the number of flips that are allowed takes all of them and charges nothing for the rest;
//! * flips that the [`Limits`] do not allow have no gain.
//!
//! | paper | here |
//! |---|---|
//! | Â⁽ˡ⁾ sliced | `Slice::propagation` |
//! | X sliced | `attributes` |
//! | R, S | [`Bounds::lo`], [`Bounds::hi`] |
//! | Ω | `slopes` |
//! | Φ̂, Φ | `phi_hat`, `phi` |
//! | Δ | `gains` |
//!
//! All arithmetic is ordinary `f64`, rounded to nearest: good for comparisons, not for verdicts.

use crate::budget::Limits;
use crate::dense::Matrix;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::Model;
use crate::network::{ChainLayer, Network};
use crate::sparse::SparseMatrix;

/// Bounds on the pre-activations of one hidden layer, for the nodes that the target sees there.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// The nodes, ascending: row i of the matrices belongs to `nodes[i]`.
    pub nodes: Vec<NodeId>,
    /// Lower bounds, nodes × units.
    pub lo: Matrix,
    /// Upper bounds, nodes × units.
    pub hi: Matrix,
}

/// The paper's certificate on one network under one budget.
pub struct Textbook<'a> {
    graph: &'a Graph,
    model: &'a Model,
    layers: &'a [ChainLayer<'a>],
    /// P of each layer.
    propagations: Vec<&'a SparseMatrix>,
    limits: &'a Limits,
    /// The weights of each layer, outputs × inputs.
    transposed: Vec<Matrix>,
    /// `lo` and `hi` of the first hidden layer for all nodes; empty if there is none.
    first: (Matrix, Matrix),
}

/// What the target sees: `nodes[0]` are the nodes whose attributes matter, `nodes[i + 1]` those whose outputs of layer
/// i matter, the last is the target alone. `propagation[i]` are the rows `nodes[i + 1]` and columns `nodes[i]` of P.
struct Slice {
    nodes: Vec<Vec<u32>>,
    propagation: Vec<Matrix>,
}

impl<'a> Textbook<'a> {
    /// Prepares the first layer's bounds of all nodes, as the paper does; `None` if the network is not the paper's: layers with
    /// one term each that reads the layer before, ReLUs between, no negative propagation, and plain bits for attributes.
    ///
    /// O(N · h · D) time, O(N · h · q) memory.
    pub fn new(network: &'a Network<'a>, limits: &'a Limits) -> Option<Self> {
        let (graph, model, layers) = (network.graph(), network.model(), network.chain()?);
        if !graph.kind().is_bits() {
            return None;
        }
        let propagations = (0..layers.len()).map(|layer| network.matrix(layer, 0)).collect();
        let transposed = layers.iter().map(|layer| transpose(layer.weight)).collect();
        let empty = (Matrix::zeros(0, 0), Matrix::zeros(0, 0));
        let mut textbook = Self { graph, model, layers, propagations, limits, transposed, first: empty };
        if model.hidden_layers() > 0 {
            textbook.first = textbook.first_bounds();
        }
        Some(textbook)
    }

    /// The bounds of each hidden layer, first to last, on the slice of `target`.
    pub fn bounds(&self, target: NodeId) -> Vec<Bounds> {
        let slice = self.slice(target);
        let mut all: Vec<Bounds> = Vec::new();
        for layer in 0..self.model.hidden_layers() {
            let nodes = &slice.nodes[layer + 1];
            let (lo, hi) = match all.last() {
                None => (pick(&self.first.0, nodes), pick(&self.first.1, nodes)),
                Some(before) => next_bounds(&self.layers[layer], &slice.propagation[layer], before),
            };
            all.push(Bounds { nodes: nodes.iter().map(|&node| NodeId(node)).collect(), lo, hi });
        }
        all
    }

    /// Per class k a lower bound on `logit_class − logit_k` of `target` over all admissible sets of flips; 0 for
    /// `class` itself. Slopes are the paper's default, `hi / (hi − lo)`, or the given ones: one matrix a hidden layer,
    /// all nodes × units.
    pub fn lower_bounds(&self, target: NodeId, class: ClassId, slopes: Option<&[Matrix]>) -> Vec<f64> {
        self.dual(target, class, &self.bounds(target), slopes)
    }

    /// [`Textbook::lower_bounds`] from bounds of the caller's own; valid if they are.
    pub fn dual(&self, target: NodeId, class: ClassId, bounds: &[Bounds], slopes: Option<&[Matrix]>) -> Vec<f64> {
        let slice = self.slice(target);
        let attributes = self.attributes(&slice.nodes[0]);
        let signs = self.signs(&attributes);
        let lower = |k| self.dual_of(&slice, &attributes, &signs, (class.index(), k), bounds, slopes);
        (0..self.model.classes()).map(|k| if k == class.index() { 0.0 } else { lower(k) }).collect()
    }

    /// The logits of `target` once `flips` are made.
    pub fn logits(&self, target: NodeId, flips: &[Flip]) -> Vec<f64> {
        let slice = self.slice(target);
        let mut values = self.attributes(&slice.nodes[0]);
        for flip in flips {
            if let Ok(row) = slice.nodes[0].binary_search(&flip.node.0) {
                let x = &mut values.row_mut(row)[flip.attribute.index()];
                *x = 1.0 - *x;
            }
        }
        for (i, layer) in self.layers.iter().enumerate() {
            let active = if i == 0 { values } else { map(&values, |value| value.max(0.0)) };
            values = product(&product(&slice.propagation[i], &active), layer.weight);
            for row in 0..values.rows() {
                axpy(values.row_mut(row), 1.0, layer.bias);
            }
        }
        values.row(0).to_vec()
    }

    /// The paper's Theorems 2 and 3 for one pair of classes: `c = e_class − e_other`.
    fn dual_of(
        &self,
        slice: &Slice,
        attributes: &Matrix,
        signs: &Matrix,
        (class, other): (usize, usize),
        bounds: &[Bounds],
        slopes: Option<&[Matrix]>,
    ) -> f64 {
        let mut phi = Matrix::zeros(1, self.model.classes());
        phi.row_mut(0)[class] = -1.0;
        phi.row_mut(0)[other] = 1.0;
        let mut value = 0.0;
        for (i, layer) in self.layers.iter().enumerate().rev() {
            for row in 0..phi.rows() {
                value -= phi.row(row).iter().zip(layer.bias).map(|(phi, bias)| phi * bias).sum::<f64>();
            }
            let phi_hat = product(&product(&transpose(&slice.propagation[i]), &phi), &self.transposed[i]);
            if i == 0 {
                return value - trace(attributes, &phi_hat) - self.penalty(&slice.nodes[0], signs, &phi_hat);
            }
            let (intercepts, relaxed) = relax(&bounds[i - 1], &phi_hat, slopes.map(|slopes| &slopes[i - 1]));
            value += intercepts;
            phi = relaxed;
        }
        value
    }

    /// `‖Ψ‖₁ + Σ q_n η_n + Q ρ` at the optimal η and ρ: the sum of the Q largest of the q_n largest gains of each
    /// node, where adding an attribute gains `[Φ̂]₊` and deleting one `[Φ̂]₋`.
    fn penalty(&self, nodes: &[u32], signs: &Matrix, phi_hat: &Matrix) -> f64 {
        let mut selected = Vec::new();
        let mut gains = Vec::new();
        for (row, &node) in nodes.iter().enumerate() {
            gains.clear();
            gains.extend(signs.row(row).iter().zip(phi_hat.row(row)).map(|(sign, phi)| (sign * phi).max(0.0)));
            selected.extend_from_slice(largest(&mut gains, self.limits.local(NodeId(node))));
        }
        largest(&mut selected, self.limits.global()).iter().sum()
    }

    /// The rows `nodes` of X.
    fn attributes(&self, nodes: &[u32]) -> Matrix {
        let mut attributes = Matrix::zeros(nodes.len(), self.graph.attribute_count());
        for (row, &node) in nodes.iter().enumerate() {
            for &attribute in self.graph.attributes().row(node as usize) {
                attributes.row_mut(row)[attribute as usize] = 1.0;
            }
        }
        attributes
    }

    /// By how much a flip moves each entry of `attributes`: +1 where it can be added, −1 where it can be deleted, 0
    /// where the budget forbids both.
    fn signs(&self, attributes: &Matrix) -> Matrix {
        let mut signs = map(attributes, |x| match x {
            0.0 if self.limits.additions() => 1.0,
            1.0 if self.limits.deletions() => -1.0,
            _ => 0.0,
        });
        for row in 0..signs.rows() {
            for (attribute, sign) in signs.row_mut(row).iter_mut().enumerate() {
                if !self.limits.flippable((attribute as u32).into()) {
                    *sign = 0.0;
                }
            }
        }
        signs
    }

    /// The paper's bounds of the first layer, for all nodes: the unperturbed pre-activation plus (minus) the Q largest
    /// of `P_mn ·` the q_n largest gains (losses) of each neighbour n.
    fn first_bounds(&self) -> (Matrix, Matrix) {
        let (nodes, layer) = (self.graph.nodes(), &self.layers[0]);
        let units = layer.bias.len();
        let mut sums = Matrix::zeros(nodes, units);
        let mut gains = Vec::with_capacity(nodes * units);
        let mut losses = Vec::with_capacity(nodes * units);
        let mut changed = Vec::new();
        for node in 0..nodes {
            for &attribute in self.graph.attributes().row(node) {
                axpy(sums.row_mut(node), 1.0, layer.weight.row(attribute as usize));
            }
            let signs = self.signs(&self.attributes(&[node as u32]));
            let local = self.limits.local(NodeId(node as u32));
            for unit in 0..units {
                let changes =
                    || signs.values().iter().zip(self.transposed[0].row(unit)).map(|(sign, weight)| sign * weight);
                changed.clear();
                changed.extend(changes().map(|change| change.max(0.0)));
                gains.push(largest(&mut changed, local).to_vec());
                changed.clear();
                changed.extend(changes().map(|change| (-change).max(0.0)));
                losses.push(largest(&mut changed, local).to_vec());
            }
        }
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut lo, mut hi) = (Matrix::zeros(nodes, units), Matrix::zeros(nodes, units));
        for node in 0..nodes {
            let (neighbours, weights) = self.propagations[0].row(node);
            let mut unperturbed = layer.bias.to_vec();
            for (&n, &p) in neighbours.iter().zip(weights) {
                axpy(&mut unperturbed, p, sums.row(n as usize));
            }
            for (unit, &value) in unperturbed.iter().enumerate() {
                up.clear();
                down.clear();
                for (&n, &p) in neighbours.iter().zip(weights) {
                    let place = n as usize * units + unit;
                    up.extend(gains[place].iter().map(|gain| p * gain));
                    down.extend(losses[place].iter().map(|loss| p * loss));
                }
                hi.row_mut(node)[unit] = value + largest(&mut up, self.limits.global()).iter().sum::<f64>();
                lo.row_mut(node)[unit] = value - largest(&mut down, self.limits.global()).iter().sum::<f64>();
            }
        }
        (lo, hi)
    }

    fn slice(&self, target: NodeId) -> Slice {
        let mut nodes = vec![vec![target.0]];
        let mut propagation = Vec::new();
        for matrix in self.propagations.iter().rev() {
            let outer = &nodes[nodes.len() - 1];
            let mut inner: Vec<u32> = outer.iter().flat_map(|&m| matrix.row(m as usize).0.iter().copied()).collect();
            inner.sort_unstable();
            inner.dedup();
            let mut rows = Matrix::zeros(outer.len(), inner.len());
            for (row, &m) in outer.iter().enumerate() {
                let (columns, values) = matrix.row(m as usize);
                for (n, &p) in columns.iter().zip(values) {
                    rows.row_mut(row)[inner.partition_point(|other| other < n)] = p;
                }
            }
            propagation.push(rows);
            nodes.push(inner);
        }
        nodes.reverse();
        propagation.reverse();
        Slice { nodes, propagation }
    }
}

/// The ReLUs of one hidden layer: the sum of `lo · hi / (hi − lo) · [Φ̂]₊` over unstable units, and Φ.
fn relax(bounds: &Bounds, phi_hat: &Matrix, slopes: Option<&Matrix>) -> (f64, Matrix) {
    let mut phi = Matrix::zeros(phi_hat.rows(), phi_hat.columns());
    let mut intercepts = 0.0;
    for (row, node) in bounds.nodes.iter().enumerate() {
        for unit in 0..phi_hat.columns() {
            let (lo, hi, value) = (bounds.lo.get(row, unit), bounds.hi.get(row, unit), phi_hat.get(row, unit));
            phi.row_mut(row)[unit] = if lo >= 0.0 {
                value
            } else if hi <= 0.0 {
                0.0
            } else {
                let chord = hi / (hi - lo);
                let slope = slopes.map_or(chord, |slopes| slopes.get(node.index(), unit));
                intercepts += lo * chord * value.max(0.0);
                if value > 0.0 { chord * value } else { slope * value }
            };
        }
    }
    (intercepts, phi)
}

/// `lo' = P (relu(lo) W₊ − relu(hi) W₋) + b`, `hi' = P (relu(hi) W₊ − relu(lo) W₋) + b`.
fn next_bounds(layer: &ChainLayer, propagation: &Matrix, before: &Bounds) -> (Matrix, Matrix) {
    let positive = map(layer.weight, |weight| weight.max(0.0));
    let negative = map(layer.weight, |weight| (-weight).max(0.0));
    let (least, most) = (map(&before.lo, |lo| lo.max(0.0)), map(&before.hi, |hi| hi.max(0.0)));
    let bound = |rising: &Matrix, falling: &Matrix| {
        let mut inner = product(rising, &positive);
        let lowered = product(falling, &negative);
        for row in 0..inner.rows() {
            axpy(inner.row_mut(row), -1.0, lowered.row(row));
        }
        let mut bound = product(propagation, &inner);
        for row in 0..bound.rows() {
            axpy(bound.row_mut(row), 1.0, layer.bias);
        }
        bound
    };
    (bound(&least, &most), bound(&most, &least))
}

/// `Tr[Xᵀ Φ̂]`.
fn trace(attributes: &Matrix, phi_hat: &Matrix) -> f64 {
    attributes.values().iter().zip(phi_hat.values()).map(|(x, phi)| x * phi).sum()
}

/// `A B`.
fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut product = Matrix::zeros(a.rows(), b.columns());
    for row in 0..a.rows() {
        for (inner, &factor) in a.row(row).iter().enumerate() {
            axpy(product.row_mut(row), factor, b.row(inner));
        }
    }
    product
}

/// `function` of every entry.
fn map(matrix: &Matrix, function: impl Fn(f64) -> f64) -> Matrix {
    Matrix::from_values(matrix.rows(), matrix.columns(), matrix.values().iter().map(|&value| function(value)).collect())
}

/// The `count` largest of `values`, in any order; all of them if there are fewer.
fn largest(values: &mut [f64], count: usize) -> &[f64] {
    if count == 0 {
        return &[];
    }
    if count < values.len() {
        values.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
        return &values[..count];
    }
    values
}

/// `a += factor · b`.
fn axpy(a: &mut [f64], factor: f64, b: &[f64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += factor * b;
    }
}

/// These rows of `matrix`.
fn pick(matrix: &Matrix, rows: &[u32]) -> Matrix {
    let values = rows.iter().flat_map(|&row| matrix.row(row as usize).iter().copied()).collect();
    Matrix::from_values(rows.len(), matrix.columns(), values)
}

fn transpose(matrix: &Matrix) -> Matrix {
    let values = (0..matrix.columns()).flat_map(|c| (0..matrix.rows()).map(move |r| matrix.get(r, c))).collect();
    Matrix::from_values(matrix.columns(), matrix.rows(), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, LocalBudget};
    use crate::ids::AttributeId;
    use crate::model::Propagation;

    /// A path 0 – 1 with row-normalised propagation (all entries ½), two attributes, one unit, two classes.
    /// Node 0 has attribute 0, node 1 has none.
    #[test]
    fn one_hidden_layer_by_hand() {
        let graph = Graph::new(2, 2, &[(0, 1)], &[(0, 0)]).unwrap();
        let layers = vec![
            (Matrix::from_values(2, 1, vec![4.0, -2.0]), vec![1.0]),
            (Matrix::from_values(1, 2, vec![1.0, 3.0]), vec![5.0, 0.5]),
        ];
        let model = Model::gcn(layers, Propagation::RowNormalised).unwrap();
        let network = Network::new(&graph, &model).unwrap();
        let limits = Budget::new(2, LocalBudget::Count(1)).limits(&graph).unwrap();
        let textbook = Textbook::new(&network, &limits).unwrap();

        // Unperturbed: ½·4 + 1 = 3 at both nodes. Node 0 can lose 4 (delete) or 2 (add); node 1 can gain 4 or lose 2.
        // One flip a node: lo = 3 − ½·4 − ½·2 = 0, which is active; hi = 3 + ½·4 = 5.
        let bounds = textbook.bounds(NodeId(0));
        assert_eq!(bounds.len(), 1);
        assert_eq!(bounds[0].nodes, [NodeId(0), NodeId(1)]);
        assert_eq!((bounds[0].lo.values(), bounds[0].hi.values()), (&[0.0, 0.0][..], &[5.0, 5.0][..]));

        // All active, so linear: margin of class 0 against 1 = 4.5 − 2 · mean of both units = 4.5 − 2·3, and the best
        // flip adds attribute 0 at node 1, 2·½·4 = 4 more.
        assert_eq!(textbook.lower_bounds(NodeId(0), ClassId(0), None), [0.0, 4.5 - 6.0 - 4.0]);
        // The other way round: 6 − 4.5, and the attacker deletes 4 and adds −2: 4 + 2 less.
        assert_eq!(textbook.lower_bounds(NodeId(0), ClassId(1), None), [6.0 - 4.5 - 6.0, 0.0]);
        let flips = [(0, 0), (1, 1)].map(|(node, d)| Flip::of(&graph, NodeId(node), AttributeId(d)));
        assert_eq!(textbook.logits(NodeId(1), &flips), [5.0, 0.5]);
        assert_eq!(textbook.logits(NodeId(1), &[]), [8.0, 9.5]);
    }

    #[test]
    fn largest_takes_what_there_is() {
        let mut values = [1.0, 5.0, 3.0];
        assert_eq!(largest(&mut values, 0), [0.0; 0]);
        assert_eq!(largest(&mut values, 1), [5.0]);
        assert_eq!(largest(&mut values, 2).iter().sum::<f64>(), 8.0);
        assert_eq!(largest(&mut values, 9).len(), 3);
    }
}
