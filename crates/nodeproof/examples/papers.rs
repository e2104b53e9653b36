//! Makes the small graph and the hand-made model in `examples/papers`, on which the README's commands run.
//!
//! Twenty-four invented papers on three topics, thirty words, one citation network. The model counts words: a hidden
//! unit for each topic rises with the topic's words and falls with those of the others, so its certificates can be
//! checked with pencil and paper. Nothing is drawn at random; the same files come out every time.
//!
//! ```text
//! cargo run -p nodeproof --example papers -- examples/papers
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};

use nodeproof::{ClassId, Graph, Matrix, Model, Names, Propagation};

const TOPICS: [&str; 3] = ["genetic algorithms", "neural networks", "probabilistic methods"];

/// Eight words of each topic, then six that say nothing of it.
const WORDS: [&str; 30] = [
    "genetic",
    "crossover",
    "mutation",
    "population",
    "fitness",
    "selection",
    "evolution",
    "chromosome", //
    "neural",
    "layer",
    "gradient",
    "neuron",
    "weight",
    "backpropagation",
    "activation",
    "perceptron", //
    "bayesian",
    "prior",
    "posterior",
    "markov",
    "likelihood",
    "inference",
    "sampling",
    "conditional", //
    "learning",
    "data",
    "method",
    "result",
    "efficient",
    "large",
];

const TITLES: [&str; 24] = [
    "Crossover on a budget",
    "Breeding timetables",
    "Mutation rates that pay",
    "Islands of solutions",
    "Fitness without a judge",
    "Evolving small programs",
    "Chromosomes for routing",
    "When selection is too strong",
    "Gradients through time",
    "A perceptron revisited",
    "Deep nets, shallow data",
    "Neurons that forget",
    "Layers worth keeping",
    "Backpropagation by hand",
    "Weights on a diet",
    "Activation maps of speech",
    "Priors for small samples",
    "Markov chains at work",
    "A posterior for everyone",
    "Likelihood without tears",
    "Sampling rare events",
    "Inference on trees",
    "Conditional fields of text",
    "Bayesian searches at sea",
];

fn graph() -> Result<Graph, Box<dyn Error>> {
    let topic = |paper: u32| paper / 8;
    let mut attributes = Vec::new();
    for paper in 0..24u32 {
        // One to three words of the paper's own topic, a general one, and for every third paper one of the next topic.
        for i in 0..1 + paper % 3 {
            attributes.push((paper, 8 * topic(paper) + (3 * paper + i) % 8));
        }
        attributes.push((paper, 24 + paper % 6));
        if paper % 3 == 0 {
            attributes.push((paper, 8 * ((topic(paper) + 1) % 3) + paper % 8));
        }
    }
    let mut edges = Vec::new();
    for paper in 0..24u32 {
        let within = |step: u32| 8 * topic(paper) + (paper + step) % 8;
        edges.push((paper, within(1)));
        if paper % 4 == 0 {
            edges.push((paper, within(3)));
        }
        if paper % 3 == 0 {
            edges.push((paper, (paper + 8) % 24));
        }
    }
    let owned = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let names = Names { nodes: owned(&TITLES), attributes: owned(&WORDS), classes: owned(&TOPICS) };
    let labels = (0..24).map(|paper| Some(ClassId(topic(paper)))).collect();
    Ok(Graph::new(24, WORDS.len(), &edges, &attributes)?.with_labels(labels)?.with_names(names)?)
}

fn model() -> Result<Model, Box<dyn Error>> {
    let count = |word: usize, topic: usize| match word / 8 {
        3 => 0.0,
        own if own == topic => 1.0,
        _ => -0.5,
    };
    let first = (0..WORDS.len()).flat_map(|word| (0..3).map(move |topic| count(word, topic))).collect();
    let last = vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let layers = vec![
        (Matrix::from_values(WORDS.len(), 3, first), vec![0.0; 3]),
        (Matrix::from_values(3, 3, last), vec![0.0; 3]),
    ];
    Ok(Model::gcn(layers, Propagation::SymmetricGcn)?)
}

/// Writes `graph.npz` and `model.safetensors` into `folder`.
fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    graph()?.write(folder.join("graph.npz"))?;
    model()?.write(folder.join("model.safetensors"))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    write(&folder.ok_or("say where to write: cargo run -p nodeproof --example papers -- examples/papers")?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_files_are_what_this_makes() {
        let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/papers");
        let folder = tempfile::tempdir().unwrap();
        super::write(folder.path()).unwrap();
        for name in ["graph.npz", "model.safetensors"] {
            let read = |folder: &std::path::Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(read(folder.path()), read(&committed), "{name}");
        }
    }
}
