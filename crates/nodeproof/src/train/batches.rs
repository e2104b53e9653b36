//! Which nodes a step is about.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The first of the streams of the random numbers that shuffle for a part of the loss; others initialise and drop out.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Stream {
    WorstCase = 1 << 62,
    CrossEntropy = 3 << 61,
}

/// Batches of nodes, one for each step: the nodes are shuffled and dealt out, then shuffled again. Batch number i is a
/// function of the seed and i alone.
#[derive(Debug)]
pub(super) struct Batches<T> {
    nodes: Vec<T>,
    size: usize,
    seed: u64,
    stream: Stream,
    /// The last order that was needed.
    order: Option<(u64, Vec<T>)>,
}

impl<T: Copy> Batches<T> {
    /// Batches of `size` of these nodes, or of all of them.
    pub(super) fn new(nodes: Vec<T>, size: Option<usize>, seed: u64, stream: Stream) -> Self {
        let size = size.unwrap_or(nodes.len()).min(nodes.len());
        Self { nodes, size, seed, stream, order: None }
    }

    /// Whether each batch has all nodes.
    pub(super) fn are_whole(&self) -> bool {
        self.size == self.nodes.len()
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> &[T] {
        &self.nodes
    }

    /// Batch number `index`. No node is in it twice, unless two shuffles meet in it.
    pub(super) fn batch(&mut self, index: u64) -> Vec<T> {
        if self.are_whole() {
            return self.nodes.clone();
        }
        let (size, nodes) = (self.size as u64, self.nodes.len() as u64);
        let first = index.wrapping_mul(size);
        (first..first + size).map(|i| self.dealt(i / nodes, (i % nodes) as usize)).collect()
    }

    /// The node at `place` of shuffle number `shuffle`.
    fn dealt(&mut self, shuffle: u64, place: usize) -> T {
        match &self.order {
            Some((number, order)) if *number == shuffle => order[place],
            _ => {
                let mut order = self.nodes.clone();
                let mut random = ChaCha8Rng::seed_from_u64(self.seed);
                random.set_stream(self.stream as u64 | shuffle);
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
    use crate::ids::NodeId;

    #[test]
    fn all_nodes_are_dealt_before_any_comes_again() {
        let nodes: Vec<NodeId> = (0..10).map(NodeId).collect();
        let mut batches = Batches::new(nodes.clone(), Some(4), 7, Stream::WorstCase);
        let mut dealt: Vec<NodeId> = (0..5).flat_map(|index| batches.batch(index)).collect();
        for half in dealt.chunks_mut(10) {
            half.sort_unstable();
            assert_eq!(half, nodes);
        }
        let again = Batches::new(nodes.clone(), Some(4), 7, Stream::WorstCase).batch(3);
        assert_eq!(again, batches.batch(3), "whatever was asked for before");
        let others = Batches::new(nodes.clone(), Some(4), 7, Stream::CrossEntropy).batch(3);
        assert_ne!(again, others, "the parts of the loss look at different nodes");
        assert_eq!(Batches::new(nodes.clone(), None, 7, Stream::WorstCase).batch(3), nodes);
        assert_eq!(Batches::new(nodes.clone(), Some(99), 7, Stream::WorstCase).batch(0), nodes);
    }
}
