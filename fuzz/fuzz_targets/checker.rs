//! Certificates of a tiny graph, with proofs. What the checker accepts is compared with all admissible sets of flips.
//!
//! The first line is the budget: how many flips in all, how many at a node, and their direction. Each other line is a certificate
//! without its hash.
#![no_main]

use std::collections::BTreeSet;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use nodeproof_check::Checker;
use nodeproof_problem::results::{Header, LineWriter, Record, Results};
use nodeproof_problem::{
    AttributeId, Budget, Certificate, CertifySettings, Evidence, Flip, Graph, Matrix, Model, NodeId, Propagation,
};
use serde_json::value::RawValue;

const NODES: usize = 3;
const ATTRIBUTES: usize = 3;
/// Far more than doubles are off in networks of this size.
const ROUNDING: f64 = 1e-9;

/// A graph, a network, and what the network says under each set of flips.
struct Question {
    graph: Graph,
    model: Model,
    sets: Vec<Set>,
}

/// Flips, and with them the logits of each node.
struct Set {
    flips: Vec<Flip>,
    logits: Vec<Vec<f64>>,
}

fuzz_target!(|text: &str| {
    static QUESTION: OnceLock<Question> = OnceLock::new();
    let question = QUESTION.get_or_init(Question::new);
    let mut lines = text.lines();
    let Some(budget) = lines.next().and_then(budget) else { return };
    let records: Vec<_> = lines.filter_map(|line| serde_json::from_str::<&RawValue>(line).ok()).collect();
    let mut settings = CertifySettings::new(budget.clone());
    settings.proofs = true;
    let header = Header::new(&question.graph, &question.model, &settings, records.len());
    let mut writer = LineWriter::begin(Vec::new(), &Certificate::header_line(&header)).unwrap();
    if records.iter().any(|record| writer.record(record).is_err()) {
        return;
    }
    let Ok(Results::Certificates(file)) = Results::read_from(&writer.into_inner()[..], "fuzz") else { return };
    let Ok(checker) = Checker::of(&file.header, &question.graph, &question.model) else { return };
    for certificate in file.records.iter().filter(|certificate| checker.certificate(certificate).is_ok()) {
        question.assert_true(certificate, &budget);
    }
});

/// Such as `2 1 both`.
fn budget(line: &str) -> Option<Budget> {
    let mut words = line.split(' ');
    let (global, local) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Budget::new(global, local).direction(words.next()?.parse().ok()?))
}

impl Question {
    /// Three nodes in a row, and a network with one hidden layer.
    fn new() -> Self {
        let graph = Graph::new(NODES, ATTRIBUTES, &[(0, 1), (1, 2)], &[(0, 0), (0, 1), (1, 1), (2, 2)]).unwrap();
        let first = vec![1.0, -0.5, 0.25, 0.75, 0.5, -1.0, -0.75, 1.0, 0.5];
        let last = vec![1.0, -0.5, 0.25, -0.75, 1.0, 0.5, 0.5, 0.25, -1.0];
        let layers = vec![
            (Matrix::from_values(ATTRIBUTES, 3, first), vec![0.1, -0.2, 0.3]),
            (Matrix::from_values(3, 3, last), vec![0.2, 0.0, -0.3]),
        ];
        let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap();
        let set = |bits: u32| {
            let chosen = places().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
            let flips: Vec<_> = chosen.map(|(_, (node, attribute))| Flip::of(&graph, node, attribute)).collect();
            Set { logits: logits(&graph, &model, &flips), flips }
        };
        let sets = (0..1 << places().count()).map(set).collect();
        Self { graph, model, sets }
    }

    /// Compares a certificate with the logits under every admissible set.
    fn assert_true(&self, certificate: &Certificate, budget: &Budget) {
        let (node, class) = (certificate.node.index(), certificate.class.index());
        let limits = budget.limits(&self.graph).unwrap();
        let mut admissible = self.sets.iter().filter(|set| limits.admits(&self.graph, &set.flips));
        match &certificate.evidence {
            Evidence::Robust => admissible.for_each(|set| {
                let margins = certificate.margins.iter().enumerate().filter(|&(k, _)| k != class);
                for (k, said) in margins.map(|(k, said)| (k, said.expect("accepted").value())) {
                    let found = set.logits[node][class] - set.logits[node][k];
                    let holds = found > -ROUNDING && found >= said - ROUNDING;
                    assert!(holds, "the margin is {found} under {:?}, but said to be {said}", set.flips);
                }
            }),
            Evidence::Witness(witness) => {
                let flips: BTreeSet<_> = witness.flips.iter().copied().collect();
                let set = admissible.find(|set| set.flips.iter().copied().collect::<BTreeSet<_>>() == flips);
                let logits = &set.expect("a witness is within the budget").logits[node];
                assert!(logits[class] - logits[witness.class.index()] < ROUNDING, "its witness changes nothing");
            }
            _ => {}
        }
    }
}

/// All that can be flipped.
fn places() -> impl Iterator<Item = (NodeId, AttributeId)> {
    (0..NODES as u32)
        .flat_map(|node| (0..ATTRIBUTES as u32).map(move |attribute| (NodeId(node), AttributeId(attribute))))
}

/// The network as its definition has it, in plain loops.
fn logits(graph: &Graph, model: &Model, flips: &[Flip]) -> Vec<Vec<f64>> {
    let propagation = model.propagations()[0].matrix(graph).unwrap();
    let mut values = vec![vec![0.0; ATTRIBUTES]; NODES];
    places().for_each(|(node, attribute)| values[node.index()][attribute.index()] = graph.value(node, attribute));
    flips.iter().for_each(|flip| values[flip.node.index()][flip.attribute.index()] = flip.to);
    for (i, (weight, bias)) in model.as_chain().unwrap().into_iter().enumerate() {
        if i > 0 {
            values.iter_mut().flatten().for_each(|value| *value = value.max(0.0));
        }
        let mut next = vec![bias.to_vec(); NODES];
        for (row, sums) in next.iter_mut().enumerate() {
            let (columns, factors) = propagation.row(row);
            for (&n, factor) in columns.iter().zip(factors) {
                for (d, value) in values[n as usize].iter().enumerate() {
                    sums.iter_mut().enumerate().for_each(|(unit, sum)| *sum += factor * value * weight.get(d, unit));
                }
            }
        }
        values = next;
    }
    values
}
