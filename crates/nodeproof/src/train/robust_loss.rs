//! Worst-case margins as a loss for whoever trains the network elsewhere.

use std::sync::Arc;

use super::TrainError;
use super::check_no_edges;
use super::clean::{CleanNetwork, Passes};
use super::goal::{Goal, NodeLoss, Weighted};
use super::neighbourhood::Surroundings;
use super::robust::{RobustTerm, Target, Value};
use crate::budget::Budget;
use crate::dense::{Matrix, add_scaled};
use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::ids::{ClassId, NodeId};
use crate::model::{Layer, Model, ModelError};
use crate::network::Network;
use crate::settings::{SettingsError, WorstCase, check_hinge};

/// Worst-case margins of a network's nodes, losses of them, and their gradient by weights and biases.
///
/// It is what the robust methods of a [`Trainer`](super::Trainer) minimise, for whoever has an optimiser and a training loop of their
/// own: give it the weights of every step ([`RobustLoss::set_tensors`]), and ask for a loss of some nodes. The layers of the network may be
/// put together in any way. A call costs what its nodes see, however large the graph is.
///
/// With y the class that node n is to keep and g_k the worst-case margin of y over another class k, the losses are the means over nodes of
///
/// ```text
/// hinge:          Σ_k h_k,  h_k = max(0, margin − g_k),  or with saturation s   Σ_k s log(1 + h_k / s),
/// cross entropy:  log(1 + Σ_k exp(−g_k)),
/// ```
///
/// and for anything else there are the margins themselves. By [`WorstCase::Dual`], g_k is a lower bound of `logit_y − logit_k` under all
/// admissible changes of the attributes, but for rounding; by [`WorstCase::FirstOrder`] it is the margin under changes that gain much,
/// which proves nothing. Certificates come from a [`Certifier`](crate::Certifier).
///
/// A gradient has a number for every number of [`Model::tensors`], in the same order: all dense weights and all biases, also those that a
/// [`Trainer`](super::Trainer) leaves as they are. Weights that are multiples of the identity, propagations and the slopes of leaky ReLUs
/// have none. Margins have kinks, as ReLUs have: there, the gradient is that of one side. The class that is kept is a constant.
///
/// Nodes may be given in any order, and more than once. Results are the same to the last bit for any number of threads of the rayon pool that
/// a call is made in.
///
/// ```
/// use std::sync::Arc;
/// use nodeproof::train::RobustLoss;
/// use nodeproof::{Budget, ClassId, Graph, LocalBudget, Matrix, Model, NodeId, Propagation};
/// let graph = Graph::new(4, 2, &[(0, 1), (2, 3)], &[(0, 0), (1, 0), (2, 1), (3, 1)])?;
/// let weight = Matrix::from_values(2, 2, vec![0.5, -0.5, -0.2, 0.2]);
/// let model = Model::gcn(vec![(weight, vec![0.0, 0.0])], Propagation::SymmetricGcn)?;
/// let budget = Budget::new(1, LocalBudget::Count(1));
/// let mut loss = RobustLoss::new(Arc::new(graph), model, &budget, None)?;
/// let (nodes, classes) = ([NodeId(0), NodeId(2)], [ClassId(0), ClassId(1)]);
/// let before = loss.hinge(&nodes, Some(&classes), 1.0, None, true)?;
///
/// // A step against the gradient.
/// let gradient = before.gradient.unwrap();
/// let step = |(values, by): (&[f64], &Vec<f64>)| values.iter().zip(by).map(|(x, d)| x - 0.1 * d).collect();
/// let stepped: Vec<Vec<f64>> = loss.model().tensors().zip(&gradient).map(step).collect();
/// loss.set_tensors(&stepped)?;
/// let after = loss.hinge(&nodes, Some(&classes), 1.0, None, false)?;
/// assert!(after.loss < before.loss && after.gradient.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RobustLoss {
    model: Model,
    surroundings: Surroundings<Arc<Graph>>,
    worst_case: WorstCase,
    /// The nodes whose logits were asked for last, and what they see: in training these are often the same in every step.
    clean: Option<Arc<Asked>>,
}

/// What a loss came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RobustValue {
    /// The mean loss of the nodes.
    pub loss: f64,
    /// The class that each node is to keep.
    pub classes: Vec<ClassId>,
    /// The worst-case margin of each node, the smallest over all other classes.
    pub margins: Vec<f64>,
    /// The derivative of the loss by every weight and bias, tensor by tensor in the order of [`Model::tensors`], if it was asked for.
    pub gradient: Option<Vec<Vec<f64>>>,
}

/// Worst-case margins over every class.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Margins {
    /// The class y that each node is to keep.
    pub classes: Vec<ClassId>,
    /// The worst-case margin `logit_y − logit_k` of each node (rows) over each class k (columns): 0 over y itself, by definition.
    pub over: Matrix,
}

/// Logits of some nodes without any attack, and what their gradient takes.
///
/// They are of the weights that the [`RobustLoss`] had when they were asked for, and so is the gradient, whatever it is given afterwards.
#[derive(Debug)]
pub struct Logits {
    values: Matrix,
    of: Arc<Asked>,
    layers: Vec<Layer>,
    passes: Passes,
    names: Vec<String>,
}

/// Nodes whose logits are asked for, and what they see.
#[derive(Debug)]
struct Asked {
    nodes: Vec<NodeId>,
    network: CleanNetwork,
    /// Where the network has each of the nodes.
    rows: Vec<usize>,
}

impl Logits {
    /// The logits, nodes × classes.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// The derivative of the sum of the logits, each times its weight, by every weight and bias, tensor by tensor in the order of
    /// [`Model::tensors`].
    ///
    /// # Errors
    /// If there is not one finite weight for each node and class, or numbers overflow.
    pub fn gradient(&self, weights: &Matrix) -> Result<Vec<Vec<f64>>, TrainError> {
        check_weights(weights, self.values.rows(), self.values.columns())?;
        let Asked { network, rows, .. } = &*self.of;
        let mut errors = Matrix::zeros(network.targets(), weights.columns());
        for (given, &row) in rows.iter().enumerate() {
            add_scaled(errors.row_mut(row), 1.0, weights.row(given));
        }
        finite(network.gradient(&self.layers, &self.passes, errors), &self.names)
    }
}

/// What targets came to, and the derivative by each tensor.
type Evaluated = (Value, Option<Vec<Vec<f64>>>);

impl RobustLoss {
    /// The loss of networks that are put together as `model` is, under `budget`. Without `worst_case` margins are taken to be what suits
    /// the number of hidden layers, see [`WorstCase::suited_to`].
    ///
    /// # Errors
    /// If the model or the budget does not fit the graph.
    pub fn new(
        graph: Arc<Graph>,
        model: Model,
        budget: &Budget,
        worst_case: Option<WorstCase>,
    ) -> Result<Self, TrainError> {
        let matrices = Network::new(&graph, &model)?.matrices().to_vec();
        check_no_edges(budget)?;
        let limits = budget.limits(&graph)?;
        let worst_case = worst_case.unwrap_or_else(|| WorstCase::suited_to(model.hidden_layers()));
        Ok(Self { surroundings: Surroundings::new(graph, matrices, limits), model, worst_case, clean: None })
    }

    /// The network as it is now.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What worst-case margins are taken to be.
    pub fn worst_case(&self) -> WorstCase {
        self.worst_case
    }

    /// Puts other numbers in place of all weights and biases, see [`Model::set_tensors`].
    ///
    /// # Errors
    /// If they do not fit the model, or one is not finite.
    pub fn set_tensors(&mut self, tensors: &[impl AsRef<[f64]>]) -> Result<(), ModelError> {
        self.model.set_tensors(tensors)
    }

    /// The hinge loss of worst-case margins around `classes`, one for each of `nodes`, or around the predicted classes.
    ///
    /// # Errors
    /// If there is no node, a node or a class does not exist, `margin` or `saturation` makes no sense, or numbers overflow.
    pub fn hinge(
        &mut self,
        nodes: &[NodeId],
        classes: Option<&[ClassId]>,
        margin: f64,
        saturation: Option<f64>,
        with_gradient: bool,
    ) -> Result<RobustValue, TrainError> {
        check_hinge("margin", margin, saturation)?;
        self.mean_loss(nodes, classes, Goal::Hinge { margin, saturation }, with_gradient)
    }

    /// The cross entropy of the worst-case logits for `classes`, one for each of `nodes`, or for the predicted classes.
    ///
    /// # Errors
    /// If there is no node, a node or a class does not exist, or numbers overflow.
    pub fn cross_entropy(
        &mut self,
        nodes: &[NodeId],
        classes: Option<&[ClassId]>,
        with_gradient: bool,
    ) -> Result<RobustValue, TrainError> {
        self.mean_loss(nodes, classes, Goal::CrossEntropy, with_gradient)
    }

    /// The worst-case margins of `classes`, one for each of `nodes`, or of the predicted classes, over every class.
    ///
    /// # Errors
    /// If a node or a class does not exist, or numbers overflow.
    pub fn margins(&mut self, nodes: &[NodeId], classes: Option<&[ClassId]>) -> Result<Margins, TrainError> {
        let nothing = vec![0.0; self.model.classes() - 1];
        let targets = self.targets(nodes, classes, |_| Weighted(&nothing))?;
        let (value, _) = self.evaluate(targets, 1.0, false)?;
        Ok(Margins { classes: value.classes, over: value.margins_over })
    }

    /// The derivative of `Σ w_nk · margin_nk` by every weight and bias, tensor by tensor, w being `weights`, nodes × classes, and the margins
    /// those of [`RobustLoss::margins`] with the `classes` that it returned. Weights of a node's own class have no effect.
    ///
    /// # Errors
    /// If a node or a class does not exist, there is not one finite weight for each node and class, or numbers overflow.
    pub fn margins_gradient(
        &mut self,
        nodes: &[NodeId],
        classes: &[ClassId],
        weights: &Matrix,
    ) -> Result<Vec<Vec<f64>>, TrainError> {
        self.check_classes(nodes, classes)?;
        let others = self.weights_of_others(classes, weights)?;
        let row = |i: usize| &others[i * (self.model.classes() - 1)..][..self.model.classes() - 1];
        let targets = self.targets(nodes, Some(classes), |i| Weighted(row(i)))?;
        let (_, gradient) = self.evaluate(targets, 1.0, true)?;
        Ok(gradient.unwrap_or_default())
    }

    /// Node by node the weights of all classes but its own.
    fn weights_of_others(&self, classes: &[ClassId], weights: &Matrix) -> Result<Vec<f64>, SettingsError> {
        check_weights(weights, classes.len(), self.model.classes())?;
        let of_node = |(row, class): (usize, &ClassId)| {
            let (before, after) = weights.row(row).split_at(class.index());
            before.iter().chain(&after[1..])
        };
        Ok(classes.iter().enumerate().flat_map(of_node).copied().collect())
    }

    /// The logits of `nodes` without any attack.
    ///
    /// Nodes that are asked for again and again, such as the labelled ones in every step, are looked up in the graph once.
    ///
    /// # Errors
    /// If a node does not exist, or numbers overflow.
    pub fn logits(&mut self, nodes: &[NodeId]) -> Result<Logits, TrainError> {
        self.check_nodes(nodes)?;
        let of = self.asked(nodes);
        let passes = of.network.forward(self.model.layers(), None);
        let rows = of.rows.iter().flat_map(|&row| passes.logits().row(row));
        let values = Matrix::from_values(nodes.len(), self.model.classes(), rows.copied().collect());
        for (row, node) in nodes.iter().enumerate() {
            if let Some((class, logit)) = values.row(row).iter().enumerate().find(|(_, logit)| !logit.is_finite()) {
                return Err(TrainError::Overflow {
                    what: format!("the logit of node {node} for class {class} is {logit}"),
                });
            }
        }
        let names = self.model.tensor_shapes().into_iter().map(|(name, _)| name).collect();
        Ok(Logits { values, of, layers: self.model.layers().to_vec(), passes, names })
    }

    /// What `nodes` see, as it was cut out the last time if that was for them.
    fn asked(&mut self, nodes: &[NodeId]) -> Arc<Asked> {
        if let Some(before) = self.clean.take_if(|before| before.nodes == nodes) {
            return Arc::clone(self.clean.insert(before));
        }
        let seen = self.surroundings.of(&self.model, nodes.iter().copied());
        let there: Vec<NodeId> = nodes.iter().map(|&node| seen.place(node)).collect();
        let network = CleanNetwork::new(&seen.graph, &self.model, &seen.matrices, &there);
        let rows = there.iter().map(|&node| network.place(node)).collect();
        Arc::clone(self.clean.insert(Arc::new(Asked { nodes: nodes.to_vec(), network, rows })))
    }

    fn mean_loss(
        &mut self,
        nodes: &[NodeId],
        classes: Option<&[ClassId]>,
        goal: Goal,
        with_gradient: bool,
    ) -> Result<RobustValue, TrainError> {
        if nodes.is_empty() {
            let remedy = "give at least 1 node: the loss is a mean over them";
            return Err(SettingsError::value("the number of nodes", 0, remedy).into());
        }
        let targets = self.targets(nodes, classes, |_| goal)?;
        let (value, gradient) = self.evaluate(targets, 1.0 / nodes.len() as f64, with_gradient)?;
        Ok(RobustValue { loss: value.loss, classes: value.classes, margins: value.margins, gradient })
    }

    /// `nodes` with what they are asked for.
    fn targets<L>(
        &self,
        nodes: &[NodeId],
        classes: Option<&[ClassId]>,
        goal: impl Fn(usize) -> L,
    ) -> Result<Vec<Target<L>>, SettingsError> {
        self.check_nodes(nodes)?;
        if let Some(classes) = classes {
            self.check_classes(nodes, classes)?;
        }
        let class = |i: usize| classes.map(|classes| classes[i]);
        Ok(nodes.iter().enumerate().map(|(i, &node)| Target { node, class: class(i), goal: goal(i) }).collect())
    }

    fn check_nodes(&self, nodes: &[NodeId]) -> Result<(), SettingsError> {
        let count = self.surroundings.graph().nodes();
        match nodes.iter().find(|node| node.index() >= count) {
            Some(&node) => Err(SettingsError::NoSuchNode { node, nodes: count }),
            None => Ok(()),
        }
    }

    /// Checks that there is a class for each node, and that the model has it.
    fn check_classes(&self, nodes: &[NodeId], classes: &[ClassId]) -> Result<(), SettingsError> {
        if classes.len() != nodes.len() {
            let remedy = format!("give one for each of the {} nodes, or none for the predicted classes", nodes.len());
            return Err(SettingsError::value("the number of classes", classes.len(), remedy));
        }
        let count = self.model.classes();
        match nodes.iter().zip(classes).find(|(_, class)| class.index() >= count) {
            Some((node, class)) => {
                let remedy = format!("the model has {count} classes, numbered from 0; leave out nodes without one");
                Err(SettingsError::value("a class", format!("{class}, of node {node}"), remedy))
            }
            None => Ok(()),
        }
    }

    /// `share` times the sum of the losses of `targets`, and its gradient.
    fn evaluate<L: NodeLoss>(
        &mut self,
        targets: Vec<Target<L>>,
        share: f64,
        with_gradient: bool,
    ) -> Result<Evaluated, TrainError> {
        let nodes: Vec<NodeId> = targets.iter().map(|target| target.node).collect();
        let (seen, targets) = self.surroundings.of_targets(&self.model, targets);
        let (graph, matrices, limits) = (&seen.graph, &seen.matrices[..], &seen.limits);
        let term = RobustTerm { graph, matrices, limits, worst_case: self.worst_case };
        let mut gradient = with_gradient.then(|| Gradient::zeros(&self.model));
        let value = term.evaluate_sum(&self.model, &targets, share, gradient.as_mut().map(|sum| (1.0, sum)));
        check_finite(&nodes, &value)?;
        let names = || self.model.tensor_shapes().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let gradient = gradient.map(|gradient| finite(gradient, &names())).transpose()?;
        Ok((value, gradient))
    }
}

/// The tensors of a gradient whose numbers are finite; `names` are what they are by.
fn finite(gradient: Gradient, names: &[String]) -> Result<Vec<Vec<f64>>, TrainError> {
    for (values, name) in gradient.tensors().zip(names) {
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(TrainError::Overflow { what: format!("a derivative by {name} is {value}") });
        }
    }
    Ok(gradient.tensors().map(<[f64]>::to_vec).collect())
}

/// Checks that there is one finite weight for each node and class.
fn check_weights(weights: &Matrix, nodes: usize, classes: usize) -> Result<(), SettingsError> {
    if (weights.rows(), weights.columns()) != (nodes, classes) {
        let found = format!("{} × {}", weights.rows(), weights.columns());
        let remedy = format!("give one for each node and class, {nodes} × {classes}");
        return Err(SettingsError::value("weights", found, remedy));
    }
    match weights.values().iter().find(|weight| !weight.is_finite()) {
        Some(weight) => Err(SettingsError::value("weights", weight, "give finite numbers")),
        None => Ok(()),
    }
}

/// Checks that all margins and the loss are numbers, and that nothing overflowed that a ReLU then took for 0.
fn check_finite(nodes: &[NodeId], value: &Value) -> Result<(), TrainError> {
    let fail = |what: String| Err(TrainError::Overflow { what });
    let margins = &value.margins_over;
    for (row, node) in nodes.iter().enumerate() {
        if let Some((class, margin)) = margins.row(row).iter().enumerate().find(|(_, margin)| !margin.is_finite()) {
            return fail(format!("the worst-case margin of node {node} over class {class} is {margin}"));
        }
    }
    if !value.loss.is_finite() {
        return fail(format!("the loss is {}", value.loss));
    }
    if value.may_overflow {
        return fail("products of weights come close to the largest number that there is".to_owned());
    }
    Ok(())
}
