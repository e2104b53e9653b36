//! Networks of each architecture, with random weights.

use super::xavier;
use crate::model::{Activation, Layer, Model, ModelError, Propagation, Source, Term, Weight};
use crate::settings::{Architecture, TrainSettings};

/// The share α of h⁰ in every step of APPNP and every layer of GCNII.
const ALPHA: f64 = 0.1;
/// Steps of APPNP.
const STEPS: usize = 10;
/// λ of GCNII: the weight matrix of its l-th layer counts by β = ln(1 + λ / l).
const LAMBDA: f64 = 0.5;
/// Power of the propagation in SGC.
const POWER: usize = 2;

/// The network that `settings` ask for, between so many attributes and classes, before its first step.
///
/// # Errors
/// If hidden layers or propagation cannot be.
pub(super) fn initial(settings: &TrainSettings, attributes: usize, classes: usize) -> Result<Model, ModelError> {
    let propagation = settings.propagation.clone().unwrap_or(Propagation::SymmetricGcn);
    let architecture = settings.architecture;
    let widths = architecture.widths(attributes, settings.hidden_sizes(), classes);
    let mut layers = Layers { seed: settings.seed, made: Vec::new() };
    let propagations = match architecture {
        Architecture::Sage => vec![Propagation::RowMean, Propagation::Identity],
        Architecture::Gin => {
            let sum = Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients: vec![1.0, 1.0] };
            vec![sum, Propagation::Identity]
        }
        Architecture::Sgc => vec![Propagation::power(propagation, POWER)],
        Architecture::Appnp => vec![diffusion(propagation), Propagation::Identity],
        Architecture::Gcnii => vec![propagation, Propagation::Identity],
        Architecture::Mlp => vec![Propagation::Identity],
        _ => vec![propagation],
    };
    match architecture {
        Architecture::Sage => layers.chain(&widths, |_| vec![0, 1]),
        Architecture::Gin => layers.chain(&widths, |layer| vec![layer % 2]),
        Architecture::Appnp => layers.chain(&widths, |layer| vec![usize::from(layer + 2 < widths.len())]),
        Architecture::Gcnii => layers.residual(&widths),
        _ => layers.chain(&widths, |_| vec![0]),
    }
    Model::new(attributes, propagations, layers.made)
}

/// The steps `h ← (1 − α) P h + α h⁰` of APPNP in one: `Σ_{i < K} α (1 − α)ⁱ Pⁱ + (1 − α)ᴷ Pᴷ`.
fn diffusion(of: Propagation) -> Propagation {
    // One product after the other: what `powi` makes of them depends on how the program was compiled.
    let powers = std::iter::successors(Some(1.0), |power| Some(power * (1.0 - ALPHA))).take(STEPS + 1);
    let coefficients = powers.enumerate().map(|(i, power)| if i < STEPS { ALPHA * power } else { power }).collect();
    Propagation::Polynomial { of: Box::new(of), coefficients }
}

/// Layers in the making.
struct Layers {
    seed: u64,
    made: Vec<Layer>,
}

impl Layers {
    /// What the next layer reads, if it reads nothing but the one before.
    fn before(&self) -> Source {
        self.made.len().checked_sub(1).map_or(Source::Attributes, Source::Layer)
    }

    /// A layer with a random weight for each of these propagations of what is before it.
    fn dense(&mut self, inputs: usize, units: usize, propagations: &[usize], activation: Activation) {
        let weight = |term: usize| xavier::weight(inputs, units, (self.made.len(), term), self.seed);
        let term = |(k, &propagation): (usize, &usize)| Term::new(self.before(), propagation, weight(k));
        let terms = propagations.iter().enumerate().map(term).collect();
        self.made.push(Layer::new(terms, vec![0.0; units], activation));
    }

    /// Dense layers between these widths with ReLUs between them; `propagations` are those of each layer.
    fn chain(&mut self, widths: &[usize], propagations: impl Fn(usize) -> Vec<usize>) {
        for (i, pair) in widths.windows(2).enumerate() {
            let activation = if i + 2 == widths.len() { Activation::None } else { Activation::Relu };
            self.dense(pair[0], pair[1], &propagations(i), activation);
        }
    }

    /// `(1 − α) P h + α h⁰` of the layer before and the first; propagation 0 is P, 1 the identity.
    fn mix(&mut self, units: usize) {
        let terms = vec![Term::new(self.before(), 0, 1.0 - ALPHA), Term::new(Source::Layer(0), 1, ALPHA)];
        self.made.push(Layer::new(terms, vec![0.0; units], Activation::None));
    }

    /// GCNII: a first layer, `S ((1 − β) I + W)` for each further hidden one, with β in W, and a linear layer.
    fn residual(&mut self, widths: &[usize]) {
        let (units, convolutions) = (widths[1], widths.len() - 3);
        self.dense(widths[0], units, &[1], Activation::Relu);
        for l in 1..=convolutions {
            self.mix(units);
            let beta = (LAMBDA / l as f64 + 1.0).ln();
            let mut weight = xavier::weight(units, units, (self.made.len(), 1), self.seed);
            weight.values_mut().iter_mut().for_each(|value| *value *= beta);
            let term = |weight: Weight| Term::new(self.before(), 1, weight);
            let terms = vec![term((1.0 - beta).into()), term(weight.into())];
            self.made.push(Layer::new(terms, vec![0.0; units], Activation::Relu));
        }
        self.dense(units, widths[widths.len() - 1], &[1], Activation::None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Matrix;
    use crate::graph::Graph;
    use crate::network::Network;
    use crate::settings::Method;

    fn graph() -> Graph {
        let edges = [(0, 1), (0, 2), (1, 3), (3, 4)];
        Graph::new(6, 4, &edges, &[(0, 0), (0, 2), (1, 1), (2, 3), (3, 0), (4, 2), (5, 1), (5, 3)]).unwrap()
    }

    fn model(architecture: Architecture, hidden: &[usize]) -> Model {
        let mut settings = TrainSettings::new(Method::CrossEntropy);
        (settings.architecture, settings.hidden) = (architecture, Some(hidden.to_vec()));
        settings.validate().unwrap();
        initial(&settings, 4, 3).unwrap()
    }

    /// Dense weight number `index` of the model, as rows.
    fn weight(model: &Model, index: usize) -> Vec<Vec<f64>> {
        let mut dense = model.layers().iter().flat_map(Layer::terms).filter_map(|term| term.weight().dense());
        rows(dense.nth(index).unwrap())
    }

    fn rows(matrix: &Matrix) -> Vec<Vec<f64>> {
        (0..matrix.rows()).map(|row| matrix.row(row).to_vec()).collect()
    }

    fn spelled_out(propagation: Propagation) -> Vec<Vec<f64>> {
        let matrix = propagation.matrix(&graph()).unwrap();
        let mut all = vec![vec![0.0; 6]; 6];
        for (m, entries) in all.iter_mut().enumerate() {
            let (columns, values) = matrix.row(m);
            columns.iter().zip(values).for_each(|(&n, &p)| entries[n as usize] = p);
        }
        all
    }

    fn attributes() -> Vec<Vec<f64>> {
        let has = |n: usize, d: u32| f64::from(u8::from(graph().attributes().contains(n, d)));
        (0..6).map(|n| (0..4).map(|d| has(n, d)).collect()).collect()
    }

    fn times(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let entry = |row: &[f64], j: usize| row.iter().zip(b).map(|(x, b)| x * b[j]).sum();
        a.iter().map(|row| (0..b[0].len()).map(|j| entry(row, j)).collect()).collect()
    }

    /// `x a + y b`.
    fn mixed(x: f64, a: &[Vec<f64>], y: f64, b: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| x * a + y * b).collect();
        a.iter().zip(b).map(row).collect()
    }

    fn relu(a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        a.into_iter().map(|row| row.into_iter().map(|x| x.max(0.0)).collect()).collect()
    }

    /// Biases are 0 before the first step.
    fn assert_logits(model: &Model, expected: &[Vec<f64>]) {
        let graph = graph();
        let logits = rows(&Network::new(&graph, model).unwrap().logits());
        for (found, expected) in logits.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
        }
    }

    #[test]
    fn a_gcn_is_the_one_that_the_model_knows() {
        let made = model(Architecture::Gcn, &[5]);
        let layers = [(4, 5), (5, 3)].into_iter().enumerate();
        let layers = layers.map(|(i, (inputs, units))| (xavier::weight(inputs, units, (i, 0), 0), vec![0.0; units]));
        assert_eq!(made, Model::gcn(layers.collect(), Propagation::SymmetricGcn).unwrap());
    }

    #[test]
    fn sage_has_means_and_root_weights() {
        let model = model(Architecture::Sage, &[5]);
        let mean = spelled_out(Propagation::RowMean);
        let layer = |x: &[Vec<f64>], i: usize| {
            let (neighbours, own) = (times(&times(&mean, x), &weight(&model, i)), times(x, &weight(&model, i + 1)));
            mixed(1.0, &neighbours, 1.0, &own)
        };
        assert_logits(&model, &layer(&relu(layer(&attributes(), 0)), 2));
    }

    #[test]
    fn gin_has_a_perceptron_after_each_sum() {
        let model = model(Architecture::Gin, &[5]);
        let sum = |x: &[Vec<f64>]| mixed(1.0, x, 1.0, &times(&spelled_out(Propagation::Adjacency), x));
        let perceptron = |x: &[Vec<f64>], i| times(&relu(times(x, &weight(&model, i))), &weight(&model, i + 1));
        let first = relu(perceptron(&sum(&attributes()), 0));
        assert_logits(&model, &perceptron(&sum(&first), 2));
    }

    #[test]
    fn sgc_propagates_twice() {
        let model = model(Architecture::Sgc, &[]);
        let p = spelled_out(Propagation::SymmetricGcn);
        assert_logits(&model, &times(&times(&p, &times(&p, &attributes())), &weight(&model, 0)));
    }

    #[test]
    fn appnp_takes_ten_steps_from_a_perceptron() {
        let model = model(Architecture::Appnp, &[5]);
        let p = spelled_out(Propagation::SymmetricGcn);
        let first = times(&relu(times(&attributes(), &weight(&model, 0))), &weight(&model, 1));
        let steps = (0..10).fold(first.clone(), |h, _| mixed(0.9, &times(&p, &h), 0.1, &first));
        assert_logits(&model, &steps);
    }

    #[test]
    fn gcnii_keeps_its_first_layer() {
        let model = model(Architecture::Gcnii, &[5, 5, 5]);
        let p = spelled_out(Propagation::SymmetricGcn);
        let first = relu(times(&attributes(), &weight(&model, 0)));
        let mut h = first.clone();
        for (l, beta) in [(1, 1.5f64.ln()), (2, 1.25f64.ln())] {
            let s = mixed(0.9, &times(&p, &h), 0.1, &first);
            let scaled = weight(&model, l);
            let largest = scaled.iter().flatten().fold(0.0f64, |a, b| a.max(b.abs()));
            assert!(largest <= beta * (6.0f64 / 10.0).sqrt(), "β is part of W");
            h = relu(mixed(1.0 - beta, &s, 1.0, &times(&s, &scaled)));
        }
        assert_logits(&model, &times(&h, &weight(&model, 3)));
    }

    #[test]
    fn a_perceptron_sees_no_neighbours() {
        let model = model(Architecture::Mlp, &[5, 6]);
        let layer = |x: &[Vec<f64>], i| times(x, &weight(&model, i));
        assert_logits(&model, &layer(&relu(layer(&relu(layer(&attributes(), 0)), 1)), 2));
    }
}
