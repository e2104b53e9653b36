//! Gradients against finite differences and against the plain formulas; training as a whole.

mod dense;

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cross_entropy::CrossEntropy;
use super::dropout::Dropout;
use super::goal::Goal;
use super::neighbourhood::Surroundings;
use super::robust::{RobustTerm, Target};
use super::*;
use crate::Certifier;
use crate::attributes::AttributeKind;
use crate::budget::{Budget, Direction, LocalBudget};
use crate::dense::Matrix;
use crate::gradient::Gradient;
use crate::graph::SplitSize;
use crate::ids::AttributeId;
use crate::model::{Activation, Layer, Propagation, Source, Term};

use dense::Dense;

/// Settings with some fields changed.
macro_rules! changed {
    ($base:expr; $($field:ident $(: $value:expr)?),*) => {{
        let mut settings = $base;
        $(changed!(@ settings, $field $(, $value)?);)*
        settings
    }};
    (@ $settings:ident, $field:ident) => { $settings.$field = $field };
    (@ $settings:ident, $field:ident, $value:expr) => { $settings.$field = $value };
}

// It uses the macro.
mod robust_loss;

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

fn run(graph: &Graph, options: TrainSettings) -> Result<Model, TrainError> {
    let split = Split::stratified(graph, SplitSize::PerClass(5), SplitSize::PerClass(5), 1).unwrap();
    train(graph, &split, options, |_| ControlFlow::Continue(()))
}

/// A network of an architecture between `sizes`: attributes, hidden units, classes.
fn initial_of(architecture: Architecture, sizes: &[usize], propagation: Option<Propagation>, seed: u64) -> Model {
    let [attributes, hidden @ .., classes] = sizes else { unreachable!("two sizes at least") };
    let hidden = Some(hidden.to_vec());
    let settings = changed!(TrainSettings::new(Method::CrossEntropy); architecture, hidden, propagation, seed);
    settings.validate().unwrap();
    architecture::initial(&settings, *attributes, *classes).unwrap()
}

fn initial(sizes: &[usize], seed: u64) -> Model {
    initial_of(Architecture::Gcn, sizes, None, seed)
}

/// Weights and biases that are all different from 0, so that no derivative is 0 by chance.
fn randomised(mut model: Model, seed: u64) -> Model {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    model.tensors_mut().flatten().for_each(|value| *value = random.random_range(-0.8..0.8));
    model
}

fn random_model(sizes: &[usize], seed: u64) -> Model {
    randomised(initial(sizes, seed), seed)
}

/// A network of each architecture for 7 attributes and 3 classes, GCNs of several depths.
fn small_models(propagation: &Propagation, seed: u64) -> Vec<(String, Model)> {
    let mut all = Vec::new();
    for architecture in Architecture::ALL {
        let hidden: &[&[usize]] = match architecture {
            Architecture::Gcn => &[&[], &[5], &[4, 3]],
            Architecture::Sgc => &[&[]],
            Architecture::Gcnii => &[&[4, 4], &[3, 3, 3]],
            Architecture::Gin => &[&[3]],
            _ => &[&[4], &[4, 3]],
        };
        for hidden in hidden {
            let sizes = [&[7], *hidden, &[3]].concat();
            let chosen = architecture.has_propagation().then(|| propagation.clone());
            let model = randomised(initial_of(architecture, &sizes, chosen, seed), seed);
            all.push((format!("{architecture} {sizes:?}"), model));
        }
    }
    all
}

fn matrices(graph: &Graph, model: &Model) -> Vec<crate::sparse::SparseMatrix> {
    model.propagations().iter().map(|propagation| propagation.matrix(graph).unwrap()).collect()
}

/// Derivatives by central differences, tensor by tensor.
fn differences(model: &Model, mut loss: impl FnMut(&Model) -> f64) -> Vec<Vec<f64>> {
    let mut model = model.clone();
    let lengths: Vec<usize> = model.tensors().map(<[f64]>::len).collect();
    let mut all = Vec::new();
    for (tensor, &length) in lengths.iter().enumerate() {
        let mut derivative = |i: usize| {
            let mut at = |change: f64| {
                model.tensors_mut().nth(tensor).unwrap()[i] += change;
                loss(&model)
            };
            let (up, down) = (at(1e-6), at(-2e-6));
            at(1e-6);
            (up - down) / 2e-6
        };
        all.push((0..length).map(&mut derivative).collect());
    }
    all
}

fn assert_close(found: &Gradient, expected: &[Vec<f64>], tolerance: f64, case: &str) {
    for (tensor, (found, expected)) in found.tensors().zip(expected).enumerate() {
        for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            assert_near(found, expected, tolerance, &format!("{case} at {i} of tensor {tensor}"));
        }
    }
}

fn assert_near(found: f64, expected: f64, tolerance: f64, case: &str) {
    let near = (found - expected).abs() <= tolerance * expected.abs().max(1e-2);
    assert!(near, "{case}: {found} instead of {expected}");
}

#[test]
fn cross_entropy_has_the_gradient_of_finite_differences() {
    let graph = graph(0);
    for (seed, sizes) in [(1, vec![14, 2]), (2, vec![14, 5, 2]), (3, vec![14, 4, 3, 2])] {
        let targets = labelled(&graph, &[0, 1, 4, 9, 38].map(NodeId));
        let model = initial(&sizes, crate::seed::seed(seed));
        assert_cross_entropy_gradient(&graph, &model, &targets, &format!("{sizes:?}"));
    }
}

#[test]
fn cross_entropy_of_every_architecture_has_the_gradient_of_finite_differences() {
    for (seed, propagation) in [(1, Propagation::SymmetricGcn), (2, Propagation::RowNormalised)] {
        let graph = small_graph(crate::seed::seed(seed));
        let targets = labelled(&graph, &[0, 1, 4, 9, 10, 11].map(NodeId));
        for (case, model) in small_models(&propagation, crate::seed::seed(seed)) {
            assert_cross_entropy_gradient(&graph, &model, &targets, &case);
            for kind in OTHER_KINDS {
                let (graph, model) = (with_kind(&graph, kind), model.clone().with_kind(kind));
                assert_cross_entropy_gradient(&graph, &model, &targets, &format!("{case}, {}", kind.name()));
            }
        }
    }
}

/// Terms of the constant 1 and leaky ReLUs, which no architecture has, a skip past two layers, and a layer that nobody reads.
fn model_of_any_terms() -> Model {
    let dense = |source, propagation, inputs| Term::new(source, propagation, Matrix::zeros(inputs, 3));
    let layer = |terms, activation| Layer::new(terms, vec![0.0; 3], activation);
    let layers = vec![
        layer(vec![dense(Source::Attributes, 0, 7), dense(Source::Ones, 1, 1)], Activation::LeakyRelu(0.2)),
        layer(vec![dense(Source::Layer(0), 1, 3), Term::new(Source::Layer(0), 0, -0.7)], Activation::Relu),
        layer(vec![dense(Source::Layer(0), 0, 3)], Activation::Relu),
        layer(
            vec![dense(Source::Layer(1), 0, 3), dense(Source::Attributes, 1, 7), dense(Source::Layer(0), 1, 3)],
            Activation::None,
        ),
    ];
    let signed = Propagation::Polynomial { of: Box::new(Propagation::RowMean), coefficients: vec![0.5, -1.5] };
    Model::new(7, vec![signed, Propagation::Adjacency], layers).unwrap()
}

#[test]
fn cross_entropy_of_any_terms_has_the_gradient_of_finite_differences() {
    let graph = small_graph(crate::seed::seed(4));
    let model = model_of_any_terms();
    let targets = labelled(&graph, &[0, 1, 4, 9, 10].map(NodeId));
    let model = randomised(model, crate::seed::seed(5));
    assert_cross_entropy_gradient(&graph, &model, &targets, "any terms");
}

/// Holds the gradient, with and without dropout, against finite differences.
fn assert_cross_entropy_gradient(graph: &Graph, model: &Model, targets: &[(NodeId, ClassId)], case: &str) {
    let loss = CrossEntropy::new(graph, model, &matrices(graph, model), targets);
    for dropout in [None, Some(Dropout { rate: 0.3, seed: 5, step: 2 })] {
        let mut gradient = Gradient::zeros(model);
        loss.evaluate(model, dropout, 3.0, &mut gradient);
        let mut scratch = Gradient::zeros(model);
        let expected = differences(model, |model| 3.0 * loss.evaluate(model, dropout, 1.0, &mut scratch));
        assert_close(&gradient, &expected, 1e-5, case);
    }
}

/// Three classes, 12 nodes, 7 attributes; node 10 has no edge and node 11 no attribute.
fn small_graph(seed: u64) -> Graph {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let edges: Vec<(u32, u32)> = (0..14).map(|_| (random.random_range(0..10), random.random_range(0..12))).collect();
    let edges: Vec<(u32, u32)> = edges.into_iter().filter(|&(_, to)| to != 10).collect();
    let ones: Vec<(u32, u32)> = (0..25).map(|_| (random.random_range(0..11), random.random_range(0..7))).collect();
    let labels = (0..12).map(|node| Some(ClassId(node % 3))).collect();
    Graph::new(12, 7, &edges, &ones).unwrap().with_labels(labels).unwrap()
}

fn budgets() -> Vec<Budget> {
    let count = LocalBudget::Count;
    vec![
        Budget::new(3, count(2)),
        Budget::new(1, count(1)),
        Budget::new(100, count(3)),
        Budget::new(0, count(1)),
        Budget::new(4, count(2)).direction(Direction::AddOnly).protect_attributes([AttributeId(2)]),
        Budget::new(4, count(7)).direction(Direction::DeleteOnly).protect_nodes([NodeId(1)]).local_at(NodeId(3), 1),
    ]
}

fn hinge(margin: f64, saturation: Option<f64>) -> Goal {
    Goal::Hinge { margin, saturation }
}

/// Labelled nodes with both losses, unlabelled ones around their predicted class.
fn targets(goal: Goal) -> Vec<Target> {
    let labelled = [0, 5, 7, 10].map(|node| Target { node: NodeId(node), class: Some(ClassId(node % 3)), goal });
    let others = [2, 3, 11].map(|node| Target { node: NodeId(node), class: None, goal });
    [labelled.as_slice(), &others].concat()
}

#[test]
fn robust_losses_have_the_gradient_of_the_plain_formulas() {
    let goals = [Goal::CrossEntropy, hinge(0.4, None), hinge(2.2, None), hinge(1.1, Some(0.7))];
    for (seed, budget) in (0..).zip(budgets().into_iter().cycle().take(12)) {
        let graph = small_graph(crate::seed::seed(seed));
        let models = small_models(&Propagation::SymmetricGcn, crate::seed::seed(seed + 50));
        // Every budget with every architecture; more of what is quick.
        let models = models.into_iter().filter(|(_, model)| seed < 6 || model.as_gcn().is_some());
        for (case, model) in models {
            // Two of the four losses each time.
            for &goal in goals.iter().skip((seed + seed / 6) as usize % 2).step_by(2) {
                assert_plain_formulas(&graph, &model, &budget, goal, 1, &format!("seed {seed}, {case}"));
            }
        }
    }
}

/// The same where rows are divided by the number of their ones, and of real values.
#[test]
fn robust_losses_on_other_attributes_have_the_gradient_of_the_plain_formulas() {
    let goals = [Goal::CrossEntropy, hinge(1.1, Some(0.7))];
    for (seed, budget) in (70..).zip(budgets()) {
        let bits = small_graph(crate::seed::seed(seed));
        let models = small_models(&Propagation::SymmetricGcn, crate::seed::seed(seed));
        for ((case, model), i) in models.into_iter().filter(|(_, model)| model.layers().len() < 4).zip(seed as usize..)
        {
            for kind in OTHER_KINDS {
                let (graph, model) = (with_kind(&bits, kind), model.clone().with_kind(kind));
                let case = format!("seed {seed}, {case}, {}", kind.name());
                // All sets of flips of a row are tried for each number.
                assert_plain_formulas(&graph, &model, &budget, goals[i % 2], 29, &case);
            }
        }
    }
}

const OTHER_KINDS: [AttributeKind; 2] = [AttributeKind::NormalisedRows, AttributeKind::RealValues];

/// Holds the loss by the dual, and every so many numbers of its gradient, against the plain formulas.
fn assert_plain_formulas(graph: &Graph, model: &Model, budget: &Budget, goal: Goal, every: usize, case: &str) {
    let (limits, matrices) = (&budget.limits(graph).unwrap(), &matrices(graph, model)[..]);
    let term = RobustTerm { graph, matrices, limits, worst_case: WorstCase::Dual };
    let targets = targets(goal);
    let case = format!("{case}, {goal:?}, {budget:?}");
    let mut gradient = Gradient::zeros(model);
    let value = term.evaluate(model, &targets, Some((1.0, &mut gradient)));
    let dense = |tensor, i| Dense::new(graph, limits, matrices, model, (tensor, i)).loss(&targets);
    let loss = dense(0, 0).value;
    assert!((value.loss - loss).abs() <= 1e-12 * loss.abs().max(1.0), "{case}: {} and {loss}", value.loss);
    let tensors = gradient.tensors().enumerate();
    let numbers =
        tensors.flat_map(|(tensor, values)| values.iter().enumerate().map(move |(i, &value)| (tensor, i, value)));
    for (tensor, i, found) in numbers.step_by(every) {
        let expected = dense(tensor, i).derivative;
        assert_near(found, expected, 1e-9, &format!("{case} at {i} of tensor {tensor}"));
    }
}

#[test]
fn robust_losses_have_the_gradient_of_finite_differences() {
    let goals = [Goal::CrossEntropy, hinge(1.3, None), hinge(1.3, Some(0.5))];
    for (seed, budget) in (20..).zip(budgets()) {
        let bits = small_graph(crate::seed::seed(seed));
        let models = small_models(&Propagation::RowNormalised, crate::seed::seed(seed));
        for ((case, model), i) in models.into_iter().zip(seed as usize..) {
            for (kind, worst_case) in [AttributeKind::Bits, OTHER_KINDS[i % 2]]
                .into_iter()
                .flat_map(|kind| WorstCase::ALL.map(|of| (kind, of)))
            {
                let (graph, model, targets) =
                    (with_kind(&bits, kind), model.clone().with_kind(kind), targets(goals[i % 3]));
                let (limits, matrices) = (budget.limits(&graph).unwrap(), matrices(&graph, &model));
                let term = RobustTerm { graph: &graph, matrices: &matrices, limits: &limits, worst_case };
                let mut gradient = Gradient::zeros(&model);
                term.evaluate(&model, &targets, Some((2.0, &mut gradient)));
                let expected = differences(&model, |model| 2.0 * term.evaluate(model, &targets, None).loss);
                let case =
                    format!("seed {seed}, {case}, {}, {worst_case}, {:?}, {budget:?}", kind.name(), goals[i % 3]);
                assert_close(&gradient, &expected, 1e-5, &case);
            }
        }
    }
}

/// What a batch sees is cut out of the graph so that not one bit of loss, margins and gradient changes.
#[test]
fn losses_on_what_a_batch_sees_are_those_on_the_whole_graph() {
    for (seed, budget) in (60..).zip(budgets()) {
        let bits = small_graph(crate::seed::seed(seed));
        let mut models = small_models(&Propagation::SymmetricGcn, crate::seed::seed(seed));
        models.push(("terms of the constant".to_owned(), randomised(model_of_any_terms(), crate::seed::seed(seed))));
        for ((case, model), i) in models.into_iter().zip(seed as usize..) {
            let kind = [AttributeKind::Bits, OTHER_KINDS[0], OTHER_KINDS[1]][i % 3];
            let (graph, model) = (with_kind(&bits, kind), model.with_kind(kind));
            let limits = budget.limits(&graph).unwrap();
            let mut surroundings = Surroundings::new(&graph, matrices(&graph, &model), limits.clone());
            for (worst_case, nodes) in WorstCase::ALL.into_iter().zip([&[0, 7, 11][..], &[2]]) {
                let target =
                    |&node: &u32| Target { node: NodeId(node), class: Some(ClassId(1)), goal: hinge(2.2, None) };
                let mut targets: Vec<Target> = nodes.iter().map(target).collect();
                let evaluate = |term: RobustTerm, targets: &[Target]| {
                    let mut gradient = Gradient::zeros(&model);
                    let value = term.evaluate(&model, targets, Some((2.0, &mut gradient)));
                    (value.loss, value.margins, gradient)
                };
                let all = matrices(&graph, &model);
                let whole = RobustTerm { graph: &graph, matrices: &all, limits: &limits, worst_case };
                let expected = evaluate(whole, &targets);
                let labels: Vec<_> = nodes.iter().map(|&node| (NodeId(node), ClassId(node % 3))).collect();
                let clean = CrossEntropy::new(&graph, &model, &all, &labels).value(&model);

                let seen = surroundings.of(&model, targets.iter().map(|target| target.node));
                targets.iter_mut().for_each(|target| target.node = seen.place(target.node));
                let part =
                    RobustTerm { graph: &seen.graph, matrices: &seen.matrices, limits: &seen.limits, worst_case };
                assert_eq!(evaluate(part, &targets), expected, "seed {seed}, {case}, {}, {nodes:?}", kind.name());
                let labels: Vec<_> = labels.iter().map(|&(node, label)| (seen.place(node), label)).collect();
                let found = CrossEntropy::new(&seen.graph, &model, &seen.matrices, &labels).value(&model);
                assert_eq!(found, clean, "seed {seed}, {case}, {}", kind.name());
            }
        }
    }
}

/// The mean over batches is the mean over all labelled nodes, for each shuffle that is dealt out to the end.
#[test]
fn the_cross_entropy_of_batches_is_on_average_that_of_all() {
    let graph = graph(3);
    let split = Split::stratified(&graph, SplitSize::PerClass(6), SplitSize::PerClass(0), 1).unwrap();
    let steps = |labelled_batch: Option<usize>, steps: usize| {
        let (dropout, learning_rate) = (Some(0.0), 1e-300);
        let base =
            changed!(options(Method::CrossEntropy); labelled_batch, dropout, learning_rate, patience: None, steps);
        let mut losses = Vec::new();
        let model = train(&graph, &split, base, |step| {
            losses.extend(step.cross_entropy);
            ControlFlow::Continue(())
        });
        (losses, model.unwrap())
    };
    let (all, of_all) = steps(None, 1);
    for size in [1, 3, 4] {
        let (some, _) = steps(Some(size), 24 / size);
        assert!(some.iter().any(|loss| (loss - all[0]).abs() > 1e-3), "batches differ");
        assert!((mean(&some) - all[0]).abs() < 1e-12, "batches of {size}: {} and {}", mean(&some), all[0]);
    }
    // Batches of all labelled nodes, or more, change nothing.
    for size in [12, 99] {
        assert_eq!(steps(Some(size), 1), (all.clone(), of_all.clone()));
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The same graph with attributes of a kind: of real values, any.
fn with_kind(graph: &Graph, kind: AttributeKind) -> Graph {
    let graph = graph.clone().with_kind(kind);
    let Some(values) = graph.values() else { return graph };
    let (rows, columns) = (values.entries().rows(), values.entries().columns());
    let numbers = (0..rows * columns).map(|i| (i as f64 * 0.7).sin() * 1.5);
    let values = crate::values::Values::new(Matrix::from_values(rows, columns, numbers.collect())).unwrap();
    graph.with_values(values).unwrap()
}

/// On attributes that are no plain bits.
#[test]
fn margins_on_other_attributes_are_those_of_the_fast_engine() {
    for (seed, (budget, divided)) in
        (40..).zip(budgets().into_iter().flat_map(|budget| OTHER_KINDS.map(|kind| (budget.clone(), kind))))
    {
        let graph = with_kind(&small_graph(crate::seed::seed(seed)), divided);
        let limits = budget.limits(&graph).unwrap();
        for (case, model) in small_models(&Propagation::SymmetricGcn, crate::seed::seed(seed)) {
            let model = model.with_kind(divided);
            let matrices = matrices(&graph, &model);
            let (graph, matrices, limits) = (&graph, &matrices[..], &limits);
            let term = RobustTerm { graph, matrices, limits, worst_case: WorstCase::Dual };
            let targets: Vec<Target> =
                graph.node_ids().map(|node| Target { node, class: None, goal: Goal::CrossEntropy }).collect();
            let margins = term.evaluate(&model, &targets, None).margins;
            let certifier = Certifier::new(graph, &model).unwrap().budget(budget.clone());
            let certificates = certifier.engine(crate::Engine::Fast).certify(&graph.node_ids().collect::<Vec<_>>());
            for (margin, certificate) in margins.iter().zip(certificates.unwrap()) {
                let expected = certificate.margin().value();
                let off = (margin - expected).abs();
                assert!(off <= 1e-9 * (1.0 + expected.abs()), "seed {seed}, {case}: {margin} and {expected}");
            }
        }
    }
}

#[test]
fn the_cross_entropy_is_that_of_the_network() {
    let graph = graph(3);
    let model = initial(&[14, 6, 2], 4);
    let network = Network::new(&graph, &model).unwrap();
    let targets = labelled(&graph, &[2, 3, 39].map(NodeId));
    let expected: f64 = targets
        .iter()
        .map(|(node, label)| {
            let logits = network.logits_under(*node, &[]);
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[label.index()]
        })
        .sum();
    let loss = CrossEntropy::new(&graph, &model, network.matrices(), &targets);
    assert!((loss.value(&model) - expected / 3.0).abs() < 1e-12);
}

/// Default options of `method` with few enough steps for a test.
fn options(method: Method) -> TrainSettings {
    changed!(TrainSettings::new(method); steps: 60, labelled_steps: 20, batch: Some(7), warm_up: 5)
}

#[test]
fn every_method_learns_and_never_yields_nan() {
    for method in Method::ALL {
        for hidden in [vec![], vec![8], vec![8, 8]].map(Some) {
            let graph = graph(1);
            let budget = Budget::new(2, LocalBudget::Count(1));
            let options = changed!(options(method); hidden, budget, steps: 150);
            let model = run(&graph, options.clone()).unwrap();
            let nodes: Vec<NodeId> = graph.node_ids().collect();
            let accuracy = accuracy(&graph, &model, &nodes).unwrap().unwrap();
            assert!(accuracy > 0.8, "{method}, hidden {:?}: accuracy {accuracy}", options.hidden);
        }
    }
}

#[test]
fn every_architecture_learns_by_every_method() {
    let graph = graph(1);
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    for (architecture, method) in Architecture::ALL.into_iter().flat_map(|a| Method::ALL.map(|method| (a, method))) {
        let budget = Budget::new(2, LocalBudget::Count(1));
        let model = run(&graph, changed!(options(method); architecture, budget, steps: 150)).unwrap();
        let accuracy = accuracy(&graph, &model, &nodes).unwrap().unwrap();
        assert!(accuracy > 0.75, "{architecture} by {method}: accuracy {accuracy}");
    }
}

#[test]
fn what_an_architecture_fixes_stays_fixed() {
    let graph = graph(1);
    let fixed = |model: &Model| {
        let steps = model.layers().iter().filter(|layer| layer.terms().iter().all(|t| t.weight().dense().is_none()));
        steps.map(|layer| (layer.bias().to_vec(), layer.terms().to_vec())).collect::<Vec<_>>()
    };
    let options = changed!(options(Method::RobustHingeUnlabelled); architecture: Architecture::Gcnii);
    let model = run(&graph, options.clone()).unwrap();
    let before = architecture::initial(&options, graph.attribute_count(), graph.classes()).unwrap();
    assert_eq!(fixed(&model).len(), 2);
    assert_eq!(fixed(&model), fixed(&before));
    assert!(model.layers()[0].bias().iter().any(|&bias| bias != 0.0), "others do not");
}

#[test]
fn robust_methods_make_nodes_robust() {
    let graph = graph(1);
    let budget = Budget::new(3, LocalBudget::Count(2));
    let robust = |method, attribute_dropout| {
        let options = changed!(options(method); attribute_dropout, steps: 150);
        let model = run(&graph, changed!(options; budget: budget.clone())).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
        let certificates = certifier.certify(&nodes).unwrap();
        certificates.iter().filter(|certificate| certificate.is_robust()).count()
    };
    let [standard, rce, rh, unlabelled] = Method::ALL.map(|method| robust(method, Some(0.0)));
    assert!(rce > standard && rh > standard && unlabelled > standard, "{standard}, {rce}, {rh}, {unlabelled}");
    // Of so few words, a third is much: by default, rce only keeps up here.
    let [standard, rce, rh, unlabelled] = Method::ALL.map(|method| robust(method, None));
    assert!(rce >= standard && rh > standard && unlabelled > standard, "{standard}, {rce}, {rh}, {unlabelled}");
}

#[test]
fn robust_methods_make_nodes_robust_on_other_attributes() {
    let budget = Budget::new(5, LocalBudget::Count(2));
    for (kind, hidden) in OTHER_KINDS.into_iter().flat_map(|kind| [vec![8], vec![8, 8]].map(|hidden| (kind, hidden))) {
        let graph = graph(1).with_kind(kind);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let robust = |method| {
            let (weight_decay, attribute_dropout) = (Some(1e-4), Some(0.0));
            let options = changed!(options(method); weight_decay, attribute_dropout, steps: 150);
            let model = run(&graph, changed!(options; hidden: Some(hidden.clone()), budget: budget.clone())).unwrap();
            assert_eq!(accuracy(&graph, &model, &nodes).unwrap(), Some(1.0), "{method} on {}", kind.name());
            let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
            certifier.certify(&nodes).unwrap().iter().filter(|certificate| certificate.is_robust()).count()
        };
        let [standard, rce, rh, unlabelled] = Method::ALL.map(robust);
        let all = format!("{}, {hidden:?}: {standard}, {rce}, {rh}, {unlabelled}", kind.name());
        assert!(rce > standard && rh > standard && unlabelled > standard, "{all}");
    }
}

/// With steps too small to change a weight, a loss depends on nothing but what is left out.
#[test]
fn attributes_are_left_out_of_the_loss_but_not_of_validation() {
    let graph = graph(1);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(5), 1).unwrap();
    for method in [Method::RobustCrossEntropy, Method::RobustHinge, Method::RobustHingeUnlabelled] {
        let losses = |rate: f64| {
            let (attribute_dropout, learning_rate) = (Some(rate), 1e-300);
            let patience = Some(1000);
            let options = changed!(options(method); attribute_dropout, learning_rate, patience);
            let (mut robust, mut validation) = (Vec::new(), Vec::new());
            train(&graph, &split, options, |report| {
                robust.extend(report.robust_loss);
                validation.extend(report.validation_loss);
                ControlFlow::Continue(())
            })
            .unwrap();
            (robust, validation)
        };
        let ((all, validation), (some, same)) = (losses(0.0), losses(0.6));
        assert!(all.len() >= 20 && all.iter().zip(&some).filter(|(all, some)| all != some).count() >= 20, "{method}");
        assert!(!validation.is_empty());
        assert_eq!(validation, same, "{method}");
    }
}

#[test]
fn bits_depend_on_the_seed_and_not_on_threads() {
    let graph = graph(2);
    for (method, labelled_batch) in Method::ALL.into_iter().flat_map(|method| [(method, None), (method, Some(4))]) {
        let with = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&graph, changed!(options(method); steps: 20, labelled_batch, seed))).unwrap()
        };
        assert_eq!(with(1, 3), with(4, 3));
        assert_ne!(with(1, 3), with(1, 4));
    }
}

#[test]
fn a_resumed_run_ends_in_the_same_bits() {
    let graph = graph(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    for (method, validation) in Method::ALL.into_iter().flat_map(|method| [(method, 0), (method, 5)]) {
        let labelled_batch = (method != Method::RobustHinge).then_some(3);
        let size = SplitSize::PerClass(validation);
        let split = Split::stratified(&graph, SplitSize::PerClass(5), size, 1).unwrap();
        let options = changed!(options(method); patience: Some(15), labelled_batch);
        let mut whole = Trainer::new(&graph, &split, options.clone()).unwrap();
        let mut stopped = Trainer::new(&graph, &split, options.clone()).unwrap();
        let mut reports = Vec::new();
        while let Some(report) = whole.step().unwrap() {
            reports.push(report);
            if reports.len() == 17 {
                whole.write_checkpoint(&path).unwrap();
            }
        }
        stopped.resume(&path).unwrap();
        assert_eq!(stopped.steps_done(), 17);
        for expected in &reports[17..] {
            let report = stopped.step().unwrap().unwrap();
            assert_eq!(report, *expected);
        }
        assert!(stopped.is_finished());
        assert_eq!(stopped.step().unwrap(), None);
        assert_eq!(stopped.state, whole.state);

        let others = [changed!(options.clone(); seed: 9), changed!(options; architecture: Architecture::Mlp)];
        for other in others {
            let refused = Trainer::new(&graph, &split, other).unwrap().resume(&path);
            assert!(matches!(refused, Err(CheckpointError::OtherRun { .. })));
        }
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(matches!(stopped.resume(&path), Err(CheckpointError::Format { .. })));
        assert!(matches!(stopped.resume(folder.path().join("none")), Err(CheckpointError::Io { .. })));
    }
}

#[test]
fn a_checkpoint_whose_best_step_is_to_come_is_refused() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let trainer = Trainer::new(&graph, &split, options(Method::CrossEntropy)).unwrap();
    let mut kept = trainer.state.checkpoint(trainer.key.clone());
    assert!(trainer.state.restored(&kept).is_ok());
    kept.progress = kept.progress.replace(r#""best_step":0"#, r#""best_step":2"#);
    assert_eq!(trainer.state.restored(&kept).unwrap_err(), "its best step is 2, of 0 steps");
}

#[test]
fn training_may_start_from_given_weights() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let options = options(Method::RobustHinge);
    let trainer = |options: &TrainSettings| Trainer::new(&graph, &split, options.clone()).unwrap();
    let units = options.hidden_sizes()[0];
    let given = random_model(&[14, units, 2], 3);
    let mut started = trainer(&options).start_from(given.clone()).unwrap();
    assert_eq!(started.model(), &given);
    assert_ne!(started.key, trainer(&options).key, "another run");
    assert!(started.step().unwrap().is_some() && started.model() != &given && !started.is_finished());

    let wider = changed!(options.clone(); hidden: Some(vec![units + 1]));
    let refused = trainer(&wider).start_from(given.clone()).unwrap_err().to_string();
    assert!(refused.contains("sizes"), "{refused}");
    let averaging = changed!(options.clone(); propagation: Some(Propagation::RowNormalised));
    assert!(trainer(&averaging).start_from(given.clone()).unwrap_err().to_string().contains("propagation"));
    let sage = changed!(options.clone(); architecture: Architecture::Sage);
    let refused = trainer(&sage).start_from(given.clone()).unwrap_err().to_string();
    assert!(
        refused.contains("its propagation is symmetric-gcn, but the settings ask for row-mean and identity"),
        "{refused}"
    );
    let skipping = |source| {
        let first = Layer::new(
            vec![Term::new(Source::Attributes, 0, Matrix::zeros(14, units))],
            vec![0.0; units],
            Activation::Relu,
        );
        let last = vec![Term::new(source, 0, Matrix::zeros(if source == Source::Attributes { 14 } else { units }, 2))];
        Model::new(14, vec![Propagation::SymmetricGcn], vec![first, Layer::new(last, vec![0.0; 2], Activation::None)])
            .unwrap()
    };
    assert!(trainer(&options).start_from(skipping(Source::Layer(0))).is_ok());
    let refused = trainer(&options).start_from(skipping(Source::Attributes)).unwrap_err().to_string();
    assert!(refused.contains("put together as those of gcn"), "{refused}");
}

#[test]
fn the_worst_case_loss_starts_slowly() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let options = changed!(options(Method::RobustHinge); warm_up: 4, robust_weight: Some(2.0));
    let mut step = 0.0;
    train(&graph, &split, options, |report| {
        step += 1.0;
        let weight = 2.0 * f64::min(step / 4.0, 1.0);
        let expected = report.cross_entropy.unwrap() + weight * report.robust_loss.unwrap();
        assert!((report.loss - expected).abs() <= 1e-12 * expected);
        ControlFlow::Continue(())
    })
    .unwrap();
}

#[test]
fn weights_suit_the_graph_unless_they_are_given() {
    let graph = graph(0);
    let suited = |method, labelled| {
        let options = TrainSettings::new(method).suited_to(&graph, labelled);
        (options.weight_decay.unwrap(), options.robust_weight.unwrap())
    };
    assert_eq!(
        [0, 300, 600].map(|labelled| suited(Method::RobustHinge, labelled)),
        [(0.03, 0.2), (0.03, 0.2), (0.015, 0.2)]
    );
    let ones = graph.attributes().entries() as f64 / (graph.nodes() * graph.attribute_count()) as f64;
    assert_eq!(suited(Method::RobustHingeUnlabelled, 3000), (0.1 * ones, 0.06));
    let given = changed!(
        TrainSettings::new(Method::RobustHinge);
        weight_decay: Some(7.0), robust_weight: Some(0.0), attribute_dropout: Some(0.1), dropout: Some(0.2),
        hidden: Some(vec![5]), worst_case: Some(WorstCase::FirstOrder),
        propagation: Some(Propagation::RowNormalised)
    );
    assert_eq!(given.clone().suited_to(&graph, 9), given);
    let suited = |architecture| {
        let settings = changed!(TrainSettings::new(Method::CrossEntropy); architecture).suited_to(&graph, 9);
        (settings.hidden.unwrap(), settings.dropout.unwrap(), settings.propagation)
    };
    assert_eq!(suited(Architecture::Gcnii), (vec![32; 3], 0.5, Some(Propagation::SymmetricGcn)));
    assert_eq!(suited(Architecture::Gin), (vec![32], 0.0, None));
}

#[test]
fn deep_networks_are_trained_against_the_worst_case_of_first_order() {
    let worst_case = |architecture, hidden: Option<Vec<usize>>| {
        let settings = changed!(TrainSettings::new(Method::RobustHingeUnlabelled); architecture, hidden);
        let settings = settings.suited_to(&graph(0), 9);
        (settings.worst_case.unwrap(), settings.robust_weight.unwrap())
    };
    for hidden in [None, Some(vec![]), Some(vec![7])] {
        assert_eq!(worst_case(Architecture::Gcn, hidden), (WorstCase::Dual, 0.6));
    }
    assert_eq!(worst_case(Architecture::Sgc, None).0, WorstCase::Dual);
    for (architecture, hidden) in
        [(Architecture::Gcn, Some(vec![7, 7])), (Architecture::Gin, None), (Architecture::Gcnii, None)]
    {
        let (worst_case, weight) = worst_case(architecture, hidden.clone());
        let hidden_layers = if hidden.is_some() { 2.0 } else { 3.0 };
        assert_eq!((worst_case, weight), (WorstCase::FirstOrder, 0.6 * hidden_layers), "{architecture}");
    }
}

#[test]
fn unlabelled_nodes_come_second() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let mut phases = Vec::new();
    train(&graph, &split, options(Method::RobustHingeUnlabelled), |report| {
        phases.push(report.phase);
        assert!(report.phase == Phase::All || report.unlabelled_margin.is_none());
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected = [vec![Phase::Labelled; 20], vec![Phase::All; 60]].concat();
    assert_eq!(phases, expected);
}

#[test]
fn patience_ends_training_and_the_best_weights_are_kept() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(5), 1).unwrap();
    let options =
        changed!(TrainSettings::new(Method::CrossEntropy); patience: Some(10), learning_rate: 0.3, steps: 2000);
    let mut trainer = Trainer::new(&graph, &split, options).unwrap();
    let mut losses = Vec::new();
    while let Some(report) = trainer.step().unwrap() {
        losses.push(report.validation_loss.unwrap());
    }
    let smallest = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses.iter().rposition(|&loss| loss == smallest), Some(losses.len() - 11));
    let validation = labelled(&graph, &split.part(crate::graph::Part::Validation));
    let (model, matrices) = (trainer.model(), matrices(&graph, trainer.model()));
    assert_eq!(CrossEntropy::new(&graph, model, &matrices, &validation).value(model), smallest);
}

#[test]
fn patience_waits_for_a_look_at_the_validation_part() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(5), 1).unwrap();
    let options = changed!(options(Method::RobustHinge); patience: Some(3), warm_up: 0);
    let mut trainer = Trainer::new(&graph, &split, options).unwrap();
    let mut looks = 0;
    while let Some(report) = trainer.step().unwrap() {
        looks += usize::from(report.validation_loss.is_some());
    }
    assert!(looks > 0 && trainer.state.best.is_some());
}

#[test]
fn a_clipped_gradient_keeps_its_direction() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let first_moment = |clip| {
        let options = changed!(options(Method::RobustHinge); clip, weight_decay: Some(0.0));
        let mut trainer = Trainer::new(&graph, &split, options).unwrap();
        let norm = trainer.step().unwrap().unwrap().gradient_norm;
        (norm, trainer.state.adam.first)
    };
    let (norm, free) = first_moment(None);
    let (_, clipped) = first_moment(Some(norm / 4.0));
    for (free, clipped) in free.tensors().flatten().zip(clipped.tensors().flatten()) {
        assert!((free / 4.0 - clipped).abs() <= 1e-15, "{free} and {clipped}");
    }
    assert_eq!(first_moment(Some(2.0 * norm)).1, free);
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let graph = graph(0);
    let wrong = |change: fn(&mut TrainSettings)| {
        let mut options = options(Method::RobustHinge);
        change(&mut options);
        assert!(
            matches!(run(&graph, options.clone()), Err(TrainError::Settings(SettingsError::Value { .. }))),
            "{options:?}"
        );
    };
    wrong(|options| options.hidden = Some(vec![4, 0]));
    wrong(|options| (options.architecture, options.hidden) = (Architecture::Sgc, Some(vec![4])));
    wrong(|options| options.steps = 0);
    wrong(|options| options.batch = Some(0));
    wrong(|options| options.patience = Some(0));
    wrong(|options| options.learning_rate = f64::NAN);
    wrong(|options| options.weight_decay = Some(-1.0));
    wrong(|options| options.dropout = Some(1.0));
    wrong(|options| options.cross_entropy_weight = f64::INFINITY);
    wrong(|options| options.robust_weight = Some(-0.5));
    wrong(|options| options.labelled_margin = f64::NAN);
    wrong(|options| options.unlabelled_margin = -1.0);
    wrong(|options| options.saturation = Some(0.0));
    wrong(|options| options.saturation = Some(f64::INFINITY));
    wrong(|options| options.clip = Some(0.0));
    wrong(|options| (options.cross_entropy_weight, options.robust_weight) = (0.0, Some(0.0)));
    let averaging = changed!(options(Method::RobustHinge); architecture: Architecture::Mlp, propagation: Some(Propagation::RowNormalised));
    assert!(matches!(run(&graph, averaging), Err(TrainError::Settings(SettingsError::NoPropagation { .. }))));
    let budget = Budget::new(1, LocalBudget::Count(1)).protect_nodes([NodeId(40)]);
    let unknown = run(&graph, changed!(options(Method::RobustHinge); budget));
    assert!(matches!(unknown, Err(TrainError::Settings(SettingsError::Budget(_)))));

    let train_on = |graph: &Graph, nodes: Vec<NodeId>| {
        let split = Split::new(graph.nodes(), nodes, vec![]).unwrap();
        train(graph, &split, options(Method::RobustHingeUnlabelled), |_| ControlFlow::Continue(()))
    };
    assert!(matches!(train_on(&graph, vec![]), Err(TrainError::Settings(SettingsError::NothingToLearn))));
    assert!(matches!(
        train_on(&graph, vec![NodeId(0)]),
        Err(TrainError::Settings(SettingsError::UnseenClass { class: ClassId(1) }))
    ));
    let one_class = Graph::new(2, 1, &[], &[]).unwrap().with_labels(vec![Some(ClassId(0)); 2]).unwrap();
    assert!(matches!(
        train_on(&one_class, vec![NodeId(0)]),
        Err(TrainError::Settings(SettingsError::TooFewClasses { classes: 1 }))
    ));
    let split = Split::new(41, vec![NodeId(0), NodeId(40)], vec![]).unwrap();
    let other = Trainer::new(&graph, &split, options(Method::CrossEntropy)).map(|_| ());
    assert!(matches!(other, Err(TrainError::Settings(SettingsError::Split { split: 41, nodes: 40 }))));
    for method in Method::ALL {
        let huge = changed!(options(method); learning_rate: 1e300);
        assert!(matches!(run(&graph, huge), Err(TrainError::Diverged { .. })));
    }
}

#[test]
fn the_observer_may_break_off() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let mut steps = 0;
    let stop = |report: &StepRecord| {
        steps = report.step;
        if report.step == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    train(&graph, &split, options(Method::CrossEntropy), stop).unwrap();
    assert_eq!(steps, 3);
}
