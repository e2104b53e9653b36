//! How long the engines and training take. The machine should have nothing else to do.

pub mod certify;
pub mod engines;
pub mod scale;
pub mod train;

#[cfg(test)]
mod tests {
    use nodeproof::{ClassId, Graph, Matrix, Model, Propagation};

    /// Thirty nodes in a ring with chords, twelve attributes, three classes, and a network with one hidden layer.
    pub(super) fn problem() -> (Graph, Model) {
        let edges: Vec<_> = (0..30).flat_map(|node| [(node, (node + 1) % 30), (node, (node * 7 + 5) % 30)]).collect();
        let ones: Vec<_> =
            (0..30).flat_map(|node| (0..3).map(move |i| (node, (node * (2 * i + 1) + i) % 12))).collect();
        let labels = (0..30).map(|node| Some(ClassId(node % 3))).collect();
        let graph = Graph::new(30, 12, &edges, &ones).unwrap().with_labels(labels).unwrap();
        let weight = |rows: usize, columns: usize, seed: usize| {
            let value = |i: usize| ((i * 37 + seed * 11) % 23) as f64 / 11.0 - 1.0;
            Matrix::from_values(rows, columns, (0..rows * columns).map(value).collect())
        };
        let layers = vec![(weight(12, 5, 1), vec![0.1; 5]), (weight(5, 3, 2), vec![0.0, 0.1, 0.9])];
        (graph, Model::gcn(layers, Propagation::SymmetricGcn).unwrap())
    }
}
