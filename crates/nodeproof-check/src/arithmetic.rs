//! How far the logits that a network computes in some arithmetic may be from those without rounding, whatever flips are made and in
//! whatever order sums are added up (Lemma 53 of `docs/maths.md`).

use nodeproof_problem::settings::Roundoff;
use nodeproof_problem::{AttributeId, Graph, ModelError, NodeId, Propagation, Source, SparseMatrix, Term};

use crate::base::Base;
use crate::interval::{larger, up};
use crate::network::{Network, Region, Rows, Units};
use crate::number::{Number, add_product};
use crate::rows::Row;

/// Roundings of an entry of a propagation, and of a step or a term beside those of its sums.
const ENTRY: usize = 8;
const STEP: usize = 12;
/// Numbers that are stored on the way through a term, beside the sums of all terms so far.
const STORED: usize = 6;

/// Numbers that are stored in a step with a power of a propagation.
const EACH_STEP: usize = 4;

/// Upper bounds of the magnitude of a number and of its error.
#[derive(Clone, Copy)]
struct Size {
    magnitude: f64,
    error: f64,
}

impl Number for Size {
    const ZERO: Self = Self { magnitude: 0.0, error: 0.0 };

    fn plus(&self, other: &Self) -> Self {
        Self { magnitude: up(self.magnitude + other.magnitude), error: up(self.error + other.error) }
    }

    fn times(&self, factor: f64) -> Self {
        Self { magnitude: up(self.magnitude * factor.abs()), error: up(self.error * factor.abs()) }
    }
}

/// An arithmetic that rounds, and what it does to products with propagations.
pub(crate) struct Rounding {
    roundoff: Roundoff,
    /// Magnitudes of the entries of each propagation, and what products with it have beyond those with a matrix.
    magnitudes: Vec<SparseMatrix>,
    steps: Vec<Steps>,
    /// For each column of W the most that a flip of a bit or a value changes it by.
    widest: Vec<f64>,
}

impl Rounding {
    pub(crate) fn new(roundoff: Roundoff, network: &Network) -> Result<Self, ModelError> {
        let Network { graph, model, weight, .. } = network;
        let change = |j: usize, d: usize| up(weight.get(d, j).abs() * network.width(d));
        let widest = |j: usize| (0..weight.rows()).map(|d| change(j, d)).fold(0.0, larger);
        let widest = (0..weight.columns()).map(widest).collect();
        let propagations = model.propagations().iter();
        let magnitudes: Result<_, _> = propagations.clone().map(|of| of.absolute().matrix(graph)).collect();
        let steps: Result<_, _> = propagations.map(|of| Steps::of(of, graph)).collect();
        Ok(Self { roundoff, magnitudes: magnitudes?, steps: steps?, widest })
    }
}

/// The largest error of each logit of the target of the clean base point; infinite, or not a number, where nothing can be said.
pub(crate) fn logit_errors(clean: &Base, rounding: &Rounding) -> Vec<f64> {
    let (network, roundoff) = (clean.network, rounding.roundoff);
    let region = Region::new(network, &Rows::of(&rounding.magnitudes), clean.region.target());
    let base = Base::clean(network, &region, clean.most);
    let sums: Vec<Vec<Size>> = region
        .rows
        .iter()
        .map(|&node| {
            let row = network.row(node, &[]);
            let one = Size { magnitude: up(1.0 / network.divisor(&row) as f64), error: 0.0 };
            network.whole_sum(&row, &one)
        })
        .collect();
    let flips = Size { magnitude: clean.most as f64, error: 0.0 };
    let mut layers: Vec<Units<Size>> = Vec::new();
    for (i, layer) in network.layers().iter().enumerate() {
        let sent = sums.iter().enumerate().map(|(n, sum)| (n, &sum[..]));
        let mut units = region.arrive(network, i, sent, &layers);
        for ((units, moved), node) in units.iter_mut().zip(moved(&base, i, &rounding.widest)).zip(&region.nodes[i]) {
            units.resize(layer.units(), Size::ZERO);
            let (mut operations, mut stored, mut floor) = (0.0, 0.0, 0.0);
            for term in layer.terms() {
                let (nodes, entries) = rounding.magnitudes[term.propagation()].row(node.index());
                let (width, widest) = read(&base, term, nodes, &layers);
                if term.source() == Source::Ones {
                    let sum = entries.iter().fold(0.0, |sum, p| up(sum + p));
                    add_product(units, &[Size { magnitude: sum, error: 0.0 }], term.weight());
                }
                let more = rounding.steps[term.propagation()];
                let of_weights = up(1.0 + largest(term.weight().values().iter()));
                let product = up(up(more.growth * of_weights) * up(1.0 + widest));
                operations = larger(operations, up((nodes.len() + width) as f64 + more.operations));
                stored = larger(stored, more.stored);
                let numbers = up(up((nodes.len() + 1) as f64 + more.operations) * (width + 1) as f64);
                floor = up(floor + up(up(8.0 * numbers) * product));
            }
            operations = up(operations + (layer.terms().len() + ENTRY + STEP) as f64);
            stored = up(stored + (layer.terms().len() + STORED) as f64);
            let x = up(up(operations * roundoff.operation) + up(stored * roundoff.stored));
            let gamma = if x < 0.5 && floor < roundoff.largest { up(x / (1.0 - x)) } else { f64::INFINITY };
            for ((unit, bias), moved) in units.iter_mut().zip(layer.bias()).zip(moved) {
                *unit = unit.plus(&Size { magnitude: bias.abs(), error: 0.0 }).plus(&flips.times(moved));
                let grown = up(up(unit.error * up(1.0 + gamma)) + up(gamma * unit.magnitude));
                unit.error = up(grown + up(floor * roundoff.smallest));
            }
        }
        layers.push(units);
    }
    layers.pop().map_or(Vec::new(), |last| last[0].iter().map(|size| size.error).collect())
}

/// The most that one flip moves what each unit of a layer makes of the attributes.
fn moved(base: &Base, layer: usize, widest: &[f64]) -> Units<f64> {
    let (network, region) = (base.network, base.region);
    let scale = |row: usize| match base.capacities[row] {
        0 => 0.0,
        _ if network.graph.kind().is_normalised() => Row::new(base, row).scale(),
        _ => 1.0,
    };
    let scales: Vec<f64> = (0..region.rows.len()).map(scale).collect();
    let of = &network.layers()[layer];
    let mut moved = vec![vec![0.0; of.units()]; region.nodes[layer].len()];
    for (_, local) in
        of.terms().iter().zip(&region.terms[layer]).filter(|(term, _)| term.source() == Source::Attributes)
    {
        // The most by which a row is read by each node, times what the row is scaled by.
        let mut most = vec![0.0; moved.len()];
        for (readers, scale) in local.readers.iter().zip(&scales) {
            readers.iter().for_each(|&(m, p)| most[m] = larger(most[m], up(p.abs() * scale)));
        }
        for (moved, most) in moved.iter_mut().zip(&most) {
            let widest = &widest[local.columns.clone()];
            moved.iter_mut().zip(widest).for_each(|(x, w)| *x = up(*x + up(most * w)));
        }
    }
    moved
}

fn largest<'v>(values: impl Iterator<Item = &'v f64>) -> f64 {
    values.fold(0.0, |most, value| larger(most, value.abs()))
}

/// How many numbers a sum over what a term reads of one node has, and the largest of them.
fn read(base: &Base, term: &Term, nodes: &[u32], layers: &[Units<Size>]) -> (usize, f64) {
    let (graph, limits) = (base.network.graph, &base.network.limits);
    match term.source() {
        Source::Ones => (1, 1.0),
        Source::Layer(source) => {
            let sizes = layers[source].iter().flatten().map(|size| up(size.magnitude + size.error));
            (base.network.layers()[source].units(), sizes.fold(0.0, larger))
        }
        Source::Attributes => {
            let nodes = nodes.iter().map(|&n| NodeId(n));
            let longest = nodes.map(|node| graph.row_length(node) + limits.local(node).min(base.most)).max();
            let times = if graph.kind().is_normalised() { 2 } else { 1 };
            let size = |d: u32| graph.values().map_or(1.0, |values| values.largest(AttributeId(d)));
            (times * longest.unwrap_or(0), (0..graph.attribute_count() as u32).map(size).fold(1.0, larger))
        }
    }
}

/// What a propagation that is computed from another one, step by step, has beyond a matrix: more operations, more numbers that are stored,
/// and that no number on the way is larger than `growth` times what is read, nor an entry of a matrix.
#[derive(Clone, Copy)]
struct Steps {
    operations: f64,
    stored: f64,
    growth: f64,
}

impl Steps {
    fn of(propagation: &Propagation, graph: &Graph) -> Result<Self, ModelError> {
        let Propagation::Polynomial { of, coefficients } = propagation else {
            let matrix = propagation.absolute().matrix(graph)?;
            return Ok(Self { operations: 0.0, stored: 0.0, growth: up(1.0 + largest(matrix.values().iter())) });
        };
        let (within, matrix) = (Self::of(of, graph)?, of.absolute().matrix(graph)?);
        let rows = || (0..matrix.rows()).map(|row| matrix.row(row));
        let longest = rows().map(|(columns, _)| columns.len()).max().unwrap_or(0);
        let sum = rows().map(|(_, values)| values.iter().fold(0.0, |sum, p| up(sum + p))).fold(0.0, larger);
        let of_powers = coefficients.iter().fold(1.0, |power, _| up(power * up(1.0 + sum)));
        let of_coefficients = up(1.0 + largest(coefficients.iter()));
        Ok(Self {
            operations: up(coefficients.len() as f64 * up((longest + ENTRY + STEP) as f64 + within.operations)),
            stored: up(coefficients.len() as f64 * up(EACH_STEP as f64 + within.stored)),
            growth: up(up(within.growth * of_powers) * of_coefficients),
        })
    }
}

#[cfg(test)]
mod tests {
    use nodeproof_problem::{
        Activation, Arithmetic, AttributeKind, Budget, Direction, Layer, Limits, Matrix, Model, Values, Weight,
    };

    use super::*;

    const NODES: usize = 4;
    const ATTRIBUTES: usize = 5;

    /// Numbers of both signs, no two alike.
    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i + 11 * seed + 1) as f64 * 0.618_034).fract() * 3.0 - 1.4).collect()
    }

    fn graphs() -> [Graph; 3] {
        let edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        let ones = [(0, 0), (0, 1), (0, 2), (1, 4), (2, 0), (2, 3), (3, 1), (3, 2), (3, 3), (3, 4)];
        let bits = Graph::new(NODES, ATTRIBUTES, &edges, &ones).unwrap();
        let values = Values::new(Matrix::from_values(NODES, ATTRIBUTES, numbers(NODES * ATTRIBUTES, 3))).unwrap();
        let ranges = (0..ATTRIBUTES).map(|d| (-2.0 - d as f64, 1.75)).collect();
        let values = Graph::new(NODES, ATTRIBUTES, &edges, &[]).unwrap().with_values(values).unwrap();
        [bits.clone(), bits.with_kind(AttributeKind::NormalisedRows), values.with_ranges(ranges).unwrap()]
    }

    /// Terms of several propagations, one of them a polynomial of a polynomial, weights above and below 1, a constant, and a layer that is
    /// read twice.
    fn model(kind: AttributeKind) -> Model {
        let polynomial = |of, coefficients: &[f64]| Propagation::Polynomial {
            of: Box::new(of),
            coefficients: coefficients.to_vec(),
        };
        let inner = polynomial(Propagation::RowMean, &[0.25, 1.5]);
        let propagations = vec![
            Propagation::Adjacency,
            Propagation::SymmetricGcn,
            polynomial(inner, &[0.5, -2.5, 0.75]),
            Propagation::Identity,
        ];
        let term = |source, propagation, inputs: usize, units: usize, scale: f64, seed| {
            let weight = numbers(inputs * units, seed).into_iter().map(|w| scale * w).collect();
            Term::new(source, propagation, Matrix::from_values(inputs, units, weight))
        };
        let attributes = Source::Attributes;
        let layers = vec![
            Layer::new(
                vec![term(attributes, 0, ATTRIBUTES, 3, 5.0, 1), term(attributes, 2, ATTRIBUTES, 3, 0.5, 2)],
                numbers(3, 1),
                Activation::Relu,
            ),
            Layer::new(
                vec![term(Source::Layer(0), 1, 3, 2, 1.0, 3), term(attributes, 3, ATTRIBUTES, 2, 2.0, 4)],
                numbers(2, 2),
                Activation::LeakyRelu(0.5),
            ),
            Layer::new(
                vec![
                    term(Source::Layer(1), 2, 2, 3, 1.0, 5),
                    term(Source::Layer(0), 0, 3, 3, 0.25, 6),
                    term(Source::Ones, 0, 1, 3, 7.0, 7),
                ],
                numbers(3, 3),
                Activation::None,
            ),
        ];
        Model::new(ATTRIBUTES, propagations, layers).unwrap().with_kind(kind)
    }

    /// `K`, `L` and `G` of a propagation in Lemma 53.
    fn of_steps(propagation: &Propagation, graph: &Graph) -> (f64, f64, f64) {
        let entries = |of: &Propagation| -> Vec<Vec<f64>> {
            let matrix = of.absolute().matrix(graph).unwrap();
            (0..NODES).map(|row| matrix.row(row).1.to_vec()).collect()
        };
        let most = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(0.0, f64::max);
        let Propagation::Polynomial { of, coefficients } = propagation else {
            return (0.0, 0.0, 1.0 + most(&mut entries(propagation).into_iter().flatten()));
        };
        let (k, l, g) = of_steps(of, graph);
        let (c, rows) = (coefficients.len() as f64, entries(of));
        let longest = most(&mut rows.iter().map(|row| row.len() as f64));
        let sum = most(&mut rows.iter().map(|row| row.iter().sum()));
        let grown = g * (1.0 + sum).powf(c) * (1.0 + most(&mut coefficients.iter().map(|x| x.abs())));
        (c * (longest + 20.0 + k), c * (4.0 + l), grown)
    }

    /// What one flip of a row adds at most, beside the largest change of a weight.
    fn of_flip(graph: &Graph, limits: &Limits, node: NodeId) -> f64 {
        let (most, ones) = (limits.local(node).min(limits.global()), graph.row_length(node));
        match graph.kind() {
            _ if most == 0 => 0.0,
            AttributeKind::NormalisedRows if limits.deletions() => 2.0 / ones.saturating_sub(most).max(1) as f64,
            AttributeKind::NormalisedRows => 2.0 / ones as f64,
            _ => 1.0,
        }
    }

    /// Lemma 53 as the page has it, where every node sees all others.
    fn lemma(graph: &Graph, model: &Model, limits: &Limits, of: Roundoff, target: NodeId) -> Vec<f64> {
        let magnitudes: Vec<_> = model.propagations().iter().map(|of| of.absolute().matrix(graph).unwrap()).collect();
        let width = |d: usize| graph.values().map_or(1.0, |values| values.widest(AttributeId(d as u32)));
        // S and the error of each unit, by layer and node.
        let mut layers: Vec<Vec<Vec<(f64, f64)>>> = Vec::new();
        for layer in model.layers() {
            let unit = |m: usize, k: usize| {
                let (mut s, mut e, mut f) = (layer.bias()[k].abs(), 0.0, 0.0);
                let (mut operations, mut stored): (f64, f64) = (0.0, 0.0);
                for term in layer.terms() {
                    let Weight::Dense(weight) = term.weight() else { panic!("all weights are dense") };
                    let (columns, entries) = magnitudes[term.propagation()].row(m);
                    let row = || columns.iter().map(|&n| n as usize).zip(entries.iter().copied());
                    let at = |j: usize| weight.get(j, k).abs();
                    let (w, h) = match term.source() {
                        Source::Ones => {
                            s += row().map(|(_, p)| p * at(0)).sum::<f64>();
                            (1, 1.0)
                        }
                        Source::Layer(source) => {
                            for ((n, p), j) in row().flat_map(|of| (0..weight.rows()).map(move |j| (of, j))) {
                                s += p * layers[source][n][j].0 * at(j);
                                e += p * layers[source][n][j].1 * at(j);
                            }
                            let largest = layers[source].iter().flatten().map(|(s, e)| s + e).fold(0.0, f64::max);
                            (weight.rows(), largest)
                        }
                        Source::Attributes => {
                            let is_normalised = graph.kind() == AttributeKind::NormalisedRows;
                            for (n, p) in row() {
                                let node = NodeId(n as u32);
                                let divisor = if is_normalised { graph.row_length(node).max(1) as f64 } else { 1.0 };
                                s += graph
                                    .entries_of(node)
                                    .map(|(d, x)| p * x.abs() * at(d.index()) / divisor)
                                    .sum::<f64>();
                            }
                            let flips =
                                row().map(|(n, p)| p * of_flip(graph, limits, NodeId(n as u32))).fold(0.0, f64::max);
                            let widest = (0..ATTRIBUTES).map(|d| at(d) * width(d)).fold(0.0, f64::max);
                            s += limits.global() as f64 * flips * widest;
                            let length = |n: usize| {
                                let node = NodeId(n as u32);
                                graph.row_length(node) + limits.local(node).min(limits.global())
                            };
                            let longest = row().map(|(n, _)| length(n)).max().unwrap();
                            let size =
                                |d: usize| graph.values().map_or(1.0, |values| values.largest(AttributeId(d as u32)));
                            let largest = (0..ATTRIBUTES).map(size).fold(1.0, f64::max);
                            (if is_normalised { 2 * longest } else { longest }, largest)
                        }
                    };
                    let (k, l, g) = of_steps(&model.propagations()[term.propagation()], graph);
                    let (r, w) = (columns.len() as f64, w as f64);
                    operations = operations.max(r + w + k);
                    stored = stored.max(l);
                    let largest = weight.values().iter().fold(0.0, |most: f64, w| most.max(w.abs()));
                    f += 8.0 * (r + 1.0 + k) * (w + 1.0) * g * (1.0 + largest) * (1.0 + h);
                }
                let terms = layer.terms().len() as f64;
                let x = (terms + 20.0 + operations) * of.operation + (terms + 6.0 + stored) * of.stored;
                let gamma = if x < 0.5 && f < of.largest { x / (1.0 - x) } else { f64::INFINITY };
                (s, (1.0 + gamma) * e + gamma * s + of.smallest * f)
            };
            let units = layer.bias().len();
            layers.push((0..NODES).map(|m| (0..units).map(|k| unit(m, k)).collect()).collect());
        }
        layers.pop().unwrap().swap_remove(target.index()).into_iter().map(|(_, error)| error).collect()
    }

    #[test]
    fn errors_are_those_of_the_lemma() {
        let usual = Arithmetic::F32.roundoff().unwrap();
        let roundoff = |operation, stored, smallest, largest| {
            let mut of = usual;
            (of.operation, of.stored, of.smallest, of.largest) = (operation, stored, smallest, largest);
            of
        };
        // Each part of the lemma by itself, then some that are too much, but for the first.
        let roundoffs = [
            usual,
            roundoff(1e-4, 0.0, 0.0, f64::MAX),
            roundoff(0.0, 1e-4, 0.0, f64::MAX),
            roundoff(0.0, 0.0, 1.0, f64::MAX),
            roundoff(8e-4, 8e-4, 1e-9, f64::MAX),
            roundoff(0.03, 0.0, 0.0, f64::MAX),
            roundoff(0.0, 0.0, 1.0, 1e5),
        ];
        let mut infinite = 0;
        for graph in graphs() {
            let model = model(graph.kind());
            let budgets = [
                Budget::new(0, 0.into()),
                Budget::new(1, 1.into()).protect_nodes([NodeId(3)]),
                Budget::new(3, 2.into()).direction(Direction::AddOnly),
                Budget::new(9, 4.into()),
            ];
            for (budget, roundoff) in budgets.iter().flat_map(|budget| roundoffs.iter().map(move |of| (budget, *of))) {
                let limits = || budget.limits(&graph).unwrap();
                let network = Network::new(&graph, &model, limits()).unwrap();
                let rounding = Rounding::new(roundoff, &network).unwrap();
                for node in graph.node_ids() {
                    let region = Region::new(&network, &Rows::of(&network.matrices), node);
                    let errors = logit_errors(&Base::clean(&network, &region, network.limits.global()), &rounding);
                    for (error, expected) in errors.iter().zip(lemma(&graph, &model, &limits(), roundoff, node)) {
                        let is_none = !error.is_finite() && !expected.is_finite();
                        let is_same = is_none || *error == expected || (error / expected - 1.0).abs() < 1e-9;
                        assert!(is_same, "{:?} {budget:?} {roundoff:?}: {error:e}, {expected:e}", graph.kind());
                        infinite += usize::from(is_none);
                    }
                }
            }
        }
        assert!((200..600).contains(&infinite), "{infinite}");
    }
}
