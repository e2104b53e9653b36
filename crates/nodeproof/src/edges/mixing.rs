//! How nodes share what they send, as a function of their degrees: what deletions change.

use crate::graph::Graph;
use crate::ids::NodeId;
use crate::model::Propagation;

/// A propagation whose entries follow from degrees. With d_m the number of edges at m that are left, a self-loop included,
///
/// ```text
/// P_mn = into(d_m) from(d_n)  where m and n are joined,   P_mm = own(d_m).
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mixing {
    /// `1 / √((d_m + 1)(d_n + 1))`.
    Symmetric,
    /// `1 / (d_m + 1)`.
    MeanWithSelf,
    /// `1 / d_m`.
    Mean,
    /// 1.
    Sum,
}

impl Mixing {
    fn of(propagation: &Propagation) -> Option<Self> {
        match propagation {
            Propagation::SymmetricGcn => Some(Self::Symmetric),
            Propagation::RowNormalised => Some(Self::MeanWithSelf),
            Propagation::RowMean => Some(Self::Mean),
            Propagation::Adjacency => Some(Self::Sum),
            _ => None,
        }
    }

    /// What a node sends is multiplied by.
    pub(super) fn from(self, degree: usize) -> f64 {
        match self {
            Self::Symmetric => 1.0 / ((degree + 1) as f64).sqrt(),
            Self::MeanWithSelf | Self::Mean | Self::Sum => 1.0,
        }
    }

    /// What a node receives is multiplied by.
    pub(super) fn into(self, degree: usize) -> f64 {
        match self {
            Self::Symmetric => self.from(degree),
            Self::MeanWithSelf => 1.0 / (degree + 1) as f64,
            Self::Mean if degree == 0 => 0.0,
            Self::Mean => 1.0 / degree as f64,
            Self::Sum => 1.0,
        }
    }

    /// What a node sends to itself is multiplied by.
    pub(super) fn own(self, degree: usize, has_loop: bool) -> f64 {
        let of_loop = f64::from(u8::from(has_loop));
        match self {
            Self::Symmetric | Self::MeanWithSelf => (1.0 + of_loop) / (degree + 1) as f64,
            Self::Mean | Self::Sum => of_loop * self.into(degree),
        }
    }
}

/// `identity · I + mixed · P`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    pub(super) identity: f64,
    pub(super) mixed: f64,
    pub(super) mixing: Mixing,
}

impl Share {
    /// A propagation as such a sum; `None` if it is another one. The identity mixes nothing, in whatever way.
    pub(super) fn of(propagation: &Propagation) -> Option<Self> {
        match propagation {
            Propagation::Identity => Some(Self { identity: 1.0, mixed: 0.0, mixing: Mixing::Sum }),
            Propagation::Polynomial { of, coefficients } if coefficients.iter().skip(2).all(|&c| c == 0.0) => {
                let coefficient = |power: usize| coefficients.get(power).copied().unwrap_or(0.0);
                let (constant, linear) = (coefficient(0), coefficient(1));
                match **of {
                    Propagation::Identity => None,
                    // The machine rounds the inner one first, and what is left of it may cancel.
                    Propagation::Polynomial { .. } => None,
                    ref of => Mixing::of(of).map(|mixing| Self { identity: constant, mixed: linear, mixing }),
                }
            }
            other => Mixing::of(other).map(|mixing| Self { identity: 0.0, mixed: 1.0, mixing }),
        }
    }
}

/// Whether a node has a self-loop, which no deletion takes away.
pub(super) fn has_loop(graph: &Graph, node: NodeId) -> bool {
    graph.adjacency().contains(node.index(), node.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphOptions;

    /// The entries are those of the matrix, on a graph with a node of its own and a self-loop.
    #[test]
    fn entries_are_those_of_the_matrix() {
        let options = GraphOptions::new().keep_self_loops(true);
        let graph = Graph::with_options(5, 1, &[(0, 1), (0, 2), (1, 2), (2, 3), (2, 2)], &[], options).unwrap();
        let sum = |coefficients: Vec<f64>, of| Propagation::Polynomial { of: Box::new(of), coefficients };
        for propagation in [
            Propagation::Identity,
            Propagation::SymmetricGcn,
            Propagation::RowNormalised,
            Propagation::RowMean,
            Propagation::Adjacency,
            sum(vec![1.25, 1.0], Propagation::Adjacency),
            sum(vec![0.5, -2.0, 0.0], Propagation::RowMean),
            sum(vec![0.5], Propagation::SymmetricGcn),
            sum(vec![], Propagation::SymmetricGcn),
        ] {
            let (matrix, share) = (propagation.matrix(&graph).unwrap(), Share::of(&propagation).unwrap());
            for m in graph.node_ids() {
                let degree = |n: NodeId| graph.adjacency().row(n.index()).len();
                let (columns, values) = matrix.row(m.index());
                for n in graph.node_ids() {
                    let expected = columns.iter().position(|&column| column == n.0).map_or(0.0, |place| values[place]);
                    let Share { identity, mixed, mixing } = share;
                    let entry = if m == n {
                        identity + mixed * mixing.own(degree(m), has_loop(&graph, m))
                    } else if graph.adjacency().contains(m.index(), n.0) {
                        mixed * mixing.into(degree(m)) * mixing.from(degree(n))
                    } else {
                        0.0
                    };
                    assert!((entry - expected).abs() < 1e-15, "{propagation} at {m}, {n}: {entry} and {expected}");
                }
            }
        }
        assert_eq!(Share::of(&Propagation::power(Propagation::SymmetricGcn, 2)), None);
        assert_eq!(Share::of(&sum(vec![0.5, -2.0], sum(vec![0.25, 3.0], Propagation::RowMean))), None);
    }
}
