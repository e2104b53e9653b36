//! The robust loss for other people's training loops: against a trainer, finite differences, and the whole graph.

use std::sync::Arc;

use super::*;
use crate::graph::Part;
use crate::settings::SettingsError;

/// What a loss is asked for in these tests.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Hinge(f64, Option<f64>),
    CrossEntropy,
    Margins,
    Logits,
}

const ALL_ASKED: [Asked; 5] =
    [Asked::Hinge(1.3, None), Asked::Hinge(1.3, Some(0.5)), Asked::CrossEntropy, Asked::Margins, Asked::Logits];

fn robust_loss(graph: &Graph, model: &Model, budget: &Budget, worst_case: Option<WorstCase>) -> RobustLoss {
    RobustLoss::new(Arc::new(graph.clone()), model.clone(), budget, worst_case).unwrap()
}

/// Weights of both signs for a number for each node and class.
fn weights_of(nodes: usize, classes: usize) -> Matrix {
    let weights = (0..nodes * classes).map(|i| (i as f64 * 1.7).sin());
    Matrix::from_values(nodes, classes, weights.collect())
}

/// The value at the weights of `model`, and its gradient.
fn asked(loss: &mut RobustLoss, asked: Asked, nodes: &[NodeId], classes: Option<&[ClassId]>) -> (f64, Vec<Vec<f64>>) {
    let with_gradient = |value: Result<RobustValue, TrainError>| {
        let value = value.unwrap();
        (value.loss, value.gradient.unwrap())
    };
    match asked {
        Asked::Hinge(margin, saturation) => with_gradient(loss.hinge(nodes, classes, margin, saturation, true)),
        Asked::CrossEntropy => with_gradient(loss.cross_entropy(nodes, classes, true)),
        Asked::Margins => {
            let margins = loss.margins(nodes, classes).unwrap();
            let weights = weights_of(nodes.len(), loss.model().classes());
            let sum = margins.over.values().iter().zip(weights.values()).map(|(margin, weight)| margin * weight).sum();
            (sum, loss.margins_gradient(nodes, &margins.classes, &weights).unwrap())
        }
        Asked::Logits => {
            let logits = loss.logits(nodes).unwrap();
            let weights = weights_of(nodes.len(), loss.model().classes());
            let sum = logits.values().values().iter().zip(weights.values()).map(|(logit, weight)| logit * weight).sum();
            (sum, logits.gradient(&weights).unwrap())
        }
    }
}

/// Holds the gradient of whatever can be asked for against finite differences.
fn assert_gradient(loss: &mut RobustLoss, what: Asked, nodes: &[NodeId], classes: Option<&[ClassId]>, case: &str) {
    let (_, gradient) = asked(loss, what, nodes, classes);
    let model = loss.model().clone();
    let expected = differences(&model, |model| {
        loss.set_tensors(&model.tensors().collect::<Vec<_>>()).unwrap();
        asked(loss, what, nodes, classes).0
    });
    loss.set_tensors(&model.tensors().collect::<Vec<_>>()).unwrap();
    for (tensor, (found, expected)) in gradient.iter().zip(&expected).enumerate() {
        for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            assert_near(found, expected, 1e-5, &format!("{case}, {what:?}, at {i} of tensor {tensor}"));
        }
    }
}

#[test]
fn robust_loss_has_the_gradient_of_finite_differences() {
    for (seed, budget) in (80..).zip(budgets().into_iter().take(3)) {
        let bits = small_graph(crate::seed::seed(seed));
        let mut models = small_models(&Propagation::SymmetricGcn, crate::seed::seed(seed));
        models.push(("any terms".to_owned(), randomised(model_of_any_terms(), crate::seed::seed(seed))));
        for ((case, model), i) in models.into_iter().zip(seed as usize..) {
            for (worst_case, j) in WorstCase::ALL.into_iter().zip(0..) {
                let kind = [AttributeKind::Bits, OTHER_KINDS[0], OTHER_KINDS[1]][(i + j) % 3];
                let (graph, model) = (with_kind(&bits, kind), model.clone().with_kind(kind));
                let mut loss = robust_loss(&graph, &model, &budget, Some(worst_case));
                // One node twice, around two classes.
                let nodes = [0, 5, 7, 10, 5].map(NodeId);
                let classes = [0, 2, 1, 1, 0].map(ClassId);
                let case = format!("seed {seed}, {case}, {}, {worst_case}, {budget:?}", kind.name());
                for what in [ALL_ASKED[(i + j) % 3], Asked::Margins, Asked::Logits] {
                    let classes = (i % 2 == 0).then_some(&classes[..]);
                    assert_gradient(&mut loss, what, &nodes, classes, &case);
                }
            }
        }
    }
}

/// All four on the networks that most people have, and one whose propagation was given.
#[test]
fn robust_loss_of_common_networks_has_the_gradient_of_finite_differences() {
    let graph = small_graph(crate::seed::seed(90));
    let budget = Budget::new(3, LocalBudget::Count(2));
    let own = Propagation::Custom(Propagation::RowNormalised.matrix(&graph).unwrap());
    let of = |architecture, sizes: &[usize], propagation| {
        randomised(initial_of(architecture, sizes, propagation, 1), crate::seed::seed(91))
    };
    let models = [
        of(Architecture::Gcn, &[7, 5, 3], None),
        of(Architecture::Gcn, &[7, 4, 3, 3], None),
        of(Architecture::Sage, &[7, 4, 3], None),
        of(Architecture::Sage, &[7, 4, 3, 3], None),
        of(Architecture::Gcn, &[7, 4, 3], Some(own)),
    ];
    for (model, i) in models.iter().zip(0..) {
        let mut loss = robust_loss(&graph, model, &budget, None);
        let deep = model.hidden_layers() > 1;
        assert_eq!(loss.worst_case(), if deep { WorstCase::FirstOrder } else { WorstCase::Dual });
        for what in ALL_ASKED {
            assert_gradient(&mut loss, what, &[3, 8, 1].map(NodeId), None, &format!("model {i}"));
        }
    }
}

/// Loss and gradient are those of a step of training to the last bit.
#[test]
fn robust_loss_is_that_of_a_trainer() {
    let graph = graph(1);
    let split = Split::stratified(&graph, SplitSize::PerClass(5), SplitSize::PerClass(0), 1).unwrap();
    let train = labelled(&graph, &split.part(Part::Train));
    let (nodes, classes): (Vec<NodeId>, Vec<ClassId>) = train.into_iter().unzip();
    let budget = Budget::new(3, LocalBudget::Count(2));
    for (method, hidden) in [
        (Method::RobustHinge, vec![6]),
        (Method::RobustHinge, vec![5, 4]),
        (Method::RobustCrossEntropy, vec![6]),
        (Method::RobustCrossEntropy, vec![]),
    ] {
        let settings = changed!(
            TrainSettings::new(method);
            hidden: Some(hidden), budget: budget.clone(), batch: None, warm_up: 0, cross_entropy_weight: 0.0,
            robust_weight: Some(1.0), weight_decay: Some(0.0), attribute_dropout: Some(0.0)
        );
        let mut trainer = Trainer::new(&graph, &split, settings).unwrap();
        let mut loss = robust_loss(&graph, trainer.current(), &budget, None);
        let margin = trainer.settings().labelled_margin;
        let found = match method {
            Method::RobustHinge => loss.hinge(&nodes, Some(&classes), margin, None, true),
            _ => loss.cross_entropy(&nodes, Some(&classes), true),
        };
        let found = found.unwrap();
        let step = trainer.step().unwrap().unwrap();
        assert_eq!(Some(found.loss), step.robust_loss);
        assert!(found.loss > 0.0 && step.gradient_norm > 0.0);
        assert_eq!(Some(mean(&found.margins)), step.labelled_margin);
        let gradient = found.gradient.unwrap();
        // Adam's first moment behind its first step is a tenth of the gradient.
        let moments = trainer.state.adam.first.tensors().flatten();
        for (&moment, derivative) in moments.zip(gradient.into_iter().flatten()) {
            assert!((moment - 0.1 * derivative).abs() <= 1e-15 * derivative.abs(), "{moment} and {derivative}");
        }
    }
}

/// Margins, one by one, are what losses are made of; the smallest is that of the fast engine.
#[test]
fn margins_are_what_losses_are_made_of() {
    let graph = small_graph(crate::seed::seed(92));
    let budget = Budget::new(2, LocalBudget::Count(1));
    let all: Vec<NodeId> = graph.node_ids().collect();
    for (case, model) in small_models(&Propagation::SymmetricGcn, crate::seed::seed(93)) {
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
        let certificates = certifier.engine(crate::Engine::Fast).certify(&all).unwrap();
        let logits = Network::new(&graph, &model).unwrap().logits();
        let mut loss = robust_loss(&graph, &model, &budget, Some(WorstCase::Dual));
        let margins = loss.margins(&all, None).unwrap();
        let hinge = loss.hinge(&all, None, 1.0, None, false).unwrap();
        assert_eq!((margins.over.rows(), margins.over.columns()), (12, 3));
        assert_eq!((&margins.classes, hinge.gradient), (&hinge.classes, None), "{case}");
        let mut sum = 0.0;
        for (row, certificate) in certificates.iter().enumerate() {
            let (over, y) = (margins.over.row(row), margins.classes[row]);
            assert_eq!((y, over[y.index()]), (largest(logits.row(row)), 0.0));
            let others: Vec<f64> = (0..3).filter(|&k| k != y.index()).map(|k| over[k]).collect();
            let smallest = others[0].min(others[1]);
            assert_eq!(smallest, hinge.margins[row]);
            assert_near(smallest, certificate.margin().value(), 1e-9, &case);
            sum += others.iter().map(|margin| (1.0 - margin).max(0.0)).sum::<f64>();
        }
        assert_near(hinge.loss, sum / 12.0, 1e-12, &case);
        let given = loss.margins(&all, Some(&margins.classes)).unwrap();
        assert_eq!(given, margins, "{case}");
    }
}

/// Logits are those of the network, whatever was asked for before, and stay those of the weights that they were computed with.
#[test]
fn logits_are_those_of_the_network() {
    for kind in [AttributeKind::Bits, OTHER_KINDS[0], OTHER_KINDS[1]] {
        let graph = with_kind(&small_graph(crate::seed::seed(95)), kind);
        for (case, model) in small_models(&Propagation::SymmetricGcn, crate::seed::seed(96)) {
            let model = model.with_kind(kind);
            let expected = Network::new(&graph, &model).unwrap().logits();
            let mut loss = robust_loss(&graph, &model, &budgets()[0], None);
            let mut all = Vec::new();
            for nodes in [&[8, 0, 3, 8][..], &[11], &[8, 0, 3, 8], &[8, 0, 3, 8], &[]] {
                let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
                let logits = loss.logits(&nodes).unwrap();
                assert_eq!((logits.values().rows(), logits.values().columns()), (nodes.len(), 3), "{case}");
                for (row, node) in nodes.iter().enumerate() {
                    for (&found, &expected) in logits.values().row(row).iter().zip(expected.row(node.index())) {
                        assert_near(found, expected, 1e-12, &format!("{case}, {}, node {node}", kind.name()));
                    }
                }
                all.push(logits);
            }
            let weights = weights_of(4, 3);
            let gradient = all[0].gradient(&weights).unwrap();
            assert!(gradient.iter().flatten().any(|&derivative| derivative != 0.0), "{case}");
            let other = randomised(model.clone(), crate::seed::seed(97));
            loss.set_tensors(&other.tensors().collect::<Vec<_>>()).unwrap();
            assert_ne!(loss.logits(&[NodeId(8)]).unwrap().values(), all[1].values(), "{case}");
            assert_eq!(all[0].gradient(&weights).unwrap(), gradient, "{case}");
            assert_eq!(all[2].gradient(&weights).unwrap(), gradient, "{case}");
        }
    }
}

#[test]
fn robust_loss_does_not_depend_on_threads_or_on_what_was_asked_before() {
    let graph = graph(2);
    let nodes: Vec<NodeId> = (0..40).rev().chain([3, 3, 9]).map(NodeId).collect();
    for (sizes, what) in [&[14, 6, 2][..], &[14, 5, 4, 2]].into_iter().flat_map(|sizes| ALL_ASKED.map(|of| (sizes, of)))
    {
        let model = random_model(sizes, crate::seed::seed(4));
        let mut loss = robust_loss(&graph, &model, &Budget::new(4, LocalBudget::Count(2)), None);
        let mut with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| asked(&mut loss, what, &nodes, None));
            loss.margins(&[NodeId(8)], None).unwrap();
            found
        };
        assert_eq!(with(1), with(4), "{sizes:?}, {what:?}");
    }
}

#[test]
fn what_suits_the_depth_is_the_same_for_architectures_and_for_their_models() {
    for (case, model) in small_models(&Propagation::SymmetricGcn, 1) {
        let (architecture, sizes) = case.split_once(' ').unwrap();
        let sizes: Vec<usize> = serde_json::from_str(sizes).unwrap();
        let architecture = architecture.parse().unwrap();
        let hidden = Some(sizes[1..sizes.len() - 1].to_vec());
        let settings = changed!(TrainSettings::new(Method::RobustHinge); architecture, hidden);
        let loss = robust_loss(&small_graph(1), &model, &Budget::new(1, LocalBudget::Count(1)), None);
        assert_eq!(Some(loss.worst_case()), settings.suited_to(&small_graph(1), 9).worst_case, "{case}");
    }
}

#[test]
fn no_nodes_have_no_margins_and_no_mean_loss() {
    let graph = small_graph(1);
    let mut loss = robust_loss(&graph, &random_model(&[7, 4, 3], 1), &budgets()[0], None);
    let margins = loss.margins(&[], None).unwrap();
    assert_eq!((margins.over.rows(), margins.over.columns(), margins.classes.len()), (0, 3, 0));
    let gradient = loss.margins_gradient(&[], &[], &Matrix::zeros(0, 3)).unwrap();
    assert_eq!(gradient.iter().map(Vec::len).collect::<Vec<_>>(), [28, 4, 12, 3]);
    assert!(gradient.iter().flatten().all(|&derivative| derivative == 0.0));
    let refused = loss.hinge(&[], None, 1.0, None, true).unwrap_err().to_string();
    assert_eq!(refused, "the number of nodes is 0; give at least 1 node: the loss is a mean over them");
}

#[test]
fn a_robust_loss_refuses_what_makes_no_sense() {
    let graph = small_graph(1);
    let (model, budget) = (random_model(&[7, 4, 3], 1), Budget::new(2, LocalBudget::Count(1)));
    let new = |model: &Model, budget: &Budget| RobustLoss::new(Arc::new(graph.clone()), model.clone(), budget, None);
    let refused = new(&random_model(&[6, 4, 3], 1), &budget).unwrap_err();
    assert!(matches!(refused, TrainError::Model(ModelError::Mismatch { .. })), "{refused}");
    let refused = new(&model.clone().with_kind(AttributeKind::RealValues), &budget).unwrap_err();
    assert!(matches!(refused, TrainError::Model(ModelError::Kind { .. })), "{refused}");
    let refused = new(&model, &budget.clone().protect_nodes([NodeId(12)])).unwrap_err();
    assert!(matches!(refused, TrainError::Budget(_)), "{refused}");

    let mut loss = new(&model, &budget).unwrap();
    let (nodes, classes) = ([NodeId(0), NodeId(4)], [ClassId(0), ClassId(2)]);
    let missing = [NodeId(0), NodeId(12)];
    let no_node = |error: TrainError| matches!(error, TrainError::Settings(SettingsError::NoSuchNode { .. }));
    assert!(no_node(loss.hinge(&missing, None, 1.0, None, true).unwrap_err()));
    assert!(no_node(loss.margins(&missing, Some(&classes)).unwrap_err()));
    assert!(no_node(loss.logits(&missing).unwrap_err()));
    assert!(no_node(loss.margins_gradient(&missing, &classes, &Matrix::zeros(2, 3)).unwrap_err()));
    let mut message = |given: &[u32]| {
        let given: Vec<ClassId> = given.iter().copied().map(ClassId).collect();
        let errors = [
            loss.cross_entropy(&nodes, Some(&given), true).unwrap_err().to_string(),
            loss.margins(&nodes, Some(&given)).unwrap_err().to_string(),
            loss.margins_gradient(&nodes, &given, &Matrix::zeros(2, 3)).unwrap_err().to_string(),
        ];
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
        errors[0].clone()
    };
    assert_eq!(
        message(&[0, 3]),
        "a class is 3, of node 4; the model has 3 classes, numbered from 0; leave out nodes without one"
    );
    assert_eq!(
        message(&[0]),
        "the number of classes is 1; give one for each of the 2 nodes, or none for the predicted classes"
    );
    let mut hinge =
        |margin, saturation| loss.hinge(&nodes, None, margin, saturation, false).map_err(|error| error.to_string());
    for margin in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(hinge(margin, None).unwrap_err().starts_with("margin is"));
    }
    for saturation in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(hinge(1.0, Some(saturation)).unwrap_err().starts_with("saturation is"));
    }
    let mut gradient = |weights| loss.margins_gradient(&nodes, &classes, &weights).unwrap_err().to_string();
    assert_eq!(gradient(Matrix::zeros(3, 2)), "weights is 3 × 2; give one for each node and class, 2 × 3");
    let weights = Matrix::from_values(2, 3, vec![0.0, 1.0, 2.0, f64::NAN, 0.0, 0.0]);
    assert_eq!(gradient(weights.clone()), "weights is NaN; give finite numbers");
    let logits = loss.logits(&nodes).unwrap();
    let gradient = |weights| logits.gradient(&weights).unwrap_err().to_string();
    assert_eq!(gradient(Matrix::zeros(3, 2)), "weights is 3 × 2; give one for each node and class, 2 × 3");
    assert_eq!(gradient(weights), "weights is NaN; give finite numbers");

    let mut tensors: Vec<Vec<f64>> = model.tensors().map(<[f64]>::to_vec).collect();
    tensors[2][1] = f64::INFINITY;
    let refused = loss.set_tensors(&tensors).unwrap_err().to_string();
    assert!(refused.starts_with("W1 holds inf at position 1"), "{refused}");
    tensors.pop();
    let refused = loss.set_tensors(&tensors).unwrap_err().to_string();
    assert_eq!(refused, "the list of tensors has shape 3, but the model has 4: W0, b0, W1, b1");
    assert_eq!(loss.model(), &model, "it is as it was");
}

/// Never a loss of 0 with a gradient of 0, as if all were well.
#[test]
fn numbers_that_overflow_are_errors() {
    let graph = small_graph(2);
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    for worst_case in WorstCase::ALL {
        for (case, model) in small_models(&Propagation::SymmetricGcn, crate::seed::seed(94)) {
            let mut loss = robust_loss(&graph, &model, &Budget::new(2, LocalBudget::Count(1)), Some(worst_case));
            let huge: Vec<Vec<f64>> =
                model.tensors().map(|values| values.iter().map(|value| 1.7e308 * value).collect()).collect();
            loss.set_tensors(&huge).unwrap();
            let errors = [
                loss.hinge(&nodes, None, 1.0, None, true).unwrap_err(),
                loss.hinge(&nodes, None, 1.0, Some(1.0), false).unwrap_err(),
                loss.cross_entropy(&nodes, None, true).unwrap_err(),
                loss.margins(&nodes, None).unwrap_err(),
                loss.logits(&nodes).unwrap_err(),
            ];
            for error in errors {
                assert!(matches!(error, TrainError::Overflow { .. }), "{case}, {worst_case}: {error}");
                assert!(error.to_string().contains("numbers overflow; make the weights smaller"), "{error}");
            }
        }
    }
}
