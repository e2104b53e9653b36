//! The ReLU between two lines, and the dual bound that follows.
//!
//! A unit whose pre-activation x lies in [lo, hi] has
//!
//! ```text
//! lower · x ≤ relu(x) ≤ upper · x + offset,
//! ```
//!
//! with `upper = 1, offset = 0` when active (lo ≥ 0), `upper = offset = 0` when dead (hi ≤ 0), and the chord
//! `upper = hi / (hi − lo), offset = −upper · lo` when unstable. The lower line has any slope in [0, 1] there; the
//! paper's default is the chord's. A unit with lo = 0 < hi is active.
//!
//! Put into the margin, layer by layer from the last, the lines make it a function that is additive in the flips: a
//! constant minus the gain of each flip. Its minimum over the budget is one greedy selection. This is the paper's dual
//! with its optimal η and ρ (theorems 2 and 3): Ψ, η and ρ together charge exactly the selected Δ.

pub(crate) mod additive;
mod any_depth;
mod derivative;
mod one_hidden;
mod pair_tables;

use std::sync::Arc;

use crate::bounds::{Bounds, LayerBounds};
use crate::budget::Limits;
use crate::dense::Matrix;
use crate::graph::{AttributeId, ClassId};
use crate::network::Network;
use crate::rounding::{Approximate, cannot_overflow};
use crate::search::{Reaches, RoughWeights, Search, Table, norm_above, round_up};
use crate::selection::Selection;
use crate::slice::{Region, Slice, SlicedFlip};

use any_depth::AnyDepth;
pub(crate) use derivative::{Derivative, TargetDerivative, Term};
use one_hidden::OneHidden;
use pair_tables::PairTables;

/// Slopes of the lower lines of unstable ReLUs (the paper's Ω): `relu(x) ≥ slope · x`.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Slopes {
    /// `hi / (hi − lo)`, the paper's default.
    #[default]
    Default,
    /// One matrix a hidden layer, nodes × units, each slope in [0, 1].
    Given(Vec<Matrix>),
}

/// The lines of one hidden layer, a row for each node of its level.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Slope of the upper line.
    upper: Matrix,
    /// Height of the upper line at 0.
    offset: Matrix,
    /// Slope of the lower line, where it is not the upper one's.
    given_lower: Option<Matrix>,
}

impl Lines {
    fn new(bounds: &LayerBounds, nodes: &[u32], given: Option<&Matrix>) -> Self {
        let (rows, units) = (bounds.lo.rows(), bounds.lo.columns());
        let chords = |row: usize| {
            let ends = bounds.lo.row(row).iter().zip(bounds.hi.row(row));
            ends.map(|(&lo, &hi)| chord(lo, hi))
        };
        let lower = |given: &Matrix| {
            Matrix::par_fill(rows, units, |row, slopes| {
                let given = given.row(nodes[row] as usize);
                for ((slope, (upper, offset)), &given) in slopes.iter_mut().zip(chords(row)).zip(given) {
                    *slope = if upper == 0.0 || offset == 0.0 { upper } else { given };
                }
            })
        };
        Self {
            upper: Matrix::par_fill(rows, units, |row, slopes| {
                slopes.iter_mut().zip(chords(row)).for_each(|(slope, (upper, _))| *slope = upper);
            }),
            offset: Matrix::par_fill(rows, units, |row, offsets| {
                offsets.iter_mut().zip(chords(row)).for_each(|(value, (_, offset))| *value = offset);
            }),
            given_lower: given.map(lower),
        }
    }

    fn lower(&self) -> &Matrix {
        self.given_lower.as_ref().unwrap_or(&self.upper)
    }
}

/// Slope and offset of the upper line of a unit in [lo, hi].
#[inline]
pub(crate) fn chord(lo: f64, hi: f64) -> (f64, f64) {
    if lo >= 0.0 {
        (1.0, 0.0)
    } else if hi <= 0.0 {
        (0.0, 0.0)
    } else {
        let slope = hi / (hi - lo);
        (slope, -slope * lo)
    }
}

/// Everything that the duals of all targets share.
#[derive(Debug)]
pub(crate) struct Relaxation<'a> {
    pub(crate) network: &'a Network<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) region: &'a Region,
    pub(crate) bounds: &'a Bounds,
    lines: Vec<Lines>,
    tables: Tables,
    rough_weights: RoughWeights,
    /// Added to every error: infinite where numbers may overflow.
    pub(crate) overflow_error: f64,
}

/// Attributes in the order in which the search visits them.
#[derive(Debug)]
enum Tables {
    /// One table for each ordered pair of classes, for one hidden layer with default slopes.
    Pairs(PairTables),
    /// One table for everything.
    Common(Table),
}

impl<'a> Relaxation<'a> {
    pub(crate) fn new(
        network: &'a Network<'a>,
        limits: &'a Limits,
        region: &'a Region,
        bounds: &'a Bounds,
        slopes: &Slopes,
    ) -> Self {
        let given = |layer: usize| match slopes {
            Slopes::Default => None,
            Slopes::Given(slopes) => Some(&slopes[layer]),
        };
        let lines = bounds.hidden.iter().enumerate();
        let lines: Vec<Lines> =
            lines.map(|(i, hidden)| Lines::new(hidden, region.level(i + 1).nodes(), given(i))).collect();
        let pairs = match slopes {
            Slopes::Default if bounds.hidden.len() == 1 => PairTables::new(network, limits, region, bounds, &lines[0]),
            _ => None,
        };
        let tables = pairs.map_or_else(|| Tables::Common(common_table(network, limits)), Tables::Pairs);
        let rough_weights = RoughWeights::new(network.layers()[0].weight());
        let overflow_error = if cannot_overflow(network, limits) { 0.0 } else { f64::INFINITY };
        Self { network, limits, region, bounds, lines, tables, rough_weights, overflow_error }
    }

    /// The place of each node of `slice` in the region, for the levels from 1 up to that of the last hidden layer, or
    /// level 1 alone without hidden layers.
    fn places(&self, slice: &Slice) -> Vec<Vec<u32>> {
        let level = |level: usize| {
            let nodes = slice.level(level).iter();
            nodes.map(|&node| self.region.level(level).place(node) as u32).collect()
        };
        (1..=self.bounds.hidden.len().max(1)).map(level).collect()
    }

    /// +1 for a flip that adds its attribute, −1 for one that removes it.
    pub(crate) fn sign(&self, slice: &Slice, (position, attribute): SlicedFlip) -> f64 {
        let node = slice.level(0)[position as usize] as usize;
        if self.network.graph().attributes().contains(node, attribute) { -1.0 } else { 1.0 }
    }

    fn search(&self) -> Search<'_> {
        Search::new(self.network, self.limits, &self.rough_weights)
    }

    /// The dual of one target after the other, with its own scratch space.
    pub(crate) fn dual(&'a self) -> Dual<'a> {
        match &self.tables {
            Tables::Pairs(tables) => Dual::OneHidden(OneHidden::new(self, tables)),
            Tables::Common(table) => Dual::AnyDepth(AnyDepth::new(self, table)),
        }
    }
}

/// Attributes by the norm of their weights: `|z · W_d| ≤ ‖z‖ ‖W_d‖`.
fn common_table(network: &Network, limits: &Limits) -> Table {
    let weight = network.layers()[0].weight();
    let norm = |attribute: usize| {
        let flippable = limits.flippable(AttributeId(attribute as u32));
        if flippable { round_up(norm_above(weight.row(attribute))) } else { Reaches::NOT_ALLOWED }
    };
    let norms = Arc::new((0..weight.rows()).map(norm).collect());
    let zeros = || vec![0.0; weight.rows()];
    Table::new(limits, Reaches { additions: zeros(), deletions: zeros(), norms })
}

/// Evaluates the dual of one slice, class pair by class pair.
pub(crate) enum Dual<'a> {
    /// The fast path.
    OneHidden(OneHidden<'a>),
    /// Any number of hidden layers, any slopes.
    AnyDepth(AnyDepth<'a>),
}

impl Dual<'_> {
    /// Starts with the target of `slice`, whose class is `y`.
    pub(crate) fn begin(&mut self, slice: &Slice, y: ClassId) {
        match self {
            Self::OneHidden(dual) => dual.begin(slice, y),
            Self::AnyDepth(_) => {}
        }
    }

    /// A lower bound on `logit_y − logit_k` over all admissible sets of flips, y being the class begun with. The flips whose gains it charges are
    /// then in [`Dual::selection`].
    pub(crate) fn lower_bound(&mut self, slice: &Slice, y: ClassId, k: ClassId) -> Approximate {
        let (bound, shared) = match self {
            Self::OneHidden(dual) => (dual.lower_bound(slice, y, k), dual.shared()),
            Self::AnyDepth(dual) => (dual.lower_bound(slice, y, k), dual.shared()),
        };
        Approximate { error: bound.error + shared.overflow_error, ..bound }
    }

    /// The derivative of `Σ weight · dual` over `terms`, duals of class `y` of the target that was begun with. Needs the
    /// default slopes.
    pub(crate) fn derivative(&mut self, slice: &Slice, y: ClassId, terms: &[Term]) -> TargetDerivative {
        match self {
            Self::OneHidden(dual) => dual.derivative(slice, y, terms),
            Self::AnyDepth(dual) => dual.derivative(slice, y, terms),
        }
    }

    /// The flips that the last bound charges: the attack that falls out of it.
    pub(crate) fn selection(&self) -> &Selection<SlicedFlip> {
        match self {
            Self::OneHidden(dual) => dual.selection(),
            Self::AnyDepth(dual) => dual.selection(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::budget::{Budget, LocalBudget};
    use crate::graph::{Graph, NodeId};
    use crate::model::{Layer, Model, Propagation};
    use crate::slice::Slicer;

    #[test]
    fn chords_by_hand() {
        assert_eq!(chord(-1.0, 3.0), (0.75, 0.75));
        assert_eq!(chord(0.0, 3.0), (1.0, 0.0), "lo = 0 is active");
        assert_eq!(chord(-3.0, 0.0), (0.0, 0.0));
        assert_eq!(chord(0.0, 0.0), (1.0, 0.0));
        let (slope, _) = chord(-f64::MIN_POSITIVE, 1e300);
        assert!(slope <= 1.0);
        assert!(chord(f64::NAN, 1.0).0.is_nan());
    }

    fn random_problem(random: &mut ChaCha8Rng) -> (Graph, Model) {
        let (nodes, attributes, hidden, classes) = (60, 80, random.random_range(1..20), 4);
        let mut pairs = |count: usize, to: u32| -> Vec<(u32, u32)> {
            (0..count).map(|_| (random.random_range(0..nodes), random.random_range(0..to))).collect()
        };
        let (edges, ones) = (pairs(120, nodes), pairs(400, attributes));
        let mut layer = |inputs: usize, outputs: usize| {
            let mut numbers = |count: usize| (0..count).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
            Layer::new(Matrix::from_values(inputs, outputs, numbers(inputs * outputs)), numbers(outputs))
        };
        let layers = vec![layer(attributes as usize, hidden), layer(hidden, classes)];
        let graph = Graph::new(nodes as usize, attributes as usize, &edges, &ones).unwrap();
        (graph, Model::new(layers, Propagation::SymmetricGcn).unwrap())
    }

    #[test]
    fn the_fast_path_equals_the_general_one() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        for seed in 0..20 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let (graph, model) = random_problem(&mut random);
            let network = Network::new(&graph, &model).unwrap();
            let budget = Budget::new(random.random_range(1..90), LocalBudget::Count(random.random_range(1..9)));
            let limits = budget.limits(&graph).unwrap();
            let nodes: Vec<NodeId> = graph.node_ids().collect();
            let region = Region::around(network.propagation(), &nodes, 2);
            let bounds = Bounds::compute(&network, &limits, &region, &pool, |_, _| ControlFlow::Continue(())).unwrap();
            let fast = Relaxation::new(&network, &limits, &region, &bounds, &Slopes::Default);
            let mut general = Relaxation::new(&network, &limits, &region, &bounds, &Slopes::Default);
            general.tables = Tables::Common(common_table(&network, &limits));
            let (mut fast, mut general) = (fast.dual(), general.dual());
            assert!(matches!((&fast, &general), (Dual::OneHidden(_), Dual::AnyDepth(_))));
            let mut slicer = Slicer::new(network.propagation(), 2);
            for &node in &nodes {
                let slice = slicer.slice(node);
                for (y, k) in [(0, 1), (1, 0), (2, 3), (3, 1)].map(|(y, k)| (ClassId(y), ClassId(k))) {
                    fast.begin(slice, y);
                    general.begin(slice, y);
                    let (one, any) = (fast.lower_bound(slice, y, k), general.lower_bound(slice, y, k));
                    let scale = one.value.abs().max(1.0);
                    assert!((one.value - any.value).abs() <= 1e-12 * scale, "{} and {}", one.value, any.value);
                    assert!((one.value - any.value).abs() <= one.error + any.error);
                    assert!((fast.selection().total() - general.selection().total()).abs() <= 1e-12 * scale);
                }
            }
        }
    }
}
