//! Graphs that are drawn by chance: blocks with hubs, and words of which each class prefers some.
//!
//! Nodes have a class and a rank within it, and so have attributes. A rank r is drawn with a probability of about `(r + offset)^(-3/4)`, that
//! is, by a power law with exponent 7/3 for degrees. Only square roots and products are computed, so that a seed gives the same graph on
//! every machine.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Graph, GraphError, check_size};
use crate::ids::ClassId;
use crate::sparse::Pattern;

/// What a graph that is drawn by chance is like; [`Synthetic::graph`] draws it.
///
/// # Example
/// ```
/// use nodeproof_problem::graph::Synthetic;
/// let graph = Synthetic::new(1000).degree(10.0).hub(200).seed(7).graph()?;
/// assert_eq!(graph.nodes(), 1000);
/// # Ok::<(), nodeproof_problem::GraphError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    nodes: usize,
    classes: usize,
    degree: f64,
    hub: Option<usize>,
    homophily: f64,
    attributes: usize,
    words: usize,
    topical: f64,
    seed: u64,
}

/// Streams of random numbers, one for each thing that is drawn.
enum Stream {
    Order,
    Edges,
    Words,
}

impl Synthetic {
    /// So many nodes, of 6 classes, with about 7 neighbours and 20 of 2000 attributes each.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            classes: 6,
            degree: 7.0,
            hub: None,
            homophily: 0.8,
            attributes: 2000,
            words: 20,
            topical: 0.3,
            seed: 0,
        }
    }

    /// Number of nodes.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Number of classes, which have about as many nodes each.
    pub fn classes(mut self, classes: usize) -> Self {
        self.classes = classes;
        self
    }

    /// Mean number of neighbours, about: pairs that are drawn twice count once.
    pub fn degree(mut self, degree: f64) -> Self {
        self.degree = degree;
        self
    }

    /// Number of neighbours of the largest node of each class, about; 30 times the mean if it is not given, and nodes are enough.
    pub fn hub(mut self, neighbours: usize) -> Self {
        self.hub = Some(neighbours);
        self
    }

    /// Share of edges that join nodes of one class on purpose.
    pub fn homophily(mut self, share: f64) -> Self {
        self.homophily = share;
        self
    }

    /// Number of attributes.
    pub fn attributes(mut self, attributes: usize) -> Self {
        self.attributes = attributes;
        self
    }

    /// Mean number of attributes that are drawn for a node; those drawn twice count once.
    pub fn words(mut self, words: usize) -> Self {
        self.words = words;
        self
    }

    /// Share of a node's attributes that are drawn from those of its class.
    pub fn topical(mut self, share: f64) -> Self {
        self.topical = share;
        self
    }

    /// The seed; the same one gives the same graph everywhere.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Draws the graph, within about the memory that it takes.
    ///
    /// # Errors
    /// If there is no such graph.
    pub fn graph(&self) -> Result<Graph, GraphError> {
        self.check()?;
        let Self { nodes, attributes, classes, .. } = *self;
        // Nodes by falling rank, one of each class in turn.
        let mut by_rank: Vec<u32> = (0..nodes as u32).collect();
        by_rank.shuffle(&mut self.random(Stream::Order));
        let adjacency = Pattern::from_entries(nodes, nodes, || self.edges(&by_rank));
        let mut labels = vec![None; nodes];
        for (drawn, &node) in by_rank.iter().enumerate() {
            labels[node as usize] = Some(ClassId((drawn % classes) as u32));
        }
        drop(by_rank);
        let attributes = Pattern::from_entries(nodes, attributes, || self.entries(&labels));
        Graph::of_parts(adjacency, attributes).with_labels(labels)
    }

    fn check(&self) -> Result<(), GraphError> {
        check_size("nodes", self.nodes)?;
        check_size("attributes", self.attributes)?;
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let most = self.nodes as f64 / (2 * self.classes.max(1)) as f64;
        let must = [
            (self.classes > 0 && self.classes <= self.nodes, "the number of classes must be from 1 to that of nodes"),
            (self.classes <= self.attributes, "there must be no fewer attributes than classes"),
            (
                self.degree >= 0.0 && self.degree <= most,
                "the mean degree must be from 0 to half the number of nodes of a class",
            ),
            (
                self.hub.is_none_or(|hub| hub as f64 >= self.degree && hub <= self.nodes / 2),
                "the degree of hubs must be from the mean degree to half the number of nodes",
            ),
            (is_share(self.homophily) && is_share(self.topical), "shares must be from 0 to 1"),
            (self.words <= self.attributes / 2, "a node can have half of the attributes at most"),
        ];
        must.into_iter().find(|&(holds, _)| !holds).map_or(Ok(()), |(_, must)| Err(GraphError::Synthetic { must }))
    }

    fn random(&self, stream: Stream) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(stream as u64);
        random
    }

    /// Ranks of nodes, so that the first of each class have as many neighbours as hubs should.
    fn ranks_of_nodes(&self) -> Ranks {
        let ranks = (self.nodes / self.classes) as f64;
        let hub = self.hub.map_or((30.0 * self.degree).min(ranks / 2.0), |hub| hub as f64);
        let wanted = hub / (self.nodes as f64 * self.degree) * self.classes as f64;
        // The larger the offset, the less the first rank stands out.
        let (mut low, mut high) = (0.0, 64.0 * ranks);
        for _ in 0..64 {
            let middle = 0.5 * (low + high);
            if Ranks::new(ranks, middle).of_first() > wanted { low = middle } else { high = middle }
        }
        Ranks::new(ranks, high)
    }

    /// Both directions of all edges, some of them more than once.
    fn edges(&self, by_rank: &[u32]) -> impl Iterator<Item = (u32, u32)> {
        let (mut random, ranks, classes) = (self.random(Stream::Edges), self.ranks_of_nodes(), self.classes);
        let count = (0.5 * self.degree * self.nodes as f64).round() as usize;
        let edge = move |_| {
            let class = random.random_range(0..classes);
            let other = if random.random_bool(self.homophily) { class } else { random.random_range(0..classes) };
            let mut end = |class: usize| by_rank[ranks.draw(&mut random) * classes + class];
            (end(class), end(other))
        };
        (0..count).map(edge).filter(|(a, b)| a != b).flat_map(|(a, b)| [(a, b), (b, a)])
    }

    /// The attributes of all nodes, some of them more than once.
    fn entries(&self, labels: &[Option<ClassId>]) -> impl Iterator<Item = (u32, u32)> {
        let (mut random, classes) = (self.random(Stream::Words), self.classes);
        let ranks = Ranks::new((self.attributes / classes) as f64, 1.0);
        labels.iter().enumerate().flat_map(move |(node, label)| {
            let count = random.random_range(self.words / 2..=self.words + self.words / 2);
            let mut word = || {
                let topic = label.filter(|_| random.random_bool(self.topical)).map(ClassId::index);
                let topic = topic.unwrap_or_else(|| random.random_range(0..classes));
                (node as u32, (ranks.draw(&mut random) * classes + topic) as u32)
            };
            (0..count).map(|_| word()).collect::<Vec<_>>()
        })
    }
}

/// A power law: the density at x between 0 and the number of ranks is proportional to `(x + offset)^(-3/4)`.
#[derive(Clone, Copy)]
struct Ranks {
    offset: f64,
    /// Fourth roots of the offset, and of the last rank and it, less the former.
    low: f64,
    span: f64,
    last: usize,
}

impl Ranks {
    fn new(ranks: f64, offset: f64) -> Self {
        let low = fourth_root(offset);
        Self { offset, low, span: fourth_root(ranks + offset) - low, last: ranks as usize - 1 }
    }

    /// The probability of the first rank.
    fn of_first(self) -> f64 {
        (fourth_root(1.0 + self.offset) - self.low) / self.span
    }

    fn draw(self, random: &mut ChaCha8Rng) -> usize {
        let root = self.low + self.span * random.random::<f64>();
        let square = root * root;
        ((square * square - self.offset) as usize).min(self.last)
    }
}

fn fourth_root(x: f64) -> f64 {
    x.sqrt().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(graph: &Graph) -> Vec<usize> {
        (0..graph.nodes()).map(|node| graph.adjacency().row(node).len()).collect()
    }

    /// Graphs are as they were asked for, and the same once more.
    #[test]
    fn graphs_are_like_what_was_asked_for() {
        for (nodes, degree, hub) in [(100, 3.0, 10), (5000, 7.0, 200), (20000, 25.0, 2000)] {
            let synthetic = Synthetic::new(nodes).degree(degree).hub(hub).seed(3);
            let graph = synthetic.graph().unwrap();
            assert_eq!(graph, synthetic.graph().unwrap());
            assert_ne!(graph, synthetic.clone().seed(4).graph().unwrap());
            let degrees = degrees(&graph);
            let mean = degrees.iter().sum::<usize>() as f64 / nodes as f64;
            assert!((0.75 * degree..=degree).contains(&mean), "{nodes}: {mean}");
            let largest = *degrees.iter().max().unwrap() as f64;
            assert!((0.6..1.4).contains(&(largest / hub as f64)), "{nodes}: {largest}");
            let joined = graph.adjacency().iter().filter(|&(a, b)| graph.label(a.into()) == graph.label(b.into()));
            let homophily = joined.count() as f64 / graph.adjacency().entries() as f64;
            assert!((0.7..0.95).contains(&homophily), "{nodes}: {homophily}");
            let words = graph.attributes().entries() as f64 / nodes as f64;
            assert!((17.0..22.0).contains(&words), "{nodes}: {words}");
            assert_eq!(graph.classes(), 6);
        }
    }

    /// What can be drawn at the limits is drawn, and what is beyond them is refused.
    #[test]
    fn limits_are_kept() {
        for smallest in [Synthetic::new(1).classes(1).degree(0.0), Synthetic::new(6).degree(0.0).words(0)] {
            assert_eq!(smallest.graph().unwrap().edges(), 0);
        }
        let new = || Synthetic::new(100);
        for wrong in [
            Synthetic::new(0),
            new().classes(0),
            new().classes(101),
            new().degree(f64::NAN),
            new().degree(-1.0),
            new().degree(9.0),
            new().hub(6),
            new().hub(51),
            new().homophily(1.1),
            new().topical(f64::NAN),
            new().attributes(5),
            new().words(1001),
            Synthetic::new(usize::MAX),
        ] {
            assert!(wrong.graph().is_err(), "{wrong:?}");
        }
    }
}
