//! Facts about a graph that a person wants to know before trusting a certificate on it.

use serde::Serialize;

use super::Graph;
use crate::ids::NodeId;

/// Smallest, median, mean and largest of a list of counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[non_exhaustive]
pub struct Spread {
    /// The smallest.
    pub min: usize,
    /// The median (the upper one of an even number).
    pub median: usize,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: usize,
}

impl Spread {
    fn of(mut counts: Vec<usize>) -> Self {
        if counts.is_empty() {
            return Self::default();
        }
        counts.sort_unstable();
        Self {
            min: counts[0],
            median: counts[counts.len() / 2],
            mean: counts.iter().sum::<usize>() as f64 / counts.len() as f64,
            max: counts[counts.len() - 1],
        }
    }
}

/// What [`Graph::statistics`] counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GraphStatistics {
    /// Number of nodes, N.
    pub nodes: usize,
    /// Number of edges, E: an undirected one counts once.
    pub edges: usize,
    /// Self-loops among them.
    pub self_loops: usize,
    /// Number of attributes, D.
    pub attributes: usize,
    /// Number of classes, K.
    pub classes: usize,
    /// Nodes with a label.
    pub labelled: usize,
    /// Labelled nodes of each class.
    pub class_sizes: Vec<usize>,
    /// Attributes that are 1, or not 0 where they are real values, in total.
    pub attribute_entries: usize,
    /// The same per node.
    pub attributes_per_node: Spread,
    /// Nodes without any attribute.
    pub empty_rows: usize,
    /// Neighbours per node, a self-loop included.
    pub degree: Spread,
    /// Nodes without any neighbour.
    pub isolated: usize,
    /// Nodes within two hops, the node itself included: those that can move a prediction of a network with one
    /// hidden layer.
    pub two_hops: Spread,
    /// Connected components.
    pub components: usize,
    /// Nodes of the largest component.
    pub largest_component: usize,
    /// Share of the edges between two labelled nodes whose labels are equal, self-loops left out.
    pub homophily: Option<f64>,
}

impl Graph {
    /// Counts everything in [`GraphStatistics`]; linear in the two-hop neighbourhoods.
    pub fn statistics(&self) -> GraphStatistics {
        let (_, component_sizes) = self.components();
        let mut class_sizes = vec![0; self.classes()];
        for class in self.node_ids().filter_map(|node| self.label(node)) {
            class_sizes[class.index()] += 1;
        }
        let degrees: Vec<usize> = (0..self.nodes()).map(|n| self.adjacency().row(n).len()).collect();
        let row_sizes: Vec<usize> = self.node_ids().map(|n| self.row_length(n)).collect();
        GraphStatistics {
            nodes: self.nodes(),
            edges: self.edges(),
            self_loops: (0..self.nodes()).filter(|&n| self.adjacency().contains(n, n as u32)).count(),
            attributes: self.attribute_count(),
            classes: self.classes(),
            labelled: class_sizes.iter().sum(),
            class_sizes,
            attribute_entries: row_sizes.iter().sum(),
            empty_rows: row_sizes.iter().filter(|&&size| size == 0).count(),
            attributes_per_node: Spread::of(row_sizes),
            isolated: (0..self.nodes()).filter(|&n| self.adjacency().row(n).iter().all(|&m| m as usize == n)).count(),
            degree: Spread::of(degrees),
            two_hops: Spread::of(self.two_hop_sizes()),
            components: component_sizes.len(),
            largest_component: component_sizes.iter().copied().max().unwrap_or(0),
            homophily: self.homophily(),
        }
    }

    fn two_hop_sizes(&self) -> Vec<usize> {
        let mut seen_by = vec![u32::MAX; self.nodes()];
        let mut count = |target: usize| {
            let mut size = 0;
            let mut see = |node: usize| {
                if seen_by[node] != target as u32 {
                    seen_by[node] = target as u32;
                    size += 1;
                }
            };
            see(target);
            for &middle in self.adjacency().row(target) {
                see(middle as usize);
                self.adjacency().row(middle as usize).iter().for_each(|&node| see(node as usize));
            }
            size
        };
        (0..self.nodes()).map(&mut count).collect()
    }

    fn homophily(&self) -> Option<f64> {
        let (mut same, mut all) = (0usize, 0usize);
        for (a, b) in self.adjacency().iter().filter(|(a, b)| a != b) {
            if let (Some(left), Some(right)) = (self.label(NodeId(a)), self.label(NodeId(b))) {
                all += 1;
                same += usize::from(left == right);
            }
        }
        (all > 0).then(|| same as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassId;

    #[test]
    fn counts_a_small_graph_by_hand() {
        // A path 0 – 1 – 2, node 3 alone; labels a, a, b, none.
        let labels = vec![Some(ClassId(0)), Some(ClassId(0)), Some(ClassId(1)), None];
        let graph = Graph::new(4, 3, &[(0, 1), (1, 2)], &[(0, 0), (0, 2), (1, 1)]).unwrap();
        let statistics = graph.with_labels(labels).unwrap().statistics();
        assert_eq!((statistics.edges, statistics.components, statistics.largest_component), (2, 2, 3));
        assert_eq!((statistics.isolated, statistics.empty_rows, statistics.labelled), (1, 2, 3));
        assert_eq!(statistics.class_sizes, [2, 1]);
        assert_eq!((statistics.two_hops.min, statistics.two_hops.max, statistics.two_hops.mean), (1, 3, 2.5));
        assert_eq!((statistics.degree.max, statistics.degree.mean), (2, 1.0));
        assert_eq!(statistics.homophily, Some(0.5));
    }
}
