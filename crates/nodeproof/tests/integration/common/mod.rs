//! Tiny random problems, every admissible set of flips, and a forward pass that shares no code with the library.

pub mod arrays;
pub mod exact;
pub mod nasty;
pub mod seed;

use std::fmt;

use nodeproof::{
    Activation, AttributeKind, Budget, Certificate, Certifier, ClassId, Direction, Engine, Flip, Graph, GraphOptions,
    Layer, LocalBudget, Matrix, Model, NodeId, Propagation, Slopes, Source, SparseMatrix, TargetClass, Term, Values,
    Weight,
};
use proptest::collection::vec;
use proptest::prelude::*;

use exact::{Dyadic, Number};

/// The propagation of a [`Problem`].
#[derive(Clone, PartialEq)]
pub enum Spread {
    Identity,
    Symmetric,
    RowNormalised,
    RowMean,
    Adjacency,
    /// Coefficients, constant one first.
    Polynomial(Box<Spread>, Vec<f64>),
    /// Triplets of any matrix.
    Custom(Vec<(u32, u32, f64)>),
}

/// One layer of a [`Problem`].
#[derive(Clone, PartialEq)]
pub struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    pub weight: Vec<f64>,
    pub bias: Vec<f64>,
}

/// A network of layers of terms.
#[derive(Clone, PartialEq)]
pub struct Terms {
    pub spreads: Vec<Spread>,
    pub layers: Vec<LayerOfTerms>,
}

#[derive(Clone, PartialEq)]
pub struct LayerOfTerms {
    /// What each reads, its place in `spreads`, and its weight: all numbers of a matrix, or a factor.
    pub terms: Vec<(Source, usize, Result<Vec<f64>, f64>)>,
    pub bias: Vec<f64>,
    pub activation: Activation,
}

/// A graph, a model and a budget, all small. Its `Debug` output is a Rust expression: paste it into a test to replay.
#[derive(Clone, PartialEq)]
pub struct Problem {
    pub nodes: usize,
    pub attributes: usize,
    pub edges: Vec<(u32, u32)>,
    pub keep_self_loops: bool,
    pub ones: Vec<(u32, u32)>,
    pub kind: AttributeKind,
    /// In place of ones.
    pub values: Option<RealValues>,
    pub labels: Vec<u32>,
    pub certify_labels: bool,
    pub spread: Spread,
    pub layers: Vec<Dense>,
    /// In place of spread and layers.
    pub terms: Option<Terms>,
    pub global: u32,
    pub local: u32,
    pub direction: Direction,
    pub local_at: Vec<(u32, u32)>,
    pub protected_nodes: Vec<u32>,
    pub protected_attributes: Vec<u32>,
}

/// Attributes that are real values.
#[derive(Clone, PartialEq)]
pub struct RealValues {
    /// Row by row.
    pub entries: Vec<f64>,
    pub ranges: Vec<(f64, f64)>,
    /// So many values of each range are tried, its ends included.
    pub tried: usize,
}

impl fmt::Debug for RealValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, ranges) = (flat(&self.entries), flat(&self.ranges));
        write!(f, "RealValues {{ entries: vec!{entries}, ranges: vec!{ranges}, tried: {} }}", self.tried)
    }
}

impl fmt::Debug for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => write!(f, "Spread::Identity"),
            Self::Symmetric => write!(f, "Spread::Symmetric"),
            Self::RowNormalised => write!(f, "Spread::RowNormalised"),
            Self::RowMean => write!(f, "Spread::RowMean"),
            Self::Adjacency => write!(f, "Spread::Adjacency"),
            Self::Polynomial(of, coefficients) => {
                write!(f, "Spread::Polynomial(Box::new({of:?}), vec!{})", flat(coefficients))
            }
            Self::Custom(triplets) => write!(f, "Spread::Custom(vec!{})", flat(triplets)),
        }
    }
}

impl fmt::Debug for Dense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (weight, bias) = (flat(&self.weight), flat(&self.bias));
        write!(
            f,
            "Dense {{ inputs: {}, outputs: {}, weight: vec!{weight}, bias: vec!{bias} }}",
            self.inputs, self.outputs
        )
    }
}

impl fmt::Debug for LayerOfTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LayerOfTerms {{ terms: vec![")?;
        for (source, spread, weight) in &self.terms {
            let weight = match weight {
                Ok(values) => format!("Ok(vec!{})", flat(values)),
                Err(factor) => format!("Err({factor:?})"),
            };
            write!(f, "(Source::{source:?}, {spread}, {weight}), ")?;
        }
        write!(f, "], bias: vec!{}, activation: Activation::{:?} }}", flat(&self.bias), self.activation)
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Terms {{ spreads: vec!{}, layers: vec!{} }}", flat(&self.spreads), flat(&self.layers))
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Problem {{ nodes: {}, attributes: {},", self.nodes, self.attributes)?;
        writeln!(f, "    edges: vec!{}, keep_self_loops: {},", flat(&self.edges), self.keep_self_loops)?;
        writeln!(f, "    ones: vec!{}, kind: AttributeKind::{:?},", flat(&self.ones), self.kind)?;
        writeln!(f, "    values: {},", flat(&self.values))?;
        writeln!(f, "    labels: vec!{},", flat(&self.labels))?;
        writeln!(f, "    certify_labels: {}, spread: {:?},", self.certify_labels, self.spread)?;
        writeln!(f, "    layers: vec!{}, terms: {:?},", flat(&self.layers), self.terms)?;
        let direction = self.direction;
        writeln!(f, "    global: {}, local: {}, direction: Direction::{direction:?},", self.global, self.local)?;
        writeln!(
            f,
            "    local_at: vec!{}, protected_nodes: vec!{},",
            flat(&self.local_at),
            flat(&self.protected_nodes)
        )?;
        write!(f, "    protected_attributes: vec!{} }}", flat(&self.protected_attributes))
    }
}

/// On one line, whatever the formatter asks for.
fn flat(value: &impl fmt::Debug) -> String {
    format!("{value:?}")
}

impl Problem {
    /// One isolated node with `attributes` attributes, none set, propagation [1], and these layers; no flips allowed.
    pub fn one_node(attributes: usize, layers: Vec<Dense>) -> Self {
        Self {
            nodes: 1,
            attributes,
            edges: vec![],
            keep_self_loops: false,
            ones: vec![],
            kind: AttributeKind::Bits,
            values: None,
            labels: vec![0],
            certify_labels: true,
            spread: Spread::RowNormalised,
            layers,
            terms: None,
            global: 0,
            local: attributes as u32,
            direction: Direction::Both,
            local_at: vec![],
            protected_nodes: vec![],
            protected_attributes: vec![],
        }
    }

    pub fn graph(&self) -> Graph {
        let options = GraphOptions::new().keep_self_loops(self.keep_self_loops);
        let graph = Graph::with_options(self.nodes, self.attributes, &self.edges, &self.ones, options).unwrap();
        let graph = match &self.values {
            None => graph.with_kind(self.kind),
            Some(RealValues { entries, ranges, .. }) => {
                let entries = Matrix::from_values(self.nodes, self.attributes, entries.clone());
                graph.with_values(Values::new(entries).unwrap().with_ranges(ranges.clone()).unwrap()).unwrap()
            }
        };
        graph.with_labels(self.labels.iter().map(|&label| Some(ClassId(label))).collect()).unwrap()
    }

    pub fn model(&self) -> Model {
        if let Some(terms) = &self.terms {
            return terms.model(self.nodes, self.attributes).with_kind(self.kind);
        }
        let layers = self
            .layers
            .iter()
            .map(|layer| (Matrix::from_values(layer.inputs, layer.outputs, layer.weight.clone()), layer.bias.clone()));
        Model::gcn(layers.collect(), self.spread.propagation(self.nodes)).unwrap().with_kind(self.kind)
    }

    pub fn budget(&self) -> Budget {
        let mut budget = Budget::new(self.global, LocalBudget::Count(self.local)).direction(self.direction);
        for &(node, count) in &self.local_at {
            budget = budget.local_at(NodeId(node), count);
        }
        let attributes = self.protected_attributes.iter().map(|&attribute| attribute.into());
        budget.protect_nodes(self.protected_nodes.iter().map(|&node| node.into())).protect_attributes(attributes)
    }

    pub fn target_class(&self) -> TargetClass {
        if self.certify_labels { TargetClass::Label } else { TargetClass::Predicted }
    }

    /// Layers with an activation.
    pub fn hidden_layers(&self) -> usize {
        match &self.terms {
            Some(terms) => terms.layers.iter().filter(|layer| layer.activation != Activation::None).count(),
            None => self.layers.len() - 1,
        }
    }

    /// What the library says of all nodes.
    pub fn certify(&self, slopes: Slopes) -> Vec<Certificate> {
        self.certify_with(Engine::Fast, slopes)
    }

    /// What an engine of the library says of all nodes, which would be believed if it came from a file.
    pub fn certify_with(&self, engine: Engine, slopes: Slopes) -> Vec<Certificate> {
        self.certify_by(|certifier| certifier.engine(engine).slopes(slopes))
    }

    /// The same with whatever `set` sets.
    pub fn certify_by(&self, set: impl FnOnce(Certifier) -> Certifier) -> Vec<Certificate> {
        let (graph, model) = (self.graph(), self.model());
        let nodes: Vec<_> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap().budget(self.budget());
        let certifier = set(certifier.target_class(self.target_class()).threads(1));
        let certificates = certifier.certify(&nodes).unwrap();
        let recheck = certifier.recheck().unwrap();
        certificates.iter().for_each(|certificate| assert_eq!(recheck.certificate(certificate), Ok(())));
        certificates
    }

    /// The attributes as a dense matrix.
    pub fn x(&self) -> Vec<Vec<f64>> {
        if let Some(values) = &self.values {
            return values.entries.chunks(self.attributes).map(<[f64]>::to_vec).collect();
        }
        let mut x = vec![vec![0.0; self.attributes]; self.nodes];
        for &(node, attribute) in &self.ones {
            x[node as usize][attribute as usize] = 1.0;
        }
        x
    }

    /// What an attribute of this value may become, as far as it is tried.
    fn becomes(&self, attribute: usize, from: f64) -> Vec<f64> {
        let tried = match &self.values {
            None => vec![1.0 - from],
            Some(RealValues { ranges, tried, .. }) => {
                let (low, high) = ranges[attribute];
                let steps = tried - 1;
                let between = (1..steps).map(|step| low + (high - low) * step as f64 / steps as f64);
                std::iter::once(low).chain(between.filter(|value| (low..high).contains(value))).chain([high]).collect()
            }
        };
        let wrong_way = |to: f64| match self.direction {
            Direction::AddOnly => to < from,
            Direction::DeleteOnly => to > from,
            _ => false,
        };
        let mut tried: Vec<f64> = tried.into_iter().filter(|&to| to != from && !wrong_way(to)).collect();
        tried.dedup();
        tried
    }

    /// Every flip that is allowed on its own and, per node, how many are allowed together: from the description of the
    /// problem, not from the library's `Limits`.
    pub fn allowed(&self) -> (Vec<Flip>, Vec<usize>) {
        let mut local = vec![self.local as usize; self.nodes];
        for &(node, count) in &self.local_at {
            local[node as usize] = count as usize;
        }
        for &node in &self.protected_nodes {
            local[node as usize] = 0;
        }
        let x = self.x();
        let mut flips = Vec::new();
        for (node, row) in x.iter().enumerate() {
            for (attribute, &from) in row.iter().enumerate() {
                if local[node] == 0 || self.protected_attributes.contains(&(attribute as u32)) {
                    continue;
                }
                let (node, id) = ((node as u32).into(), (attribute as u32).into());
                flips.extend(self.becomes(attribute, from).into_iter().map(|to| Flip { node, attribute: id, to }));
            }
        }
        (flips, local)
    }

    /// The same problem with the global budget lowered until there are at most `cap` admissible sets, and those, by size.
    pub fn enumerable(mut self, cap: usize) -> (Self, Vec<Vec<Flip>>) {
        let (flips, local) = self.allowed();
        let mut sets: Vec<Vec<Flip>> = vec![vec![]];
        // Each set is extended by every flip behind its last one that the budget still has room for.
        let mut next = 0;
        let mut first_flip = vec![0];
        while next < sets.len() && sets[next].len() < self.global as usize {
            for (i, &flip) in flips.iter().enumerate().skip(first_flip[next]) {
                let at_node = sets[next].iter().filter(|other: &&Flip| other.node == flip.node);
                let is_there = at_node.clone().any(|other| other.attribute == flip.attribute);
                if at_node.count() < local[flip.node.index()] && !is_there {
                    let mut set = sets[next].clone();
                    set.push(flip);
                    sets.push(set);
                    first_flip.push(i + 1);
                }
            }
            if sets.len() > cap {
                // All of the next size are too many.
                let size = sets[next].len();
                sets.retain(|set| set.len() <= size);
                self.global = size as u32;
                break;
            }
            next += 1;
        }
        (self, sets)
    }

    /// The numbers of the problem as the library stores them, in another arithmetic.
    pub fn world<T: Number>(&self) -> World<T> {
        let (graph, model) = (self.graph(), self.model());
        let propagation = |propagation: &Propagation| {
            let matrix = propagation.matrix(&graph).unwrap();
            let entries =
                |m| matrix.row(m).0.iter().zip(matrix.row(m).1).map(|(&n, &p)| (n as usize, T::of(p))).collect();
            (0..self.nodes).map(entries).collect()
        };
        let term = |(term, units): (&Term, usize)| {
            let width = model.width(term.source());
            let entry = |input: usize, unit: usize| match term.weight() {
                Weight::Dense(weight) => weight.get(input, unit),
                Weight::Scalar(factor) => factor * f64::from(u8::from(input == unit)),
            };
            let rows = (0..width).map(|input| (0..units).map(|unit| T::of(entry(input, unit))).collect());
            WorldTerm { source: term.source(), propagation: term.propagation(), weight: rows.collect() }
        };
        let divided = self.kind == AttributeKind::NormalisedRows;
        // All numbers from 1 to that of the attributes divide it.
        let unit = if divided && T::EXACT { (1..=self.attributes as u64).product::<u64>() as f64 } else { 1.0 };
        let layer = |layer: &Layer| WorldLayer {
            terms: layer.terms().iter().map(|of| term((of, layer.units()))).collect(),
            bias: layer.bias().iter().map(|&b| T::of(b).times(&T::of(unit))).collect(),
            slope: T::of(match layer.activation() {
                Activation::None => 1.0,
                Activation::Relu => 0.0,
                Activation::LeakyRelu(slope) => slope,
            }),
        };
        World {
            propagations: model.propagations().iter().map(propagation).collect(),
            layers: model.layers().iter().map(layer).collect(),
            x: self.x(),
            largest: self
                .values
                .as_ref()
                .map(|values| values.ranges.iter().map(|r| r.0.abs().max(r.1.abs())).collect()),
            divided,
            unit,
        }
    }

    /// Per node the largest magnitude that any intermediate result can have, and at least 1: tolerances are relative
    /// to it.
    pub fn scales(&self) -> Vec<f64> {
        self.world::<f64>().scales()
    }
}

impl Spread {
    fn propagation(&self, nodes: usize) -> Propagation {
        match self {
            Self::Identity => Propagation::Identity,
            Self::Symmetric => Propagation::SymmetricGcn,
            Self::RowNormalised => Propagation::RowNormalised,
            Self::RowMean => Propagation::RowMean,
            Self::Adjacency => Propagation::Adjacency,
            Self::Polynomial(of, coefficients) => {
                Propagation::Polynomial { of: Box::new(of.propagation(nodes)), coefficients: coefficients.clone() }
            }
            Self::Custom(triplets) => Propagation::Custom(SparseMatrix::from_triplets(nodes, nodes, triplets)),
        }
    }
}

impl Terms {
    fn model(&self, nodes: usize, attributes: usize) -> Model {
        let layer = |layer: &LayerOfTerms| {
            let units = layer.bias.len();
            let weight = |weight: &Result<Vec<f64>, f64>| match weight {
                Ok(values) => Weight::Dense(Matrix::from_values(values.len() / units, units, values.clone())),
                Err(factor) => Weight::Scalar(*factor),
            };
            let terms = layer.terms.iter().map(|(source, spread, of)| Term::new(*source, *spread, weight(of)));
            Layer::new(terms.collect(), layer.bias.clone(), layer.activation)
        };
        let propagations = self.spreads.iter().map(|spread| spread.propagation(nodes)).collect();
        Model::new(attributes, propagations, self.layers.iter().map(layer).collect()).unwrap()
    }
}

/// A problem in the arithmetic of `T`.
pub struct World<T> {
    /// Per propagation and node the nodes that it aggregates, with their factors.
    pub propagations: Vec<Vec<Vec<(usize, T)>>>,
    pub layers: Vec<WorldLayer<T>>,
    pub x: Vec<Vec<f64>>,
    /// The largest magnitude of each attribute's range, where they have any.
    pub largest: Option<Vec<f64>>,
    /// Whether the ones of a row are divided by their number.
    pub divided: bool,
    /// All numbers are carried times this, so that there is nothing to divide where they are exact.
    pub unit: f64,
}

/// A layer of a [`World`].
#[derive(Clone)]
pub struct WorldLayer<T> {
    pub terms: Vec<WorldTerm<T>>,
    pub bias: Vec<T>,
    /// That of the activation below 0.
    pub slope: T,
}

/// A term of a [`World`].
#[derive(Clone)]
pub struct WorldTerm<T> {
    pub source: Source,
    pub propagation: usize,
    /// By input.
    pub weight: Vec<Vec<T>>,
}

impl World<Dyadic> {
    /// Whether a margin of this world is at least `bound`; −∞ is no bound at all.
    pub fn is_at_least(&self, margin: &Dyadic, bound: f64) -> bool {
        assert!(!bound.is_nan() && bound < f64::INFINITY, "a lower bound is {bound}");
        bound == f64::NEG_INFINITY || *margin >= Dyadic::of(bound).times(&Dyadic::of(self.unit))
    }

    /// Whether a margin of this world is at most `bound`; ∞ is no bound at all.
    pub fn is_at_most(&self, margin: &Dyadic, bound: f64) -> bool {
        assert!(!bound.is_nan() && bound > f64::NEG_INFINITY, "an upper bound is {bound}");
        bound == f64::INFINITY || *margin <= Dyadic::of(bound).times(&Dyadic::of(self.unit))
    }
}

impl World<f64> {
    /// As [`Problem::scales`].
    pub fn scales(mut self) -> Vec<f64> {
        for layer in &mut self.layers {
            let weights = layer.terms.iter_mut().flat_map(|term| term.weight.iter_mut().flatten());
            weights.chain(&mut layer.bias).for_each(|value| *value = value.abs());
        }
        self.propagations.iter_mut().flatten().flatten().for_each(|(_, p)| *p = p.abs());
        for row in &mut self.x {
            for (d, x) in row.iter_mut().enumerate() {
                *x = self.largest.as_ref().map_or(1.0, |largest| x.abs().max(largest[d]));
            }
        }
        self.divided = false;
        self.logits(&[]).iter().map(|row| row.iter().fold(1.0, |a: f64, &b| a.max(2.0 * b))).collect()
    }
}

impl<T: Number> World<T> {
    /// The network that ends with a layer: its logits are the pre-activations there.
    pub fn cut(&self, layer: usize) -> Self {
        let mut layers = self.layers[..=layer].to_vec();
        layers[layer].slope = T::of(1.0);
        let (propagations, x, largest) = (self.propagations.clone(), self.x.clone(), self.largest.clone());
        Self { propagations, layers, x, largest, divided: self.divided, unit: self.unit }
    }

    /// The logits of all nodes once `flips` are made.
    pub fn logits(&self, flips: &[Flip]) -> Vec<Vec<T>> {
        let mut x = self.x.clone();
        for flip in flips {
            x[flip.node.index()][flip.attribute.index()] = flip.to;
        }
        let (zero, one) = (T::of(0.0), T::of(self.unit));
        let attributes = x.iter().map(|row| {
            let ones = row.iter().filter(|&&x| x != 0.0).count();
            let one = if self.divided { T::of(self.unit / ones.max(1) as f64) } else { one.clone() };
            row.iter().map(|&x| T::of(x).times(&one)).collect()
        });
        let attributes: Vec<Vec<T>> = attributes.collect();
        let ones = vec![vec![one.clone()]; x.len()];
        let mut values: Vec<Vec<Vec<T>>> = Vec::new();
        for layer in &self.layers {
            let mut sums = vec![layer.bias.clone(); x.len()];
            for term in &layer.terms {
                let inputs = match term.source {
                    Source::Attributes => &attributes,
                    Source::Ones => &ones,
                    Source::Layer(source) => &values[source],
                };
                let transformed: Vec<Vec<T>> = inputs.iter().map(|row| term.times_weight(row)).collect();
                for (sums, entries) in sums.iter_mut().zip(&self.propagations[term.propagation]) {
                    for (n, p) in entries {
                        for (sum, value) in sums.iter_mut().zip(&transformed[*n]) {
                            *sum = sum.plus(&p.times(value));
                        }
                    }
                }
            }
            for value in sums.iter_mut().flatten().filter(|value| **value < zero) {
                *value = layer.slope.times(value);
            }
            values.push(sums);
        }
        values.pop().unwrap()
    }

    /// Per node t and class k `logit_y − logit_k` once `flips` are made, where y = `classes[t]`.
    pub fn margins(&self, flips: &[Flip], classes: &[ClassId]) -> Vec<Vec<T>> {
        self.logits(flips).iter().zip(classes).map(|(row, &class)| margins(row, class)).collect()
    }

    /// Per node and class the smallest of the margins over `sets`.
    pub fn smallest_margins(&self, sets: &[Vec<Flip>], classes: &[ClassId]) -> Vec<Vec<T>> {
        let margins: Vec<_> = sets.iter().map(|flips| self.margins(flips, classes)).collect();
        smallest(&margins)
    }
}

/// `logit_class − logit_k` for every k.
pub fn margins<T: Number>(logits: &[T], class: ClassId) -> Vec<T> {
    logits.iter().map(|logit| logits[class.index()].minus(logit)).collect()
}

/// The smallest of several tables, entry by entry.
pub fn smallest<T: Number>(tables: &[Vec<Vec<T>>]) -> Vec<Vec<T>> {
    let mut smallest = tables[0].clone();
    for table in tables {
        for (least, value) in smallest.iter_mut().flatten().zip(table.iter().flatten()) {
            if value < least {
                least.clone_from(value);
            }
        }
    }
    smallest
}

impl<T: Number> WorldTerm<T> {
    /// `row W`.
    fn times_weight(&self, row: &[T]) -> Vec<T> {
        let zero = T::of(0.0);
        let mut sums = vec![zero.clone(); self.weight[0].len()];
        for (value, weights) in row.iter().zip(&self.weight).filter(|(value, _)| **value != zero) {
            for (sum, w) in sums.iter_mut().zip(weights) {
                *sum = sum.plus(&value.times(w));
            }
        }
        sums
    }
}

/// How large problems may be.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub nodes: usize,
    pub attributes: usize,
    pub hidden_layers: (usize, usize),
    pub units: usize,
    /// Largest global budget, now and then exceeded by far.
    pub global: u32,
}

/// What [`problems`] draws at most.
pub const SMALL: Sizes = Sizes { nodes: 12, attributes: 6, hidden_layers: (0, 3), units: 4, global: 8 };
/// Small enough to try every set of flips.
pub const TINY: Sizes = Sizes { nodes: 5, attributes: 4, hidden_layers: (0, 3), units: 4, global: 8 };
/// Large enough for searches to stop early and for long lists of flips.
pub const MEDIUM: Sizes = Sizes { nodes: 30, attributes: 40, hidden_layers: (0, 2), units: 9, global: 150 };

/// Where a weight, bias or propagation value comes from.
#[derive(Debug, Clone, Copy)]
struct Draw {
    /// 0: zero; 1: a whole number; else a quarter or any number, as the problem's [`Kind`] says.
    sort: u8,
    quarters: i8,
    any: f64,
}

/// Which numbers a problem is made of.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// −1, 0 and 1: ties everywhere.
    Signs,
    /// Quarters: sums are exact, ties and `lo == 0` are common.
    Quarters,
    /// Anything in (−2, 2).
    Any,
    /// Both.
    Mixed,
}

impl Draw {
    fn value(self, kind: Kind) -> f64 {
        match (self.sort, kind) {
            (0, _) => 0.0,
            (_, Kind::Signs) => f64::from(self.quarters.signum()),
            (1, Kind::Quarters | Kind::Mixed) => f64::from(self.quarters / 4),
            (2 | 3, Kind::Mixed) | (_, Kind::Quarters) => f64::from(self.quarters) / 4.0,
            _ => self.any,
        }
    }
}

fn draws(count: usize) -> impl Strategy<Value = Vec<Draw>> {
    let draw = (0u8..8, -8i8..=8, -2.0..2.0).prop_map(|(sort, quarters, any)| Draw { sort, quarters, any });
    vec(draw, count)
}

/// Random problems. Sizes and values are drawn independently and cut to fit, so that each shrinks on its own.
pub fn problems(sizes: Sizes) -> impl Strategy<Value = Problem> {
    let shape = (
        1..=sizes.nodes,
        1..=sizes.attributes,
        sizes.hidden_layers.0..=sizes.hidden_layers.1,
        vec(1..=sizes.units, 3),
        2usize..=4,
    );
    let kind = prop_oneof![
        1 => Just(Kind::Signs), 2 => Just(Kind::Quarters), 2 => Just(Kind::Any), 2 => Just(Kind::Mixed)
    ];
    let (n, d) = (0u32..sizes.nodes as u32, 0u32..sizes.attributes as u32);
    // Weights and biases of the widest network.
    let wide = sizes.units.max(4);
    let numbers =
        (kind, draws((sizes.attributes + 1 + 3 * (wide + 1)) * wide), prop_oneof![2 => Just(0i8), 1 => 1i8..=8]);
    let graph = (
        vec((n.clone(), n.clone()), 0..=sizes.nodes + 2),
        any::<bool>(),
        vec((n.clone(), d.clone()), 0..=2 * sizes.nodes),
        vec(0u32..4, sizes.nodes),
        prop_oneof![4 => Just(false), 1 => Just(true)],
    );
    let entries = vec((n.clone(), n.clone()), 0..=2 * sizes.nodes);
    let spread = (0u8..5, entries, draws(2 * sizes.nodes));
    let direction = prop_oneof![
        4 => Just(Direction::Both), 1 => Just(Direction::AddOnly), 1 => Just(Direction::DeleteOnly)
    ];
    let budget = (
        prop_oneof![8 => 0..=sizes.global, 1 => Just(1000)],
        1..=sizes.attributes as u32,
        direction,
        vec((n.clone(), 0..=sizes.attributes as u32), 0..=2),
        prop_oneof![3 => Just(vec![]), 1 => vec(n, 1..=2)],
        prop_oneof![3 => Just(vec![]), 1 => vec(d, 1..=2)],
    );
    (shape, numbers, graph, spread, budget).prop_map(|(shape, numbers, graph, spread, budget)| {
        let (nodes, attributes, hidden_layers, units, classes) = shape;
        let (kind, values, confidence) = numbers;
        let mut widths = vec![attributes];
        widths.extend_from_slice(&units[..hidden_layers]);
        widths.push(classes);
        let mut values = values.into_iter().map(|draw| draw.value(kind));
        let mut layers: Vec<Dense> = widths
            .windows(2)
            .map(|width| {
                let weight = values.by_ref().take(width[0] * width[1]).collect();
                Dense { inputs: width[0], outputs: width[1], weight, bias: values.by_ref().take(width[1]).collect() }
            })
            .collect();
        // Without this hardly any node is robust under a large budget.
        layers[hidden_layers].bias[0] += f64::from(confidence);
        let (n, d) = (nodes as u32, attributes as u32);
        let pairs = |pairs: Vec<(u32, u32)>, columns| pairs.into_iter().map(|(a, b)| (a % n, b % columns)).collect();
        let (edges, keep_self_loops, ones, labels, certify_labels) = graph;
        let spread = match spread {
            (0 | 1, ..) => Spread::Symmetric,
            (2, ..) => Spread::RowNormalised,
            (_, entries, factors) => {
                let factors = factors.into_iter().map(|draw| draw.value(kind).abs() / 2.0);
                Spread::Custom(entries.into_iter().zip(factors).map(|((a, b), p)| (a % n, b % n, p)).collect())
            }
        };
        let (global, local, direction, local_at, protected_nodes, protected_attributes) = budget;
        Problem {
            nodes,
            attributes,
            edges: pairs(edges, n),
            keep_self_loops,
            ones: pairs(ones, d),
            kind: AttributeKind::Bits,
            values: None,
            labels: labels.into_iter().take(nodes).map(|label| label % classes as u32).collect(),
            certify_labels,
            spread,
            layers,
            terms: None,
            global,
            local: local.min(d),
            direction,
            local_at: local_at.into_iter().map(|(node, count)| (node % n, count)).collect(),
            protected_nodes: protected_nodes.into_iter().map(|node| node % n).collect(),
            protected_attributes: protected_attributes.into_iter().map(|attribute| attribute % d).collect(),
        }
    })
}

/// The same problems with the ones of rows divided by their number.
pub fn with_normalised_rows(problems: impl Strategy<Value = Problem>) -> impl Strategy<Value = Problem> {
    problems.prop_map(|problem| Problem { kind: AttributeKind::NormalisedRows, ..problem })
}

/// The same problems with real values for attributes, some of them outside of their ranges.
pub fn with_values(problems: impl Strategy<Value = Problem>, sizes: Sizes) -> impl Strategy<Value = Problem> {
    let kind =
        prop_oneof![1 => Just(Kind::Signs), 2 => Just(Kind::Quarters), 2 => Just(Kind::Any), 2 => Just(Kind::Mixed)];
    let range = prop_oneof![3 => Just(None), 2 => (-2.0..2.0, -2.0..2.0).prop_map(Some), 1 => Just(Some((0.0, 0.0)))];
    let tried = prop_oneof![Just(2usize), Just(3), Just(5), Just(9)];
    (problems, kind, draws(sizes.nodes * sizes.attributes), vec(range, sizes.attributes), tried).prop_map(
        |(problem, kind, draws, ranges, tried)| {
            let entries: Vec<f64> =
                draws.iter().take(problem.nodes * problem.attributes).map(|draw| draw.value(kind)).collect();
            let of_column = |d: usize| {
                let column = entries.iter().skip(d).step_by(problem.attributes);
                column.fold((0.0f64, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)))
            };
            let ranges = ranges.into_iter().take(problem.attributes).enumerate();
            let ranges = ranges.map(|(d, range)| match range {
                None => of_column(d),
                Some((a, b)) => (f64::min(a, b), f64::max(a, b)),
            });
            let values = RealValues { ranges: ranges.collect(), entries, tried };
            Problem { kind: AttributeKind::RealValues, values: Some(values), ones: vec![], ..problem }
        },
    )
}

/// A problem, and slopes for each of its hidden layers.
pub fn problems_with_slopes(sizes: Sizes) -> impl Strategy<Value = (Problem, Vec<Matrix>)> {
    let slope = prop_oneof![1 => Just(0.0), 1 => Just(1.0), 4 => 0.0..=1.0];
    (problems(sizes), vec(slope, 3 * sizes.nodes * sizes.units)).prop_map(move |(problem, pool)| {
        let hidden = &problem.layers[..problem.hidden_layers()];
        let mut pool = pool.into_iter();
        let slopes = hidden.iter().map(|layer| {
            let values = pool.by_ref().take(problem.nodes * layer.outputs).collect();
            Matrix::from_values(problem.nodes, layer.outputs, values)
        });
        let slopes = slopes.collect();
        (problem, slopes)
    })
}

/// Random networks of layers of terms, with up to `layers` layers.
pub fn problems_of_terms(sizes: Sizes, layers: usize) -> impl Strategy<Value = Problem> {
    let term = (any::<u8>(), any::<u8>(), any::<bool>(), draws(sizes.attributes.max(sizes.units) * sizes.units.max(4)));
    let layer = (1..=sizes.units, vec(term, 1..=3), draws(sizes.units.max(4)), 0u8..6, 0.0..1.0);
    let spread = (0u8..12, vec((any::<u32>(), any::<u32>()), 0..=2 * sizes.nodes), draws(2 * sizes.nodes + 3));
    let kind =
        prop_oneof![1 => Just(Kind::Signs), 2 => Just(Kind::Quarters), 2 => Just(Kind::Any), 2 => Just(Kind::Mixed)];
    (problems(sizes), vec(layer, 1..=layers), vec(spread, 1..=3), kind, prop_oneof![2 => Just(0i8), 1 => 1i8..=8])
        .prop_map(move |(mut problem, layers, spreads, kind, confidence)| {
            let classes = problem.layers[problem.layers.len() - 1].outputs;
            let last = layers.len() - 1;
            let mut widths: Vec<usize> = Vec::new();
            let mut made: Vec<LayerOfTerms> = Vec::new();
            for (i, (units, terms, bias, activation, slope)) in layers.into_iter().enumerate() {
                let units = if i == last { classes } else { units };
                let term = |(source, spread, scalar, draws): (u8, u8, bool, Vec<Draw>)| {
                    let source = match usize::from(source) {
                        // Half of what is read is the layer before.
                        choice if i > 0 && choice >= 128 => Source::Layer(i - 1),
                        choice => match choice % (i + 3) {
                            0 | 1 => Source::Attributes,
                            2 => Source::Ones,
                            earlier => Source::Layer(earlier - 3),
                        },
                    };
                    let width = match source {
                        Source::Layer(earlier) => widths[earlier],
                        Source::Ones => 1,
                        Source::Attributes => problem.attributes,
                    };
                    let mut values = draws.into_iter().map(|draw| draw.value(kind));
                    let weight = match scalar && width == units {
                        true => Err(values.next().unwrap_or(1.0)),
                        false => Ok(values.take(width * units).collect()),
                    };
                    (source, usize::from(spread) % spreads.len(), weight)
                };
                let activation = match activation {
                    _ if i == last => Activation::None,
                    0 => Activation::None,
                    1 => Activation::LeakyRelu(slope),
                    2 => Activation::LeakyRelu(0.25),
                    _ => Activation::Relu,
                };
                let terms = terms.into_iter().map(term).collect();
                let bias = bias.into_iter().take(units).map(|draw| draw.value(kind)).collect();
                made.push(LayerOfTerms { terms, bias, activation });
                widths.push(units);
            }
            made[last].bias[0] += f64::from(confidence);
            let reads = |layer: &LayerOfTerms| layer.terms.iter().any(|term| term.0 == Source::Attributes);
            if !made.iter().any(reads) {
                let units = made[0].bias.len();
                made[0].terms[0] = (Source::Attributes, 0, Ok(vec![1.0; problem.attributes * units]));
            }
            let n = problem.nodes as u32;
            let spread = |(sort, entries, draws): (u8, Vec<(u32, u32)>, Vec<Draw>)| {
                let mut values = draws.into_iter().map(|draw| draw.value(kind) / 2.0);
                match sort {
                    0 => Spread::Identity,
                    1 => Spread::Symmetric,
                    2 => Spread::RowNormalised,
                    3 => Spread::RowMean,
                    4 => Spread::Adjacency,
                    5 => Spread::Polynomial(Box::new(Spread::Symmetric), values.take(3).collect()),
                    6 => Spread::Polynomial(Box::new(Spread::Adjacency), values.take(2).collect()),
                    _ => {
                        let entries = entries.into_iter().map(|(a, b)| (a % n, b % n));
                        Spread::Custom(entries.zip(values.by_ref()).map(|((a, b), p)| (a, b, p)).collect())
                    }
                }
            };
            problem.terms = Some(Terms { spreads: spreads.into_iter().map(spread).collect(), layers: made });
            problem
        })
}
