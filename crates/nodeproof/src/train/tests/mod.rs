//! Gradients against finite differences and against the plain formulas; training as a whole.

mod dense;

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cross_entropy::CrossEntropy;
use super::dropout::Dropout;
use super::goal::Goal;
use super::robust::{RobustTerm, Target};
use super::*;
use crate::Certifier;
use crate::budget::{Budget, Direction, LocalBudget};
use crate::gradient::Gradient;
use crate::graph::SplitSize;
use crate::ids::AttributeId;
use crate::model::Propagation;

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

fn initial(sizes: &[usize], seed: u64) -> Model {
    xavier::initial(sizes, Propagation::SymmetricGcn, seed).unwrap()
}

/// Weights and biases that are all different from 0, so that no derivative is 0 by chance.
fn random_model(sizes: &[usize], seed: u64) -> Model {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = initial(sizes, seed);
    model.tensors_mut().flatten().for_each(|value| *value = random.random_range(-0.8..0.8));
    model
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
            let near = (found - expected).abs() <= tolerance * expected.abs().max(1e-2);
            assert!(near, "{case}: {found} instead of {expected} at {i} of tensor {tensor}");
        }
    }
}

#[test]
fn cross_entropy_has_the_gradient_of_finite_differences() {
    let graph = graph(0);
    for (seed, sizes) in [(1, vec![14, 2]), (2, vec![14, 5, 2]), (3, vec![14, 4, 3, 2])] {
        let propagation = Propagation::SymmetricGcn.matrix(&graph).unwrap();
        let targets = labelled(&graph, &[0, 1, 4, 9, 38].map(NodeId));
        let loss = CrossEntropy::new(&graph, &propagation, &targets, sizes.len() - 1);
        let model = initial(&sizes, crate::seed::seed(seed));
        let dropout = Some(Dropout { rate: 0.3, seed: 5, step: 2 });
        let mut gradient = Gradient::zeros(&model);
        loss.evaluate(&model, dropout, 3.0, &mut gradient);
        let mut scratch = Gradient::zeros(&model);
        let expected = differences(&model, |model| 3.0 * loss.evaluate(model, dropout, 1.0, &mut scratch));
        assert_close(&gradient, &expected, 1e-5, &format!("{sizes:?}"));
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
    for (seed, budget) in (0..).zip(budgets().into_iter().cycle().take(12)) {
        let graph = small_graph(crate::seed::seed(seed));
        let limits = budget.limits(&graph).unwrap();
        let propagation = Propagation::SymmetricGcn.matrix(&graph).unwrap();
        let term = RobustTerm { graph: &graph, propagation: &propagation, limits: &limits, attribute_dropout: None };
        for sizes in [vec![7, 3], vec![7, 5, 3], vec![7, 4, 3, 3]] {
            let model = random_model(&sizes, crate::seed::seed(seed + 50));
            for goal in [Goal::CrossEntropy, hinge(0.4, None), hinge(2.2, None), hinge(1.1, Some(0.7))] {
                let targets = targets(goal);
                let case = format!("seed {seed}, {sizes:?}, {goal:?}, {budget:?}");
                let mut gradient = Gradient::zeros(&model);
                let value = term.evaluate(&model, &targets, Some((1.0, &mut gradient)));
                let lengths: Vec<usize> = model.tensors().map(<[f64]>::len).collect();
                let dense = |tensor, i| Dense::new(&graph, &limits, &propagation, &model, (tensor, i)).loss(&targets);
                let loss = dense(0, 0).value;
                assert!((value.loss - loss).abs() <= 1e-12 * loss.abs().max(1.0), "{case}: {} and {loss}", value.loss);
                let derivatives = |(tensor, &length): (usize, &usize)| -> Vec<f64> {
                    (0..length).map(|i| dense(tensor, i).derivative).collect()
                };
                let expected: Vec<Vec<f64>> = lengths.iter().enumerate().map(derivatives).collect();
                assert_close(&gradient, &expected, 1e-9, &case);
            }
        }
    }
}

#[test]
fn robust_losses_have_the_gradient_of_finite_differences() {
    for (seed, budget) in (20..).zip(budgets()) {
        let graph = small_graph(crate::seed::seed(seed));
        let limits = budget.limits(&graph).unwrap();
        let propagation = Propagation::RowNormalised.matrix(&graph).unwrap();
        let term = RobustTerm { graph: &graph, propagation: &propagation, limits: &limits, attribute_dropout: None };
        for sizes in [vec![7, 3], vec![7, 5, 3], vec![7, 4, 3, 3]] {
            let model = random_model(&sizes, crate::seed::seed(seed));
            for goal in [Goal::CrossEntropy, hinge(1.3, None), hinge(1.3, Some(0.5))] {
                let targets = targets(goal);
                let mut gradient = Gradient::zeros(&model);
                term.evaluate(&model, &targets, Some((2.0, &mut gradient)));
                let expected = differences(&model, |model| 2.0 * term.evaluate(model, &targets, None).loss);
                assert_close(&gradient, &expected, 1e-5, &format!("seed {seed}, {sizes:?}, {goal:?}, {budget:?}"));
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
    let loss = CrossEntropy::new(&graph, network.propagation(), &targets, 2);
    assert!((loss.value(&model) - expected / 3.0).abs() < 1e-12);
}

/// Default options of `method` with few enough steps for a test.
fn options(method: Method) -> TrainSettings {
    changed!(TrainSettings::new(method); steps: 60, labelled_steps: 20, batch: Some(7), warm_up: 5)
}

#[test]
fn every_method_learns_and_never_yields_nan() {
    for method in Method::ALL {
        for hidden in [vec![], vec![8], vec![8, 8]] {
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
    for method in Method::ALL {
        let with = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&graph, changed!(options(method); steps: 20, seed))).unwrap()
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
        let size = SplitSize::PerClass(validation);
        let split = Split::stratified(&graph, SplitSize::PerClass(5), size, 1).unwrap();
        let options = changed!(options(method); patience: Some(15));
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

        let other = changed!(options; seed: 9);
        let refused = Trainer::new(&graph, &split, other).unwrap().resume(&path);
        assert!(matches!(refused, Err(CheckpointError::OtherRun { .. })));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(matches!(stopped.resume(&path), Err(CheckpointError::Format { .. })));
        assert!(matches!(stopped.resume(folder.path().join("none")), Err(CheckpointError::Io { .. })));
    }
}

#[test]
fn training_may_start_from_given_weights() {
    let graph = graph(0);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let options = options(Method::RobustHinge);
    let trainer = |options: &TrainSettings| Trainer::new(&graph, &split, options.clone()).unwrap();
    let given = random_model(&[14, options.hidden[0], 2], 3);
    let mut started = trainer(&options).start_from(given.clone()).unwrap();
    assert_eq!(started.model(), &given);
    assert_ne!(started.key, trainer(&options).key, "another run");
    assert!(started.step().unwrap().is_some() && started.model() != &given && !started.is_finished());

    let wider = changed!(options.clone(); hidden: vec![options.hidden[0] + 1]);
    let refused = trainer(&wider).start_from(given.clone()).unwrap_err().to_string();
    assert!(refused.contains("sizes"), "{refused}");
    let averaging = changed!(options; propagation: Propagation::RowNormalised);
    assert!(trainer(&averaging).start_from(given).unwrap_err().to_string().contains("propagation"));
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
    let given = changed!(TrainSettings::new(Method::RobustHinge); weight_decay: Some(7.0), robust_weight: Some(0.0), attribute_dropout: Some(0.1));
    assert_eq!(given.clone().suited_to(&graph, 9), given);
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
    let propagation = Propagation::SymmetricGcn.matrix(&graph).unwrap();
    let validation = labelled(&graph, &split.part(crate::graph::Part::Validation));
    assert_eq!(CrossEntropy::new(&graph, &propagation, &validation, 2).value(trainer.model()), smallest);
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
    wrong(|options| options.hidden = vec![4, 0]);
    wrong(|options| options.steps = 0);
    wrong(|options| options.batch = Some(0));
    wrong(|options| options.patience = Some(0));
    wrong(|options| options.learning_rate = f64::NAN);
    wrong(|options| options.weight_decay = Some(-1.0));
    wrong(|options| options.dropout = 1.0);
    wrong(|options| options.cross_entropy_weight = f64::INFINITY);
    wrong(|options| options.robust_weight = Some(-0.5));
    wrong(|options| options.labelled_margin = f64::NAN);
    wrong(|options| options.unlabelled_margin = -1.0);
    wrong(|options| options.saturation = Some(0.0));
    wrong(|options| options.saturation = Some(f64::INFINITY));
    wrong(|options| options.clip = Some(0.0));
    wrong(|options| (options.cross_entropy_weight, options.robust_weight) = (0.0, Some(0.0)));
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
