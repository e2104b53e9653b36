//! CPU time of the stages of certification: `cargo bench`.
//!
//! On Cora-ML with a trained model where `NODEPROOF_DATASETS` and `NODEPROOF_GOLDEN` name the folders that hold them,
//! otherwise on a generated graph of the same shape. `nodeproof bench certify` compares with the dense formula.

use std::hint::black_box;
use std::path::PathBuf;

use cpu_time::ProcessTime;
use nodeproof::{Budget, Certifier, Graph, GraphOptions, LocalBudget, Matrix, Model, Network, NodeId, Propagation};

/// Numbers that look random and are the same everywhere (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound)) as u32
    }

    fn weight(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}

fn generated() -> (Graph, Model) {
    let (nodes, attributes, hidden, classes) = (3000, 2900, 32, 7);
    let mut numbers = Numbers(0);
    let edges: Vec<_> = (0..8000).map(|_| (numbers.below(nodes), numbers.below(nodes))).collect();
    let pairs: Vec<_> = (0..nodes).flat_map(|n| [n; 50]).map(|n| (n, numbers.below(attributes))).collect();
    let graph = Graph::new(nodes as usize, attributes as usize, &edges, &pairs).expect("ids are in range");
    let mut layer = |inputs: usize, outputs: usize| {
        let values = (0..inputs * outputs).map(|_| numbers.weight()).collect();
        (Matrix::from_values(inputs, outputs, values), vec![0.1; outputs])
    };
    let layers = vec![layer(attributes as usize, hidden), layer(hidden, classes)];
    (graph, Model::gcn(layers, Propagation::SymmetricGcn).expect("shapes fit"))
}

fn problem() -> (Graph, Model) {
    let folder = |variable| std::env::var_os(variable).map(PathBuf::from);
    let (Some(datasets), Some(golden)) = (folder("NODEPROOF_DATASETS"), folder("NODEPROOF_GOLDEN")) else {
        return generated();
    };
    let options = GraphOptions::new().binarise(true);
    let (graph, _) = Graph::read(datasets.join("cora_ml.npz"), options).expect("Cora-ML is readable");
    (graph, Model::read(golden.join("cora_ml_s123_ce.npz")).expect("its model is readable"))
}

/// Prints the CPU time that `work` takes: the least and the middle of ten runs, after one that does not count.
fn time<T>(name: &str, work: impl Fn() -> T) {
    let once = || {
        let start = ProcessTime::now();
        black_box(work());
        start.elapsed()
    };
    once();
    let mut times: Vec<_> = (0..10).map(|_| once()).collect();
    times.sort_unstable();
    println!("{name:24} least {:10.3?}   middle {:10.3?}", times[0], times[5]);
}

fn main() {
    let (graph, model) = problem();
    let local: LocalBudget = "1%".parse().expect("a share");
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let network = Network::new(&graph, &model).expect("they fit");
    time("forward", || network.logits());
    for budget in [1, 12, 40] {
        let certifier = Certifier::new(&graph, &model).expect("they fit").budget(Budget::new(budget, local)).threads(1);
        time(&format!("all nodes, Q = {budget}"), || certifier.certify(&nodes));
    }
}
