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
