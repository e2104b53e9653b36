//! How far the logits that a network computes in some arithmetic may be from those without rounding, whatever flips are made and in
//! whatever order sums are added up (Lemma 53 of `docs/maths.md`).

use crate::attributes::AttributeKind;
use crate::budget::Limits;
use crate::dense::{Matrix, par_fill};
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::model::{ModelError, Propagation, Source, Term, Weight};
use crate::network::Network;
use crate::settings::Roundoff;
use crate::sparse::SparseMatrix;
use crate::values::Values;

/// Roundings of an entry of a propagation.
const ENTRY: usize = 8;
/// Roundings of a step with a power of a propagation, beside those of its sum, and of a term beside those of its sums.
const STEP: usize = 12;
/// Numbers that are stored on the way through a term, beside the sums of all terms so far.
const STORED: usize = 6;
/// Numbers that are stored in a step with a power of a propagation.
const EACH_STEP: usize = 4;
/// What sums of positive numbers are raised by for the rounding of these sums themselves.
const RAISED: f64 = 1.0 + 1e-9;

/// A number of the network: its largest magnitude under any admissible flips, and the largest error.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    magnitude: f64,
    error: f64,
}

impl Size {
    fn add(&mut self, factor: f64, other: Self) {
        self.magnitude += factor.abs() * other.magnitude;
        self.error += factor.abs() * other.error;
    }
}

/// The largest error of each logit, nodes × classes; infinite where nothing can be said.
///
/// # Errors
/// If a propagation does not fit the graph.
pub(crate) fn logit_errors(network: &Network, limits: &Limits, roundoff: Roundoff) -> Result<Matrix, ModelError> {
    let graph = network.graph();
    let propagations = network.model().propagations();
    let matrices = propagations.iter().map(|propagation| propagation.absolute().matrix(graph));
    let matrices: Vec<SparseMatrix> = matrices.collect::<Result<_, _>>()?;
    let steps: Vec<Steps> = propagations.iter().map(|p| Steps::of(p, graph)).collect::<Result<_, _>>()?;
    let rows = Rows::new(network, limits);
    let mut layers: Vec<Matrix<Size>> = Vec::new();
    for (i, layer) in network.layers().iter().enumerate() {
        let widest = |source: Source| match source {
            Source::Layer(source) => largest(layers[source].values().iter().map(|size| size.magnitude + size.error)),
            Source::Attributes => rows.largest_entry,
            Source::Ones => 1.0,
        };
        // The largest product of what a term multiplies, with 1 in place of smaller numbers.
        let product = |term: &Term| {
            steps[term.propagation()].growth * (1.0 + largest(term.weight().values())) * (1.0 + widest(term.source()))
        };
        let products: Vec<f64> = layer.terms().iter().map(product).collect();
        layers.push(par_fill(graph.nodes(), layer.units(), |m, sizes: &mut [Size]| {
            sizes.iter_mut().zip(layer.bias()).for_each(|(size, bias)| size.magnitude = bias.abs());
            let (mut operations, mut stored, mut floor) = (0.0f64, 0.0f64, 0.0);
            for (k, term) in layer.terms().iter().enumerate() {
                let row = matrices[term.propagation()].row(m);
                let width = match term.source() {
                    Source::Ones => add_constant(sizes, row, term.weight()),
                    Source::Attributes => rows.add(sizes, row, network.attribute_columns(i, k)),
                    Source::Layer(source) => add_layer(sizes, row, &layers[source], term.weight()),
                };
                let more = steps[term.propagation()];
                operations = operations.max((row.0.len() + width) as f64 + more.operations);
                stored = stored.max(more.stored);
                floor += 8.0 * ((row.0.len() + 1) as f64 + more.operations) * (width + 1) as f64 * products[k];
            }
            operations += (layer.terms().len() + ENTRY + STEP) as f64;
            stored += (layer.terms().len() + STORED) as f64;
            let x = RAISED * (operations * roundoff.operation + stored * roundoff.stored);
            let gamma = if x < 0.5 && floor < roundoff.largest { x / (1.0 - x) } else { f64::INFINITY };
            for size in sizes {
                size.magnitude *= RAISED;
                size.error = RAISED * ((1.0 + gamma) * size.error + gamma * size.magnitude + floor * roundoff.smallest);
                size.error = if size.error.is_nan() { f64::INFINITY } else { size.error };
            }
        }));
    }
    let last = layers.pop().unwrap_or_default();
    Ok(Matrix::from_values(last.rows(), last.columns(), last.values().iter().map(|size| size.error).collect()))
}

fn largest<'v>(values: impl IntoIterator<Item = impl std::borrow::Borrow<f64> + 'v>) -> f64 {
    values.into_iter().fold(0.0, |most, value| most.max(value.borrow().abs()))
}

/// What a propagation that is computed from another one, step by step, has beyond a matrix.
#[derive(Debug, Clone, Copy)]
struct Steps {
    /// More operations, and more numbers that are stored; doubles, since polynomials of polynomials have more than can be counted.
    operations: f64,
    stored: f64,
    /// No number on the way is larger than so many times what is read, nor is the entry of a matrix.
    growth: f64,
}

impl Steps {
    fn of(propagation: &Propagation, graph: &Graph) -> Result<Self, ModelError> {
        let Propagation::Polynomial { of, coefficients } = propagation else {
            let growth = 1.0 + largest(propagation.absolute().matrix(graph)?.values());
            return Ok(Self { operations: 0.0, stored: 0.0, growth });
        };
        let (within, matrix) = (Self::of(of, graph)?, of.absolute().matrix(graph)?);
        let rows = || (0..matrix.rows()).map(|row| matrix.row(row));
        let longest = rows().map(|(columns, _)| columns.len()).max().unwrap_or(0);
        let sum = rows().map(|(_, values)| values.iter().sum()).fold(0.0, f64::max);
        let count = coefficients.len();
        let of_powers = (1.0 + sum * RAISED).powi(i32::try_from(count).unwrap_or(i32::MAX));
        Ok(Self {
            operations: RAISED * count as f64 * ((longest + ENTRY + STEP) as f64 + within.operations),
            stored: RAISED * count as f64 * (EACH_STEP as f64 + within.stored),
            growth: within.growth * of_powers * (1.0 + largest(coefficients)),
        })
    }
}

/// What the constant 1 adds; what a sum over its inputs is long.
fn add_constant(sizes: &mut [Size], (_, values): (&[u32], &[f64]), weight: &Weight) -> usize {
    let sum = Size { magnitude: values.iter().sum(), error: 0.0 };
    add_product(sizes, &[sum], weight);
    1
}

/// What another layer adds; the same.
fn add_layer(sizes: &mut [Size], (nodes, values): (&[u32], &[f64]), below: &Matrix<Size>, weight: &Weight) -> usize {
    let mut gathered = vec![Size::default(); below.columns()];
    for (&n, &p) in nodes.iter().zip(values) {
        gathered.iter_mut().zip(below.row(n as usize)).for_each(|(sum, &size)| sum.add(p, size));
    }
    add_product(sizes, &gathered, weight);
    below.columns()
}

fn add_product(sizes: &mut [Size], inputs: &[Size], weight: &Weight) {
    match weight {
        Weight::Scalar(factor) => sizes.iter_mut().zip(inputs).for_each(|(size, &input)| size.add(*factor, input)),
        Weight::Dense(weight) => {
            for (j, &input) in inputs.iter().enumerate() {
                sizes.iter_mut().zip(weight.row(j)).for_each(|(size, &w)| size.add(w, input));
            }
        }
    }
}

/// The rows of attributes, and what flips can do to them.
struct Rows {
    /// `Σ_d |x_d| |W_d|` of each row as it is.
    magnitudes: Matrix,
    /// For each column of W the most that a flip of a bit or a value changes it by.
    largest: Vec<f64>,
    /// The part of that by which a flip changes a row, 0 if it may not be flipped.
    scales: Vec<f64>,
    /// Roundings of a sum over the entries of a row.
    lengths: Vec<usize>,
    largest_entry: f64,
    flips: f64,
}

impl Rows {
    fn new(network: &Network, limits: &Limits) -> Self {
        let (graph, weight) = (network.graph(), network.attribute_weight());
        let (nodes, kind) = (graph.nodes(), graph.kind());
        let divisor = |node: NodeId| kind.divisor(graph.row_length(node));
        let magnitudes = par_fill(nodes, weight.columns(), |n, sums: &mut [f64]| {
            let node = NodeId(n as u32);
            for (d, value) in graph.entries_of(node) {
                let value = value.abs() / divisor(node);
                sums.iter_mut().zip(weight.row(d.index())).for_each(|(sum, w)| *sum += value * w.abs());
            }
        });
        let sizes =
            |of: fn(&Values, AttributeId) -> f64, d: AttributeId| graph.values().map_or(1.0, |values| of(values, d));
        let mut most_changed = vec![0.0f64; weight.columns()];
        let attributes = || (0..graph.attribute_count() as u32).map(AttributeId);
        for d in attributes() {
            let change = sizes(Values::widest, d);
            most_changed.iter_mut().zip(weight.row(d.index())).for_each(|(most, w)| *most = most.max(change * w.abs()));
        }
        let flips = |node: NodeId| limits.local(node).min(limits.global());
        let scale = |node: NodeId| match (flips(node), kind) {
            (0, _) => 0.0,
            (flips, AttributeKind::NormalisedRows) => {
                2.0 / (graph.row_length(node).saturating_sub(flips)).max(1) as f64
            }
            _ => 1.0,
        };
        let length = |node: NodeId| {
            let most = graph.row_length(node) + flips(node);
            if kind.is_normalised() { 2 * most } else { most }
        };
        Self {
            magnitudes,
            largest: most_changed,
            scales: graph.node_ids().map(scale).collect(),
            lengths: graph.node_ids().map(length).collect(),
            largest_entry: attributes().map(|d| sizes(Values::largest, d)).fold(1.0, f64::max),
            flips: limits.global() as f64,
        }
    }

    /// What a term that reads the attributes adds; the longest sum over entries of a row.
    fn add(&self, sizes: &mut [Size], (nodes, values): (&[u32], &[f64]), columns: std::ops::Range<usize>) -> usize {
        let (mut most_read, mut longest) = (0.0f64, 0);
        for (&n, &p) in nodes.iter().zip(values) {
            let magnitudes = &self.magnitudes.row(n as usize)[columns.clone()];
            sizes.iter_mut().zip(magnitudes).for_each(|(size, magnitude)| size.magnitude += p * magnitude);
            most_read = most_read.max(p * self.scales[n as usize]);
            longest = longest.max(self.lengths[n as usize]);
        }
        for (size, largest) in sizes.iter_mut().zip(&self.largest[columns]) {
            size.magnitude += self.flips * most_read * largest;
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use nodeproof_check::Checker;

    use super::*;
    use crate::budget::{Budget, LocalBudget};
    use crate::model::{Activation, Layer, Model};
    use crate::settings::{Arithmetic, TargetClass};

    const NODES: u32 = 5;
    const ATTRIBUTES: usize = 4;

    /// Numbers of both signs, no two alike.
    fn weight(inputs: usize, units: usize, seed: usize) -> Matrix {
        let entry = |i: usize| ((i + 7 * seed + 1) as f64 * 0.618).fract() * 3.0 - 1.4;
        Matrix::from_values(inputs, units, (0..inputs * units).map(entry).collect())
    }

    /// A graph all of whose nodes see each other, with rows of 0 to 3 ones.
    fn graph(kind: AttributeKind) -> Graph {
        let edges: Vec<_> = (0..NODES).flat_map(|m| (0..m).map(move |n| (m, n))).skip(1).collect();
        let ones = [(0, 0), (0, 2), (1, 1), (2, 0), (2, 1), (2, 3), (4, 3)];
        Graph::new(NODES as usize, ATTRIBUTES, &edges, &ones).expect("ids are in range").with_kind(kind)
    }

    /// A network whose layers have terms of several propagations, a constant, and a layer that is read twice.
    fn model(kind: AttributeKind) -> Model {
        let coefficients = vec![0.5, -0.25, 0.75];
        let polynomial = Propagation::Polynomial { of: Box::new(Propagation::SymmetricGcn), coefficients };
        let propagations = vec![Propagation::SymmetricGcn, Propagation::RowMean, polynomial, Propagation::Identity];
        let term =
            |source, propagation, inputs, units, seed| Term::new(source, propagation, weight(inputs, units, seed));
        let (attributes, relu) = (Source::Attributes, Activation::Relu);
        let first = vec![term(attributes, 0, ATTRIBUTES, 3, 1), term(attributes, 2, ATTRIBUTES, 3, 2)];
        let second = vec![term(Source::Layer(0), 1, 3, 2, 3), term(attributes, 3, ATTRIBUTES, 2, 4)];
        let last = vec![
            term(Source::Layer(1), 2, 2, 3, 5),
            term(Source::Layer(0), 0, 3, 3, 6),
            term(Source::Ones, 1, 1, 3, 7),
        ];
        let layers = vec![
            Layer::new(first, vec![0.3, -0.7, 0.1], relu),
            Layer::new(second, vec![-0.2, 0.9], relu),
            Layer::new(last, vec![0.5, 0.0, -1.5], Activation::None),
        ];
        Model::new(ATTRIBUTES, propagations, layers).expect("widths fit").with_kind(kind)
    }

    /// The checker has Lemma 53 from the page, too. Where every node sees all others, both bounds are the same but for rounding.
    #[test]
    fn errors_are_those_of_the_checker() {
        for kind in [AttributeKind::Bits, AttributeKind::NormalisedRows, AttributeKind::RealValues] {
            let (graph, model) = (graph(kind), model(kind));
            let network = Network::new(&graph, &model).expect("the model fits");
            for (global, local) in [(0, 0), (1, 1), (2, 4), (9, 2)] {
                let limits = || Budget::new(global, LocalBudget::Count(local)).limits(&graph).expect("the budget fits");
                for arithmetic in [Arithmetic::F64, Arithmetic::F32, Arithmetic::Tf32, Arithmetic::Bf16] {
                    let checker = Checker::new(&graph, &model, limits(), TargetClass::Predicted).expect("it fits");
                    let checker = checker.asking(0.0, arithmetic).expect("it fits");
                    let roundoff = arithmetic.roundoff().expect("all of these round");
                    let errors = logit_errors(&network, &limits(), roundoff).expect("it fits");
                    for node in graph.node_ids() {
                        let checked = checker.logit_errors(node).expect("it is there").expect("it rounds");
                        for (error, checked) in errors.row(node.index()).iter().zip(checked) {
                            let is_same = (error / checked - 1.0).abs() < 1e-6 || *error == checked;
                            assert!(is_same, "{kind:?} {global} {arithmetic:?} {node:?}: {error:e}, {checked:e}");
                        }
                    }
                }
            }
        }
    }
}
