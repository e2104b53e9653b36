//! Networks whose numbers overflow on the way: nothing may be claimed of them. Each was once called robust, or shown a
//! witness that is none.

use nodeproof::{
    Activation, Bound, Budget, Certifier, ClassId, Engine, Evidence, Graph, Layer, Matrix, Model, NodeId, Obstacle,
    Propagation, Slopes, Source, SparseMatrix, TargetClass, Term,
};

/// A layer from its rows of weights and its bias.
fn layer<const N: usize>(rows: &[[f64; N]], bias: [f64; N]) -> (Matrix, Vec<f64>) {
    (Matrix::from_values(rows.len(), N, rows.concat()), bias.to_vec())
}

/// The verdict on node 0, with its label as the class where it has one.
fn verdict(
    graph: &Graph,
    layers: Vec<(Matrix, Vec<f64>)>,
    propagation: Propagation,
    flips: u32,
    slopes: Slopes,
) -> Evidence {
    let model = Model::gcn(layers, propagation).unwrap();
    let class = if graph.has_labels() { TargetClass::Label } else { TargetClass::Predicted };
    let certifier = Certifier::new(graph, &model).unwrap().budget(Budget::new(flips, flips.into()));
    certifier.target_class(class).slopes(slopes).certify(&[NodeId(0)]).unwrap().remove(0).evidence
}

fn assert_nothing_claimed(verdict: &Evidence) {
    assert!(
        matches!(verdict, Evidence::Open { lower: Bound::Unknown, upper: None, because: Some(Obstacle::Overflow) }),
        "{verdict:?}"
    );
}

#[test]
fn an_interval_longer_than_the_largest_number() {
    let graph = Graph::new(1, 2, &[], &[]).unwrap();
    let given = Slopes::Given(vec![Matrix::from_values(1, 1, vec![0.5])]);
    for slopes in [Slopes::Default, given] {
        let layers = vec![layer(&[[1e308], [-1e308]], [0.0]), layer(&[[-1e-290, 0.0]], [1e12, 0.0])];
        assert_nothing_claimed(&verdict(&graph, layers, Propagation::SymmetricGcn, 1, slopes));
    }
    let layers = vec![
        layer(&[[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]),
        layer(&[[1e308], [-1e308]], [0.0]),
        layer(&[[-1e-290, 0.0]], [1e12, 0.0]),
    ];
    assert_nothing_claimed(&verdict(&graph, layers, Propagation::SymmetricGcn, 1, Slopes::Default));
}

#[test]
fn a_coefficient_that_overflows_where_the_weight_is_zero() {
    let graph = Graph::new(1, 1, &[], &[]).unwrap();
    let propagation = Propagation::Custom(SparseMatrix::from_triplets(1, 1, &[(0, 0, 1e5)]));
    let layers = vec![layer(&[[0.0, 1e-5]], [0.0, 0.0]), layer(&[[1e300, 0.0], [-1e-5, 0.0]], [0.5, 0.0])];
    assert_nothing_claimed(&verdict(&graph, layers, propagation, 1, Slopes::Default));
}

#[test]
fn parts_of_a_gain_that_overflow_in_both_directions() {
    let graph = Graph::new(1, 1, &[], &[]).unwrap();
    let a = 1.1e154;
    let first: [f64; 16] = std::array::from_fn(|unit| if [0, 8, 1, 9].contains(&unit) { a } else { 0.0 });
    let last: [[f64; 2]; 16] = std::array::from_fn(|unit| match unit {
        0 | 8 => [0.0, a],
        1 | 9 => [0.9 * a, 0.0],
        _ => [0.0, 0.0],
    });
    let layers = vec![layer(&[first], [0.0; 16]), layer(&last, [1e300, 0.0])];
    assert_nothing_claimed(&verdict(&graph, layers, Propagation::SymmetricGcn, 1, Slopes::Default));
}

#[test]
fn sums_that_overflow_before_they_are_scaled_down() {
    let clique = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let ones: Vec<(u32, u32)> = (0..5).map(|attribute| (0, attribute)).collect();
    let labels = vec![Some(ClassId(0)); 4];
    let graph = Graph::new(4, 5, &clique, &ones).unwrap().with_labels(labels).unwrap();
    let layers =
        vec![layer(&[[-1e308], [-1e308], [1e308], [1e308], [5e307]], [0.0]), layer(&[[1e-300, 0.0]], [0.0, 1.0])];
    assert_nothing_claimed(&verdict(&graph, layers, Propagation::SymmetricGcn, 1, Slopes::Default));

    let graph = Graph::new(1, 1, &[], &[]).unwrap().with_labels(vec![Some(ClassId(0))]).unwrap();
    let layers = vec![
        layer(&[[0.0; 4]], [1e154; 4]),
        layer(&[[-1e154], [-1e154], [1.25e154], [1.25e154]], [0.0]),
        layer(&[[1e-300, 0.0]], [0.0, 1.0]),
    ];
    assert_nothing_claimed(&verdict(&graph, layers, Propagation::SymmetricGcn, 1, Slopes::Default));
}

/// No engine calls node 0 robust under one flip.
fn assert_not_robust(graph: &Graph, model: &Model) {
    for engine in Engine::ALL {
        let certifier = Certifier::new(graph, model).unwrap().budget(Budget::new(1, 1.into())).engine(engine);
        let evidence = certifier.certify(&[NodeId(0)]).unwrap().remove(0).evidence;
        assert!(!matches!(evidence, Evidence::Robust), "{engine:?} calls it robust");
    }
}

/// The squares of all coefficients are 0.
#[test]
fn coefficients_whose_squares_underflow() {
    let graph = Graph::new(1, 1, &[], &[]).unwrap();
    for size in [1e-160, 1e-200, 1e-300] {
        let layers = vec![layer(&[[1.0]], [-0.5]), layer(&[[1.0]], [0.0]), layer(&[[0.0, 4.0 * size]], [size, 0.0])];
        assert_not_robust(&graph, &Model::gcn(layers, Propagation::SymmetricGcn).unwrap());
    }
}

/// An error that is infinite, times an entry of a propagation that is stored, but 0.
#[test]
fn an_infinite_error_that_nothing_reads() {
    let graph = Graph::new(2, 1, &[], &[]).unwrap();
    let custom = |entries: &[(u32, u32, f64)]| Propagation::Custom(SparseMatrix::from_triplets(2, 2, entries));
    let propagations = vec![
        custom(&[(0, 0, 1e120), (1, 1, 1e120)]),
        custom(&[(0, 0, 1.0), (1, 1, 1.0)]),
        custom(&[(0, 0, 1.0), (0, 1, 0.0), (1, 1, 1.0)]),
    ];
    let one = |number: f64| Matrix::from_values(1, 1, vec![number]);
    let first = Layer::new(
        vec![Term::new(Source::Attributes, 0, one(1e-120)), Term::new(Source::Attributes, 1, one(1e200))],
        vec![0.0],
        Activation::Relu,
    );
    let last = Matrix::from_values(1, 2, vec![0.0, 1.0]);
    let last = Layer::new(vec![Term::new(Source::Layer(0), 2, last)], vec![0.5, 0.0], Activation::None);
    assert_not_robust(&graph, &Model::new(1, propagations, vec![first, last]).unwrap());
}
