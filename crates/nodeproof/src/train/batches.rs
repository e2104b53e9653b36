//! Which nodes the robust term of a step is about.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::ids::NodeId;

/// Streams of the random numbers that shuffle; others initialise and drop out.
const STREAM: u64 = 1 << 62;

/// Batches of nodes, one for each step: the nodes are shuffled and dealt out, then shuffled again. Batch number i is a
/// function of the seed and i alone.
#[derive(Debug)]
pub(super) struct Batches {
    nodes: Vec<NodeId>,
    size: usize,
    seed: u64,
    /// The last order that was needed.
    order: Option<(u64, Vec<NodeId>)>,
}

impl Batches {
    /// Batches of `size` of these nodes, or of all of them.
    pub(super) fn new(nodes: Vec<NodeId>, size: Option<usize>, seed: u64) -> Self {
        let size = size.unwrap_or(nodes.len()).min(nodes.len());
        Self { nodes, size, seed, order: None }
    }

    /// Batch number `index`. No node is in it twice, unless two shuffles meet in it.
    pub(super) fn batch(&mut self, index: u64) -> Vec<NodeId> {
        if self.size == self.nodes.len() {
            return self.nodes.clone();
        }
        let (size, nodes) = (self.size as u64, self.nodes.len() as u64);
        let first = index.wrapping_mul(size);
        (first..first + size).map(|i| self.dealt(i / nodes, (i % nodes) as usize)).collect()
    }

    /// The node at `place` of shuffle number `shuffle`.
    fn dealt(&mut self, shuffle: u64, place: usize) -> NodeId {
        match &self.order {
            Some((number, order)) if *number == shuffle => order[place],
            _ => {
                let mut order = self.nodes.clone();
                let mut random = ChaCha8Rng::seed_from_u64(self.seed);
                random.set_stream(STREAM | shuffle);
                order.shuffle(&mut random);
                let node = order[place];
                self.order = Some((shuffle, order));
                node
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_are_dealt_before_any_comes_again() {
        let nodes: Vec<NodeId> = (0..10).map(NodeId).collect();
        let mut batches = Batches::new(nodes.clone(), Some(4), 7);
        let mut dealt: Vec<NodeId> = (0..5).flat_map(|index| batches.batch(index)).collect();
        for half in dealt.chunks_mut(10) {
            half.sort_unstable();
            assert_eq!(half, nodes);
        }
        let again = Batches::new(nodes.clone(), Some(4), 7).batch(3);
        assert_eq!(again, batches.batch(3), "whatever was asked for before");
        assert_eq!(Batches::new(nodes.clone(), None, 7).batch(3), nodes);
        assert_eq!(Batches::new(nodes.clone(), Some(99), 7).batch(0), nodes);
    }
}
