//! The message-passing matrix P: row m lists the nodes that m aggregates.

use super::ModelError;
use super::layer::four_digits;
use crate::edge::Edge;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::nearest::did_you_mean;
use crate::sparse::{Pattern, SparseMatrix};

/// How a node aggregates others. With A the adjacency matrix and d its row sums, Ã = A + I and d̃ its row sums:
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Propagation {
    /// The node itself: `P = I`, as in a linear layer.
    Identity,
    /// `P_mn = Ã_mn / √(d̃_m d̃_n)`, as in Kipf and Welling's GCN.
    SymmetricGcn,
    /// `P_mn = Ã_mn / d̃_m`: the mean of the neighbours and the node itself.
    RowNormalised,
    /// `P_mn = A_mn / d_m`: the mean of the neighbours; 0 for a node without any, as in GraphSAGE.
    RowMean,
    /// `P = A`: the sum of the neighbours, as in GIN.
    Adjacency,
    /// `Σ_i c_i Pⁱ` of another propagation, constant coefficient first: a power as in SGC, or `(1 + ε) I + A` as in GIN.
    Polynomial {
        /// P.
        of: Box<Propagation>,
        /// c.
        coefficients: Vec<f64>,
    },
    /// Any N × N matrix.
    Custom(SparseMatrix),
}

/// Powers of a polynomial that are shown.
const MOST_SHOWN: usize = 4;
/// A polynomial has at most this many entries, 6.4 GB of them.
const MOST_ENTRIES: usize = 1 << 29;

impl Propagation {
    /// `Pᵏ` of a propagation.
    pub fn power(of: Self, exponent: usize) -> Self {
        let coefficients = (0..=exponent).map(|i| f64::from(u8::from(i == exponent))).collect();
        Self::Polynomial { of: Box::new(of), coefficients }
    }

    /// The same with all its numbers, also those that it is computed from, without their signs.
    #[must_use]
    pub fn absolute(&self) -> Self {
        match self {
            Self::Polynomial { of, coefficients } => Self::Polynomial {
                of: Box::new(of.absolute()),
                coefficients: coefficients.iter().map(|c| c.abs()).collect(),
            },
            Self::Custom(matrix) => Self::Custom(matrix.absolute()),
            other => other.clone(),
        }
    }

    /// The name under which files know it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::SymmetricGcn => "symmetric-gcn",
            Self::RowNormalised => "row-normalised",
            Self::RowMean => "row-mean",
            Self::Adjacency => "adjacency",
            Self::Polynomial { .. } => "polynomial",
            Self::Custom(_) => "custom",
        }
    }

    /// The propagations that need nothing but their name.
    const NAMED: [Self; 5] = [Self::SymmetricGcn, Self::RowNormalised, Self::RowMean, Self::Adjacency, Self::Identity];

    /// The propagation of that name, if it needs nothing else.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|propagation| propagation.name() == name)
    }

    /// The one of these names that was probably meant: `; did you mean row-mean?`, or nothing.
    pub fn did_you_mean(name: &str) -> String {
        did_you_mean(name, Self::NAMED.iter().map(Self::name))
    }

    /// Whether its entries are known not to be negative, on whatever graph.
    pub fn is_nonnegative(&self) -> bool {
        match self {
            Self::Polynomial { of, coefficients } => of.is_nonnegative() && coefficients.iter().all(|&c| c >= 0.0),
            Self::Custom(matrix) => matrix.values().iter().all(|&value| value >= 0.0),
            _ => true,
        }
    }

    /// The matrix that was given, of a custom propagation or a polynomial of one.
    pub fn custom(&self) -> Option<&SparseMatrix> {
        match self {
            Self::Custom(matrix) => Some(matrix),
            Self::Polynomial { of, .. } => of.custom(),
            _ => None,
        }
    }

    /// The matrix for `graph`, N × N. A self-loop that the graph kept counts twice on the diagonal of Ã, as in the
    /// reference implementation, and once in A.
    ///
    /// # Errors
    /// If a custom matrix does not fit the graph, a polynomial would fill the memory, or a value is not finite.
    pub fn matrix(&self, graph: &Graph) -> Result<SparseMatrix, ModelError> {
        let (nodes, adjacency) = (graph.nodes(), graph.adjacency());
        let degree = |node: u32| adjacency.row(node as usize).len() as f64;
        match self {
            Self::Identity => Ok(identity(nodes, 1.0)),
            Self::SymmetricGcn | Self::RowNormalised => {
                Ok(with_self_loops(graph, |weight, m, n| self.entry(weight, degree(m), degree(n))))
            }
            Self::RowMean | Self::Adjacency => {
                Ok(SparseMatrix::from_pattern(adjacency.clone(), |m, n| self.entry(1.0, degree(m), degree(n))))
            }
            Self::Polynomial { of, coefficients } => {
                let matrix = polynomial(&of.matrix(graph)?, coefficients)?;
                check_finite(&matrix)?;
                Ok(matrix)
            }
            Self::Custom(matrix) => {
                check_shape(matrix, nodes)?;
                Ok(matrix.clone())
            }
        }
    }

    /// An entry of a propagation that is known by its name, from that of Ã or A and the degrees of its row and its column.
    fn entry(&self, weight: f64, of_row: f64, of_column: f64) -> f64 {
        match self {
            Self::SymmetricGcn => weight / ((of_row + 1.0) * (of_column + 1.0)).sqrt(),
            Self::RowNormalised => weight / (of_row + 1.0),
            Self::RowMean => weight / of_row,
            _ => weight,
        }
    }

    /// Whether each entry follows from the degrees of its two nodes, and from whether they are joined.
    pub fn follows_degrees(&self) -> bool {
        match self {
            Self::Polynomial { of, coefficients } => {
                of.follows_degrees() && coefficients.iter().skip(2).all(|&coefficient| coefficient == 0.0)
            }
            Self::Custom(_) => false,
            _ => true,
        }
    }

    /// Whether entries depend on the degrees of the nodes that are aggregated.
    pub fn reads_degrees(&self) -> bool {
        match self {
            Self::Polynomial { of, .. } => of.reads_degrees(),
            other => *other == Self::SymmetricGcn,
        }
    }

    /// The row of `node` of the matrix for `graph` without these edges, as columns and entries other than 0; `None` if entries do not
    /// [follow from degrees](Self::follows_degrees), or one is not finite.
    pub fn row_without(&self, graph: &Graph, edges: &[Edge], node: NodeId) -> Option<(Vec<u32>, Vec<f64>)> {
        let adjacency = graph.adjacency();
        let degree = |n: NodeId| {
            let deleted = edges.iter().filter(|edge| edge.ends().contains(&n)).count();
            (adjacency.row(n.index()).len() - deleted) as f64
        };
        let is_left = |&n: &u32| Edge::between(node, NodeId(n)).is_none_or(|edge| !edges.contains(&edge));
        let mut row: Vec<(u32, f64)> =
            adjacency.row(node.index()).iter().copied().filter(is_left).map(|n| (n, 1.0)).collect();
        match self {
            Self::RowMean | Self::Adjacency => {}
            Self::SymmetricGcn | Self::RowNormalised => add_to(&mut row, node.0, 1.0),
            Self::Identity => row = vec![(node.0, 1.0)],
            Self::Polynomial { of, coefficients } => {
                let coefficient = |power: usize| coefficients.get(power).copied().unwrap_or(0.0);
                let (columns, entries) = of.row_without(graph, edges, node).filter(|_| self.follows_degrees())?;
                row = columns.into_iter().zip(entries.iter().map(|p| p * coefficient(1))).collect();
                add_to(&mut row, node.0, coefficient(0));
            }
            Self::Custom(_) => return None,
        }
        let of_row = degree(node);
        row.iter_mut().for_each(|(n, entry)| *entry = self.entry(*entry, of_row, degree(NodeId(*n))));
        row.retain(|(_, entry)| *entry != 0.0);
        row.iter().all(|(_, entry)| entry.is_finite()).then(|| row.into_iter().unzip())
    }

    /// Refuses numbers that are not finite.
    pub(super) fn check_numbers(&self) -> Result<(), ModelError> {
        match self {
            Self::Polynomial { of, coefficients } => {
                if let Some(coefficient) = coefficients.iter().find(|coefficient| !coefficient.is_finite()) {
                    let problem =
                        format!("a polynomial has coefficient {coefficient}; every one must be a finite number");
                    return Err(ModelError::Mismatch { problem });
                }
                of.check_numbers()
            }
            Self::Custom(matrix) => check_finite(matrix),
            _ => Ok(()),
        }
    }
}

/// In words: coefficients with four digits, and of many powers, or those of another polynomial, the degree alone.
impl std::fmt::Display for Propagation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Polynomial { of, coefficients } = self else { return f.write_str(self.name()) };
        let powers: Vec<_> = coefficients.iter().enumerate().filter(|&(_, &coefficient)| coefficient != 0.0).collect();
        let is_nested = matches!(**of, Self::Polynomial { .. });
        if powers.len() > MOST_SHOWN || (is_nested && !powers.is_empty()) {
            return write!(f, "degree-{} polynomial of {of}", powers[powers.len() - 1].0);
        }
        for (i, &(power, &coefficient)) in powers.iter().enumerate() {
            let sign = match (i, coefficient < 0.0) {
                (0, false) => "",
                (0, true) => "−",
                (_, false) => " + ",
                (_, true) => " − ",
            };
            let magnitude = four_digits(coefficient.abs());
            let factor = if coefficient.abs() == 1.0 { String::new() } else { format!("{magnitude}·") };
            let base = match power {
                0 => "identity".to_owned(),
                1 => of.to_string(),
                _ => format!("{of}^{power}"),
            };
            write!(f, "{sign}{factor}{base}")?;
        }
        if powers.is_empty() { f.write_str("0") } else { Ok(()) }
    }
}

/// Adds to the entry in a column of a row, whose columns ascend.
fn add_to(row: &mut Vec<(u32, f64)>, column: u32, value: f64) {
    match row.binary_search_by_key(&column, |&(column, _)| column) {
        Ok(place) => row[place].1 += value,
        Err(place) => row.insert(place, (column, value)),
    }
}

/// So many times the identity.
fn identity(nodes: usize, factor: f64) -> SparseMatrix {
    let diagonal: Vec<_> = (0..nodes as u32).map(|node| (node, node)).collect();
    SparseMatrix::from_pattern(Pattern::from_pairs(nodes, nodes, &diagonal), |_, _| factor)
}

/// A matrix on the pattern of Ã, from `value(Ã_mn, m, n)`.
fn with_self_loops(graph: &Graph, value: impl Fn(f64, u32, u32) -> f64) -> SparseMatrix {
    let adjacency = graph.adjacency();
    let loop_weight = |node: u32| 1.0 + f64::from(u8::from(adjacency.contains(node as usize, node)));
    SparseMatrix::from_pattern(adjacency.with_diagonal(), |m, n| value(if m == n { loop_weight(m) } else { 1.0 }, m, n))
}

/// `Σ_i c_i Pⁱ` by Horner's rule.
fn polynomial(matrix: &SparseMatrix, coefficients: &[f64]) -> Result<SparseMatrix, ModelError> {
    let Some((&last, others)) = coefficients.split_last() else { return Ok(identity(matrix.rows(), 0.0)) };
    others.iter().rev().try_fold(identity(matrix.rows(), last), |sum, &coefficient| {
        matrix.times_plus_diagonal(&sum, coefficient, MOST_ENTRIES).ok_or_else(|| {
            let problem = format!(
                "a polynomial of degree {} has more than {MOST_ENTRIES} entries on this graph of {} nodes; take fewer \
                 powers, or write them as layers without activation",
                others.len(),
                matrix.rows()
            );
            ModelError::Mismatch { problem }
        })
    })
}

fn check_shape(matrix: &SparseMatrix, nodes: usize) -> Result<(), ModelError> {
    if matrix.rows() == nodes && matrix.pattern().columns() == nodes {
        return Ok(());
    }
    let shape = format!("{} × {}", matrix.rows(), matrix.pattern().columns());
    let problem = format!(
        "its custom propagation is {shape}, but the graph has {nodes} nodes; make it for this graph, one row and one \
         column a node"
    );
    Err(ModelError::Mismatch { problem })
}

fn check_finite(matrix: &SparseMatrix) -> Result<(), ModelError> {
    for row in 0..matrix.rows() {
        let (columns, values) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            if !value.is_finite() {
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
    fn words_are_short() {
        let polynomial = |coefficients| Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients };
        assert_eq!(polynomial(vec![1.0, 0.0, -1.0 / 3.0]).to_string(), "identity − 0.3333·adjacency^2");
        assert_eq!(
            polynomial(vec![0.0, 0.09000000000000001, 12345.678]).to_string(),
            "0.09·adjacency + 12350·adjacency^2"
        );
        let many = polynomial(vec![0.1, 0.09, 0.0, 0.3, -0.2, 12345.678]);
        assert_eq!(many.to_string(), "degree-5 polynomial of adjacency");
        assert_eq!(polynomial(vec![0.0]).to_string(), "0");
        let nested = Propagation::Polynomial { of: Box::new(polynomial(vec![1.0, 1.0])), coefficients: vec![0.0, 2.0] };
        assert_eq!(nested.to_string(), "degree-1 polynomial of identity + adjacency");
    }

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
    fn named_propagations_by_hand() {
        let graph = Graph::new(4, 1, &[(0, 1), (0, 2)], &[]).unwrap();
        let row = |propagation: Propagation, row: usize| {
            let matrix = propagation.matrix(&graph).unwrap();
            let (columns, values) = matrix.row(row);
            columns.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>()
        };
        assert_eq!(row(Propagation::RowMean, 0), [(1, 0.5), (2, 0.5)]);
        assert_eq!(row(Propagation::RowMean, 3), [], "nothing to take the mean of");
        assert_eq!(row(Propagation::Adjacency, 1), [(0, 1.0)]);
        assert_eq!(row(Propagation::Identity, 3), [(3, 1.0)]);
        let square = Propagation::power(Propagation::Adjacency, 2);
        assert_eq!(row(square.clone(), 1), [(1, 1.0), (2, 1.0)]);
        assert_eq!(square.to_string(), "adjacency^2");
        let gin = Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients: vec![1.25, 1.0] };
        assert_eq!(row(gin.clone(), 1), [(0, 1.0), (1, 1.25)]);
        assert_eq!(gin.to_string(), "1.25·identity + adjacency");
        let none = Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients: vec![] };
        assert_eq!(row(none, 1), [(1, 0.0)]);
    }

    /// Rows are those of the matrix of the graph without the edges, to the last bit, but for zeros.
    #[test]
    fn rows_without_edges_are_those_of_the_matrix() {
        let options = GraphOptions::new().keep_self_loops(true);
        let graph = Graph::with_options(6, 1, &[(0, 1), (0, 2), (1, 2), (2, 3), (2, 2), (3, 4)], &[], options).unwrap();
        let sum = |coefficients: Vec<f64>, of| Propagation::Polynomial { of: Box::new(of), coefficients };
        let edge = |a, b| Edge::between(NodeId(a), NodeId(b)).unwrap();
        for propagation in [
            Propagation::Identity,
            Propagation::SymmetricGcn,
            Propagation::RowNormalised,
            Propagation::RowMean,
            Propagation::Adjacency,
            sum(vec![1.25, 1.0], Propagation::Adjacency),
            sum(vec![0.3, -0.7, 0.0], Propagation::SymmetricGcn),
            sum(vec![0.5], Propagation::SymmetricGcn),
            sum(vec![], Propagation::SymmetricGcn),
            sum(vec![0.1, -2.0], sum(vec![0.25, 3.0], Propagation::RowMean)),
        ] {
            assert!(propagation.follows_degrees());
            for edges in [vec![], vec![edge(0, 2)], vec![edge(1, 2), edge(2, 3)], vec![edge(3, 4), edge(0, 1)]] {
                let matrix = propagation.matrix(&graph.without_edges(&edges).unwrap()).unwrap();
                let nonzero = |(columns, entries): (&[u32], &[f64])| -> Vec<(u32, f64)> {
                    let row = columns.iter().copied().zip(entries.iter().copied());
                    row.filter(|&(_, p)| p != 0.0).collect()
                };
                for node in graph.node_ids() {
                    let (columns, entries) = propagation.row_without(&graph, &edges, node).unwrap();
                    let row: Vec<(u32, f64)> = columns.into_iter().zip(entries).collect();
                    assert_eq!(row, nonzero(matrix.row(node.index())), "{propagation}");
                }
            }
        }
        let custom = Propagation::Custom(SparseMatrix::from_triplets(6, 6, &[(0, 1, 1.0)]));
        for other in [Propagation::power(Propagation::Adjacency, 2), custom.clone(), sum(vec![1.0], custom)] {
            assert!(!other.follows_degrees());
            assert_eq!(other.row_without(&graph, &[], NodeId(0)), None);
        }
        let large = sum(vec![1e308, 1.5e308], Propagation::RowMean);
        assert!(large.row_without(&graph, &[], NodeId(2)).is_some(), "a quarter of it");
        assert_eq!(large.row_without(&graph, &[edge(0, 2), edge(1, 2), edge(2, 3)], NodeId(2)), None, "all of it");
        assert!(sum(vec![1.0], Propagation::SymmetricGcn).reads_degrees() && !Propagation::RowMean.reads_degrees());
    }

    #[test]
    fn misshapen_and_infinite_matrices_are_refused() {
        let graph = Graph::new(2, 1, &[(0, 1)], &[]).unwrap();
        let custom = |rows, value| Propagation::Custom(SparseMatrix::from_triplets(rows, rows, &[(0, 1, value)]));
        assert!(custom(2, -0.5).matrix(&graph).is_ok());
        assert!(matches!(custom(2, f64::NAN).check_numbers(), Err(ModelError::Propagation { row: 0, column: 1, .. })));
        assert!(matches!(custom(3, 0.5).matrix(&graph), Err(ModelError::Mismatch { .. })));
        let large =
            Propagation::Polynomial { of: Box::new(Propagation::Adjacency), coefficients: vec![0.0, 1e300, 1e308] };
        assert!(large.matrix(&graph).is_ok());
        let large = Propagation::Polynomial { of: Box::new(custom(2, 1e200)), coefficients: vec![0.0, 1e200] };
        assert!(matches!(large.matrix(&graph), Err(ModelError::Propagation { .. })));
    }
}
