//! What a step of training leaves out at random.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::graph::Graph;
use crate::ids::NodeId;
use crate::matrix::Matrix;
use crate::sparse::Pattern;
use crate::values::Values;

/// Things that are left out in one step. The choice depends on seed, step and place, not on the number of threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dropout {
    /// Share that is left out.
    pub(super) rate: f64,
    pub(super) seed: u64,
    /// The step; each has its own choice.
    pub(super) step: u64,
}

/// Stream of the attributes of a node, beyond those of hidden layers.
const ATTRIBUTES: u64 = 1 << 63;

impl Dropout {
    /// The factor of each activation of a row of a hidden layer: 0, or 1 / (1 − rate) to make up for that.
    pub(super) fn factors(self, layer: usize, row: usize, factors: &mut [f64]) {
        let mut random = self.stream(((layer as u64) << 40) | row as u64);
        let kept = 1.0 / (1.0 - self.rate);
        factors.fill_with(|| if random.random::<f64>() < self.rate { 0.0 } else { kept });
    }

    /// The graph with only some of the attributes of its nodes. Those of a node depend on its name, a number.
    pub(super) fn thinned(self, graph: &Graph, names: &[u32]) -> Graph {
        if let Some(values) = graph.values() {
            let mut kept = Matrix::zeros(graph.nodes(), graph.attribute_count());
            for (node, &name) in (0..).zip(names) {
                let mut random = self.stream(ATTRIBUTES | u64::from(name));
                for (kept, &value) in kept.row_mut(node as usize).iter_mut().zip(values.row(NodeId(node))) {
                    *kept = if value != 0.0 && random.random::<f64>() >= self.rate { value } else { 0.0 };
                }
            }
            let kept = Values::new(kept).and_then(|kept| kept.with_ranges(values.ranges().to_vec()));
            let empty = Graph::of_attributes(graph.attributes().clone());
            return kept.and_then(|kept| empty.with_values(kept)).unwrap_or_else(|error| unreachable!("{error}"));
        }
        let mut ones = Vec::new();
        for (node, &name) in (0..).zip(names) {
            let mut random = self.stream(ATTRIBUTES | u64::from(name));
            let attributes = graph.attributes().row(node as usize).iter();
            ones.extend(attributes.filter(|_| random.random::<f64>() >= self.rate).map(|&attribute| (node, attribute)));
        }
        Graph::of_attributes(Pattern::from_pairs(graph.nodes(), graph.attribute_count(), &ones)).with_kind(graph.kind())
    }

    fn stream(self, place: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ self.step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.set_stream(place);
        random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_the_share_is_left_out_and_each_step_chooses_anew() {
        let ones: Vec<(u32, u32)> = (0..20).flat_map(|node| (0..100).map(move |attribute| (node, attribute))).collect();
        let graph = Graph::new(20, 100, &[], &ones).expect("a valid graph");
        let names: Vec<u32> = (0..20).collect();
        let thinned = |step| Dropout { rate: 0.3, seed: 1, step }.thinned(&graph, &names);
        let (first, second) = (thinned(1), thinned(2));
        assert_eq!((first.nodes(), first.attribute_count()), (20, 100));
        assert!((1300..1500).contains(&first.attributes().entries()), "{}", first.attributes().entries());
        assert_ne!(first.attributes(), second.attributes());
        assert_eq!(first.attributes(), thinned(1).attributes());
        let alone = Dropout { rate: 0.3, seed: 1, step: 1 }.thinned(&graph.attributes_of(&[7]), &[7]);
        assert_eq!(alone.attributes().row(0), first.attributes().row(7), "whatever else is thinned");
    }
}
