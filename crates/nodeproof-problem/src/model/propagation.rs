//! The message-passing matrix P: row m lists the nodes that m aggregates.

use super::ModelError;
use crate::graph::Graph;
use crate::sparse::{Pattern, SparseMatrix};

/// How a node aggregates its neighbours. With Ã = A + I and d̃ its row sums:
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Propagation {
    /// `P_mn = Ã_mn / √(d̃_m d̃_n)`, as in Kipf and Welling's GCN.
    SymmetricGcn,
    /// `P_mn = Ã_mn / d̃_m`: the mean of the neighbours and the node itself.
    RowNormalised,
    /// Any N × N matrix of values ≥ 0, such as a power of P for SGC.
    Custom(SparseMatrix),
}

impl Propagation {
    /// The name under which files know it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SymmetricGcn => "symmetric-gcn",
            Self::RowNormalised => "row-normalised",
            Self::Custom(_) => "custom",
        }
    }

    /// The matrix for `graph`, N × N. A self-loop that the graph kept counts twice on the diagonal of Ã, as in the
    /// reference implementation.
    ///
    /// # Errors
    /// If a custom matrix does not fit the graph or holds a value that is negative or not finite.
    pub fn matrix(&self, graph: &Graph) -> Result<SparseMatrix, ModelError> {
        if let Self::Custom(matrix) = self {
            check_custom(matrix, graph.nodes())?;
            return Ok(matrix.clone());
        }
        let adjacency = graph.adjacency();
        let diagonal = (0..graph.nodes() as u32).map(|node| (node, node));
        let pairs: Vec<_> = adjacency.iter().chain(diagonal).collect();
        let pattern = Pattern::from_pairs(graph.nodes(), graph.nodes(), &pairs);
        let degree: Vec<f64> = (0..graph.nodes()).map(|node| adjacency.row(node).len() as f64 + 1.0).collect();
        let degree = |node: u32| degree[node as usize];
        let loop_weight = |node: u32| 1.0 + f64::from(u8::from(adjacency.contains(node as usize, node)));
        let symmetric = matches!(self, Self::SymmetricGcn);
        Ok(SparseMatrix::from_pattern(pattern, |m, n| {
            let weight = if m == n { loop_weight(m) } else { 1.0 };
            if symmetric { weight / (degree(m) * degree(n)).sqrt() } else { weight / degree(m) }
        }))
    }
}

fn check_custom(matrix: &SparseMatrix, nodes: usize) -> Result<(), ModelError> {
    if matrix.rows() != nodes || matrix.pattern().columns() != nodes {
        let shape = format!("{} × {}", matrix.rows(), matrix.pattern().columns());
        let problem = format!(
            "its custom propagation is {shape}, but the graph has {nodes} nodes; make it for this graph, one row and \
             one column a node"
        );
        return Err(ModelError::Mismatch { problem });
    }
    for row in 0..nodes {
        let (columns, values) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(ModelError::Propagation { row, column, value });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphOptions;

    #[test]
    fn symmetric_gcn_by_hand() {
        let graph = Graph::new(3, 1, &[(0, 1)], &[]).unwrap();
        let matrix = Propagation::SymmetricGcn.matrix(&graph).unwrap();
        assert_eq!(matrix.row(0), (&[0u32, 1][..], &[0.5, 0.5][..]));
        assert_eq!(matrix.row(2), (&[2u32][..], &[1.0][..]));
    }

    #[test]
    fn a_kept_self_loop_counts_twice() {
        let options = GraphOptions::new().keep_self_loops(true);
        let graph = Graph::with_options(2, 1, &[(0, 0), (0, 1)], &[], options).unwrap();
        let matrix = Propagation::SymmetricGcn.matrix(&graph).unwrap();
        assert_eq!(matrix.row(0), (&[0u32, 1][..], &[2.0 / 3.0, 1.0 / 6f64.sqrt()][..]));
        let matrix = Propagation::RowNormalised.matrix(&graph).unwrap();
        assert_eq!(matrix.row(0), (&[0u32, 1][..], &[2.0 / 3.0, 1.0 / 3.0][..]));
    }

    #[test]
    fn negative_and_misshapen_custom_matrices_are_refused() {
        let graph = Graph::new(2, 1, &[], &[]).unwrap();
        let custom = |rows, value| Propagation::Custom(SparseMatrix::from_triplets(rows, rows, &[(0, 1, value)]));
        assert!(custom(2, 0.5).matrix(&graph).is_ok());
        assert!(matches!(custom(2, -0.5).matrix(&graph), Err(ModelError::Propagation { row: 0, column: 1, .. })));
        assert!(matches!(custom(2, f64::NAN).matrix(&graph), Err(ModelError::Propagation { .. })));
        assert!(matches!(custom(3, 0.5).matrix(&graph), Err(ModelError::Mismatch { .. })));
    }
}
