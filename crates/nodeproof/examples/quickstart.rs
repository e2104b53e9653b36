//! The README's example: certifies every node of the example graph. Run it from the root of the repository.

use nodeproof::{Budget, Certifier, Evidence, Graph, GraphOptions, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (graph, _) = Graph::read("examples/papers/graph.npz", GraphOptions::new())?;
    let model = Model::read("examples/papers/model.safetensors")?;
    let nodes: Vec<_> = graph.node_ids().collect();
    let budget = Budget::new(4, 2.into());
    for certificate in Certifier::new(&graph, &model)?.budget(budget).certify(&nodes)? {
        match certificate.evidence {
            Evidence::Robust => println!("{}: holds by {:.2}", certificate.node, certificate.margin().value()),
            Evidence::Witness(witness) => println!("{}: falls to {:?}", certificate.node, witness.flips),
            other => println!("{}: {}", certificate.node, other.verdict().name()),
        }
    }
    Ok(())
}
