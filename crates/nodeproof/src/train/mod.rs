//! Training networks.
//!
//! So far by cross entropy on the exact network, the standard way. Everything is a function of graph, split, options and
//! seed: the same input gives the same bits, whatever the number of threads.

mod adam;
mod cross_entropy;
mod parameters;

use std::ops::ControlFlow;

use crate::dense::Matrix;
use crate::graph::{ClassId, Graph, NodeId, Part, Split};
use crate::model::{Model, ModelError, Propagation};
use crate::network::{Network, largest};

use adam::Adam;
use cross_entropy::{CrossEntropy, Dropout};
use parameters::Parameters;

/// How a network is trained.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TrainOptions {
    /// Units of each hidden layer; default one layer of 32.
    pub hidden: Vec<usize>,
    /// Most epochs, each one step over all labelled nodes; default 300.
    pub epochs: usize,
    /// Epochs without a better loss on the validation part after which training ends; default 50. Without a
    /// validation part all epochs are run.
    pub patience: usize,
    /// Learning rate of Adam; default 0.01.
    pub learning_rate: f64,
    /// Weight of the L2 term on weights; default 0.0005.
    pub weight_decay: f64,
    /// Share of hidden activations left out in each step; default 0.5.
    pub dropout: f64,
    /// The propagation; default symmetric GCN.
    pub propagation: Propagation,
    /// Seed of initialisation and dropout; default 0.
    pub seed: u64,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            hidden: vec![32],
            epochs: 300,
            patience: 50,
            learning_rate: 0.01,
            weight_decay: 5e-4,
            dropout: 0.5,
            propagation: Propagation::SymmetricGcn,
            seed: 0,
        }
    }
}

/// Why a network cannot be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An option that makes no sense.
    #[error("{option} is {value}; {remedy}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What to give instead.
        remedy: &'static str,
    },
    /// There is nothing to learn from.
    #[error("the train part of the split has no labelled node; give the graph labels, or make the part larger")]
    NoLabels,
    /// The graph's labels make fewer than two classes.
    #[error("the graph has {classes} classes; training needs at least two")]
    TooFewClasses {
        /// Number of classes.
        classes: usize,
    },
    /// A class that training never sees.
    #[error("class {class} has no node in the train part of the split; draw a stratified split, or a larger one")]
    UnseenClass {
        /// The class.
        class: ClassId,
    },
    /// A number became infinite or NaN.
    #[error("training diverged in epoch {epoch}; try a smaller learning rate")]
    Diverged {
        /// The epoch.
        epoch: usize,
    },
    /// The propagation does not fit the graph.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// How far training has come after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Epoch {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// Cross entropy on the labelled nodes, with dropout.
    pub loss: f64,
    /// Cross entropy on the validation part, without dropout.
    pub validation_loss: Option<f64>,
}

/// Trains a network on the labelled nodes of `split` and tells `observer` of every epoch; the observer may break off.
/// The parameters with the best validation loss are returned, or the last ones where there is no validation part.
///
/// # Errors
/// If an option makes no sense, there is nothing to learn from, or training diverges.
///
/// # Example
/// ```
/// use nodeproof::train::{TrainOptions, train};
/// use nodeproof::{ClassId, Graph, Split, SplitSize};
/// # use std::ops::ControlFlow;
/// let graph = Graph::new(4, 2, &[(0, 1), (2, 3)], &[(0, 0), (1, 0), (2, 1), (3, 1)])?
///     .with_labels([0, 0, 1, 1].map(|class| Some(ClassId(class))).to_vec())?;
/// let split = Split::stratified(&graph, SplitSize::PerClass(1), SplitSize::PerClass(0), 0)?;
/// let model = train(&graph, &split, &TrainOptions::default(), |_| ControlFlow::Continue(()))?;
/// assert_eq!(nodeproof::train::accuracy(&graph, &model, &graph.node_ids().collect::<Vec<_>>())?, Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train(
    graph: &Graph,
    split: &Split,
    options: &TrainOptions,
    mut observer: impl FnMut(Epoch) -> ControlFlow<()>,
) -> Result<Model, TrainError> {
    check(options)?;
    let labelled = targets(graph, &split.part(Part::Train));
    check_labels(graph, &labelled)?;
    let propagation = options.propagation.matrix(graph)?;
    let sizes = [&[graph.attribute_count()], &options.hidden[..], &[graph.classes()]].concat();
    let layers = sizes.len() - 1;
    let loss = CrossEntropy::new(graph, &propagation, &labelled, layers);
    let validation = targets(graph, &split.part(Part::Validation));
    let validation_loss = (!validation.is_empty()).then(|| CrossEntropy::new(graph, &propagation, &validation, layers));

    let mut parameters = Parameters::xavier(&sizes, options.seed);
    let mut adam = Adam::new(&sizes, options.learning_rate, options.weight_decay);
    let mut gradient = Parameters::zeros(&sizes);
    let mut best = Best { loss: f64::INFINITY, epoch: 0, parameters: parameters.clone() };
    for epoch in 1..=options.epochs {
        let dropout = Dropout { rate: options.dropout, seed: options.seed, step: epoch as u64 };
        let value = loss.evaluate(&parameters, Some(dropout), &mut gradient);
        adam.step(&mut parameters, &gradient);
        if !value.is_finite() || !parameters.tensors().flatten().all(|value| value.is_finite()) {
            return Err(TrainError::Diverged { epoch });
        }
        let held_back = validation_loss.as_ref().map(|loss| loss.value(&parameters));
        best.consider(held_back.unwrap_or(f64::NEG_INFINITY), epoch, &parameters);
        let told = observer(Epoch { epoch, loss: value, validation_loss: held_back });
        if told.is_break() || epoch - best.epoch >= options.patience.max(1) {
            break;
        }
    }
    Ok(best.parameters.into_model(options.propagation.clone())?)
}

/// The share of `nodes` with a label whose predicted class is their label; `None` if none has a label.
///
/// # Errors
/// If the model does not fit the graph.
pub fn accuracy(graph: &Graph, model: &Model, nodes: &[NodeId]) -> Result<Option<f64>, ModelError> {
    let logits: Matrix = Network::new(graph, model)?.logits();
    let labelled = targets(graph, nodes);
    let right = labelled.iter().filter(|(node, label)| largest(logits.row(node.index())) == *label).count();
    Ok((!labelled.is_empty()).then(|| right as f64 / labelled.len() as f64))
}

/// The best parameters so far.
struct Best {
    loss: f64,
    epoch: usize,
    parameters: Parameters,
}

impl Best {
    /// Takes `parameters` if their loss is not worse than the best so far.
    fn consider(&mut self, loss: f64, epoch: usize, parameters: &Parameters) {
        if loss <= self.loss {
            *self = Self { loss, epoch, parameters: parameters.clone() };
        }
    }
}

/// Those of `nodes` that have a label, with it.
fn targets(graph: &Graph, nodes: &[NodeId]) -> Vec<(NodeId, ClassId)> {
    nodes.iter().filter_map(|&node| graph.label(node).map(|label| (node, label))).collect()
}

fn check(options: &TrainOptions) -> Result<(), TrainError> {
    let fail = |option, value, remedy| Err(TrainError::Option { option, value, remedy });
    if let Some(&units) = options.hidden.iter().find(|&&units| units == 0) {
        return fail("a hidden layer's size", units as f64, "give each hidden layer at least 1 unit");
    }
    if options.epochs == 0 {
        return fail("epochs", 0.0, "train for at least 1 epoch");
    }
    if !(options.learning_rate > 0.0 && options.learning_rate.is_finite()) {
        return fail("learning_rate", options.learning_rate, "give a positive number such as 0.01");
    }
    if !(options.weight_decay >= 0.0 && options.weight_decay.is_finite()) {
        return fail("weight_decay", options.weight_decay, "give 0 or a positive number such as 0.0005");
    }
    if !(0.0..1.0).contains(&options.dropout) {
        return fail("dropout", options.dropout, "give a share from 0 to below 1, such as 0.5");
    }
    Ok(())
}

fn check_labels(graph: &Graph, labelled: &[(NodeId, ClassId)]) -> Result<(), TrainError> {
    if labelled.is_empty() {
        return Err(TrainError::NoLabels);
    }
    if graph.classes() < 2 {
        return Err(TrainError::TooFewClasses { classes: graph.classes() });
    }
    let mut seen = vec![false; graph.classes()];
    labelled.iter().for_each(|(_, label)| seen[label.index()] = true);
    match seen.iter().position(|&seen| !seen) {
        Some(class) => Err(TrainError::UnseenClass { class: ClassId(class as u32) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::graph::SplitSize;

    /// Two groups of nodes with words and neighbours of their own, an isolated node and one without attributes.
    fn graph(seed: u64) -> Graph {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut edges = Vec::new();
        let mut ones = Vec::new();
        for node in 0..40u32 {
            let group = node % 2;
            if node < 38 {
                edges.push((node, 2 * random.random_range(0..19) + group));
            }
            for _ in 0..if node == 7 { 0 } else { 3 } {
                ones.push((node, 6 * group + random.random_range(0..8)));
            }
        }
        let labels = (0..40).map(|node| Some(ClassId(node % 2))).collect();
        Graph::new(40, 14, &edges, &ones).unwrap().with_labels(labels).unwrap()
    }

    fn run(graph: &Graph, options: &TrainOptions) -> Result<Model, TrainError> {
        let split = Split::stratified(graph, SplitSize::PerClass(5), SplitSize::PerClass(5), 1).unwrap();
        train(graph, &split, options, |_| ControlFlow::Continue(()))
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let graph = graph(0);
        for (seed, sizes) in [(1, vec![14, 2]), (2, vec![14, 5, 2]), (3, vec![14, 4, 3, 2])] {
            let propagation = Propagation::SymmetricGcn.matrix(&graph).unwrap();
            let labelled = targets(&graph, &[0, 1, 4, 9, 38].map(NodeId));
            let loss = CrossEntropy::new(&graph, &propagation, &labelled, sizes.len() - 1);
            let mut parameters = Parameters::xavier(&sizes, seed);
            let dropout = Some(Dropout { rate: 0.3, seed: 5, step: 2 });
            let mut gradient = Parameters::zeros(&sizes);
            loss.evaluate(&parameters, dropout, &mut gradient);
            let expected: Vec<Vec<f64>> = gradient.tensors().map(<[f64]>::to_vec).collect();
            for (tensor, derivatives) in expected.iter().enumerate() {
                for (i, &derivative) in derivatives.iter().enumerate() {
                    let mut at = |change: f64| {
                        parameters.tensors_mut().nth(tensor).unwrap()[i] += change;
                        loss.evaluate(&parameters, dropout, &mut gradient)
                    };
                    let (up, down) = (at(1e-6), at(-2e-6));
                    at(1e-6);
                    let slope = (up - down) / 2e-6;
                    assert!((slope - derivative).abs() <= 1e-5 * slope.abs().max(1e-3), "tensor {tensor}, {i}");
                }
            }
        }
    }

    #[test]
    fn the_loss_is_that_of_the_network() {
        let graph = graph(3);
        let parameters = Parameters::xavier(&[14, 6, 2], 4);
        let model = parameters.clone().into_model(Propagation::SymmetricGcn).unwrap();
        let network = Network::new(&graph, &model).unwrap();
        let labelled = targets(&graph, &[2, 3, 39].map(NodeId));
        let expected: f64 = labelled
            .iter()
            .map(|(node, label)| {
                let logits = network.logits_under(*node, &[]);
                logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[label.index()]
            })
            .sum();
        let loss = CrossEntropy::new(&graph, network.propagation(), &labelled, 2);
        assert!((loss.value(&parameters) - expected / 3.0).abs() < 1e-12);
    }

    #[test]
    fn it_learns_and_never_yields_nan() {
        for hidden in [vec![], vec![8], vec![8, 8]] {
            let graph = graph(1);
            let model = run(&graph, &TrainOptions { hidden, ..TrainOptions::default() }).unwrap();
            let nodes: Vec<NodeId> = graph.node_ids().collect();
            assert!(accuracy(&graph, &model, &nodes).unwrap().unwrap() > 0.85);
        }
    }

    #[test]
    fn bits_depend_on_the_seed_and_not_on_threads() {
        let graph = graph(2);
        let with = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&graph, &TrainOptions { epochs: 20, seed, ..TrainOptions::default() })).unwrap()
        };
        assert_eq!(with(1, 3), with(4, 3));
        assert_ne!(with(1, 3), with(1, 4));
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        let graph = graph(0);
        let wrong = |options: TrainOptions| matches!(run(&graph, &options), Err(TrainError::Option { .. }));
        let default = TrainOptions::default;
        assert!(wrong(TrainOptions { hidden: vec![4, 0], ..default() }));
        assert!(wrong(TrainOptions { epochs: 0, ..default() }));
        assert!(wrong(TrainOptions { learning_rate: f64::NAN, ..default() }));
        assert!(wrong(TrainOptions { weight_decay: -1.0, ..default() }));
        assert!(wrong(TrainOptions { dropout: 1.0, ..default() }));

        let train_on = |graph: &Graph, nodes: Vec<NodeId>| {
            let split = Split::new(graph.nodes(), nodes, vec![]).unwrap();
            train(graph, &split, &default(), |_| ControlFlow::Continue(()))
        };
        assert!(matches!(train_on(&graph, vec![]), Err(TrainError::NoLabels)));
        assert!(matches!(train_on(&graph, vec![NodeId(0)]), Err(TrainError::UnseenClass { class: ClassId(1) })));
        let one_class = Graph::new(2, 1, &[], &[]).unwrap().with_labels(vec![Some(ClassId(0)); 2]).unwrap();
        assert!(matches!(train_on(&one_class, vec![NodeId(0)]), Err(TrainError::TooFewClasses { classes: 1 })));
        let huge = TrainOptions { learning_rate: 1e300, ..default() };
        assert!(matches!(run(&graph, &huge), Err(TrainError::Diverged { .. })));
    }

    #[test]
    fn the_observer_may_break_off() {
        let graph = graph(0);
        let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
        let mut epochs = 0;
        let stop = |epoch: Epoch| {
            epochs = epoch.epoch;
            if epoch.epoch == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        train(&graph, &split, &TrainOptions::default(), stop).unwrap();
        assert_eq!(epochs, 3);
    }
}
