//! Files of certificates that were tampered with, a hundred times in each way: none gets through reader and checker, also where whoever did it
//! computed the hashes again.

use std::collections::BTreeMap;
use std::path::Path;

use nodeproof::certificate::smallest;
use nodeproof::results::{Certificates, Header, Results};
use nodeproof::{
    AttributeId, Bound, Budget, Certificate, CertifySettings, ClassId, Engine, Evidence, Flip, Graph, Model, NodeId,
    TargetClass, Witness,
};
use nodeproof_check::Checker;
use nodeproof_problem::{Branch, Proof, Proofs, UnitSlope};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::brute_force::dense_rows;
use crate::common::seed::config;
use crate::common::{Problem, TINY, problems, problems_of_terms, with_normalised_rows};

/// Tamperings of each kind.
const EACH: usize = 100;

/// A problem with its certificates.
struct Case {
    graph: Graph,
    model: Model,
    certificates: Certificates,
}

impl Case {
    fn new(problem: &Problem) -> Self {
        let (graph, model) = (problem.graph(), problem.model());
        let mut settings = CertifySettings::new(problem.budget());
        (settings.target_class, settings.engine, settings.proofs) = (problem.target_class(), Engine::Complete, true);
        let mut certificates = Certificates::new(Header::new(&graph, &model, &settings, graph.nodes()));
        certificates.records = problem.certify_by(|certifier| certifier.engine(Engine::Complete).proofs(true));
        Self { graph, model, certificates }
    }

    fn text(certificates: &Certificates) -> String {
        let mut bytes = Vec::new();
        certificates.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// What reader and checker say to a file.
    fn judge(text: &str, graph: &Graph, model: &Model) -> Result<(), String> {
        let results = Results::read_from(text.as_bytes(), "file").map_err(|error| error.to_string())?;
        let certificates = Certificates::of(results, Path::new("file")).map_err(|error| error.to_string())?;
        let checker = Checker::of(&certificates.header, graph, model).map_err(|error| error.to_string())?;
        certificates
            .records
            .iter()
            .try_for_each(|record| checker.certificate(record).map_err(|error| error.to_string()))
    }

    /// The file after `change`, with hashes that fit; `None` if there was nothing to change.
    fn forged(&self, change: impl FnOnce(&mut Certificates) -> Option<()>) -> Option<String> {
        let mut certificates = self.certificates.clone();
        change(&mut certificates)?;
        for record in &mut certificates.records {
            record.worst_class = smallest(&record.margins).0;
        }
        Some(Self::text(&certificates))
    }
}

/// One of the records that are like this.
fn pick(of: &mut Certificates, choice: usize, is_so: impl Fn(&Certificate) -> bool) -> Option<&mut Certificate> {
    let places: Vec<usize> = (0..of.records.len()).filter(|&place| is_so(&of.records[place])).collect();
    Some(&mut of.records[*places.get(choice % places.len().max(1))?])
}

fn is_flipped(certificate: &Certificate) -> bool {
    certificate.witness().is_some_and(|witness| !witness.flips.is_empty())
}

/// Each way of tampering that the case has something for: what it is, and the file, graph and model to judge.
fn tampered(case: &Case, choices: &[usize]) -> Vec<(&'static str, String, Graph, Model)> {
    let choice = choices[0];
    let mut all = Vec::new();
    let mut add = |kind, text: Option<String>| {
        all.extend(text.map(|text| (kind, text, case.graph.clone(), case.model.clone())));
    };
    add(
        "verdict",
        case.forged(|of| {
            let record = pick(of, choice, |of| of.witness().is_some())?;
            record.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Positive);
            (record.evidence, record.proofs) = (Evidence::Robust, Some(BTreeMap::new()));
            Some(())
        }),
    );
    add(
        "verdict",
        case.forged(|of| {
            let record = pick(of, choice, Certificate::is_robust)?;
            let class = ClassId(u32::from(record.class == ClassId(0)));
            record.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::AtLeast(-1.0));
            (record.evidence, record.proofs) = (Evidence::Witness(Witness::new(Vec::new(), class, 0.0)), None);
            Some(())
        }),
    );
    add(
        "margin",
        case.forged(|of| {
            let record = pick(of, choice, |_| true)?;
            let margins: Vec<_> = record.margins.iter_mut().flatten().collect();
            let count = margins.len();
            *margins.into_iter().nth(choices[1] % count)? = Bound::AtLeast(1e6 + choices[2] as f64);
            Some(())
        }),
    );
    add(
        "witness",
        case.forged(|of| {
            let record = pick(of, choice, is_flipped)?;
            let Evidence::Witness(witness) = &mut record.evidence else { return None };
            let place = choices[1] % witness.flips.len();
            let flip = &mut witness.flips[place];
            match choices[2] % 4 {
                0 => flip.to = 1.0 - flip.to,
                1 => flip.attribute = AttributeId(1_000_000),
                2 => witness.margin -= 1e6,
                _ => {
                    let twice = *flip;
                    witness.flips.push(twice);
                }
            }
            Some(())
        }),
    );
    add(
        "tree",
        case.forged(|of| {
            let node = pick(of, choice, Certificate::is_robust)?;
            let class = ClassId(u32::from(node.class == ClassId(0)));
            let wrong = [
                Flip { node: NodeId(1_000_000), attribute: AttributeId(0), to: 1.0 },
                Flip { node: node.node, attribute: AttributeId(1_000_000), to: 1.0 },
                Flip { node: node.node, attribute: AttributeId(0), to: 0.5 },
            ];
            let branch = Branch { flip: wrong[choices[1] % 3], proof: Proof::default() };
            node.proofs.get_or_insert_default().entry(class).or_default().branches.insert(0, branch);
            Some(())
        }),
    );
    add(
        "tree",
        case.forged(|of| {
            let has_branches = |proofs: &Proofs| proofs.values().any(|proof| !proof.branches.is_empty());
            let node = pick(of, choice, |of| of.proofs.as_ref().is_some_and(has_branches))?;
            let proof = node.proofs.as_mut()?.values_mut().find(|proof| !proof.branches.is_empty())?;
            let twice = proof.branches[choices[1] % proof.branches.len()].clone();
            proof.branches.push(twice);
            Some(())
        }),
    );
    add(
        "parameters",
        case.forged(|of| {
            let node = pick(of, choice, Certificate::is_robust)?;
            let class = ClassId(u32::from(node.class == ClassId(0)));
            let right = UnitSlope { layer: 0, node: node.node, unit: 0, slope: 1.0 };
            let wrong = [
                UnitSlope { layer: 1_000_000, ..right },
                UnitSlope { node: NodeId(1_000_000), ..right },
                UnitSlope { unit: 1_000_000, ..right },
                UnitSlope { slope: 1.25, ..right },
                UnitSlope { slope: -0.25, ..right },
            ];
            node.proofs.get_or_insert_default().entry(class).or_default().slopes.push(wrong[choices[1] % 5]);
            Some(())
        }),
    );
    add(
        "class",
        case.forged(|of| {
            let record = pick(of, choice, |_| true)?;
            let other = ClassId(u32::from(record.class == ClassId(0)));
            let margins = record.margins.swap_remove(0);
            record.margins.push(margins);
            record.class = other;
            Some(())
        }),
    );
    add(
        "header",
        case.forged(|of| {
            let header = &mut of.header;
            match choices[1] % 5 {
                0 => header
                    .graph
                    .fingerprint
                    .replace_range(..1, if header.graph.fingerprint.starts_with('0') { "1" } else { "0" }),
                1 => header
                    .model
                    .fingerprint
                    .replace_range(..1, if header.model.fingerprint.starts_with('0') { "1" } else { "0" }),
                2 => header.graph.nodes += 1,
                3 => header.model.layers += 1,
                _ => {
                    header.budget =
                        Budget::new(header.budget.global(), header.budget.local()).protect_nodes([NodeId(1_000_000)])
                }
            }
            Some(())
        }),
    );
    // A smaller budget makes witnesses too large, other classes to certify are not those of the records.
    add(
        "header",
        case.forged(|of| {
            let most = of.records.iter().filter_map(|record| Some(record.witness()?.flips.len())).max()?;
            of.header.budget = of.header.budget.clone().with_global(u32::try_from(most.checked_sub(1)?).ok()?);
            Some(())
        }),
    );
    add(
        "header",
        case.forged(|of| {
            of.records.iter().any(|record| record.label.is_some_and(|label| label != record.predicted)).then_some(())?;
            of.header.target_class = match of.header.target_class {
                TargetClass::Predicted => TargetClass::Label,
                _ => TargetClass::Predicted,
            };
            Some(())
        }),
    );
    let text = Case::text(&case.certificates);
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > 2 {
        let (a, b) = (1 + choices[1] % (lines.len() - 1), 1 + choices[2] % (lines.len() - 1));
        let mut swapped = lines.clone();
        swapped.swap(a, if a == b { 1 + a % (lines.len() - 1) } else { b });
        add("order", Some(swapped.join("\n") + "\n"));
    }
    let mut cut = text.clone();
    cut.truncate(choices[1] % (text.len() - 1));
    add("truncation", Some(cut));
    let mut edited = text.clone().into_bytes();
    let place = choices[1] % edited.len();
    edited[place] = if edited[place] == b'7' { b'3' } else { b'7' };
    add("byte", String::from_utf8(edited).ok());
    all.extend(other_inputs(case, choices).map(|(kind, graph, model)| (kind, text.clone(), graph, model)));
    all
}

/// A graph with another attribute or edge, and a model with another weight.
fn other_inputs(case: &Case, choices: &[usize]) -> impl Iterator<Item = (&'static str, Graph, Model)> {
    let Case { graph, model, .. } = case;
    let (nodes, attributes) = (graph.nodes() as u32, graph.attribute_count() as u32);
    let changed = (choices[1] as u32 % nodes, choices[2] as u32 % attributes);
    let mut ones: Vec<(u32, u32)> = graph.attributes().iter().filter(|&one| one != changed).collect();
    if ones.len() == graph.attributes().entries() {
        ones.push(changed);
    }
    let edges: Vec<(u32, u32)> = graph.adjacency().iter().collect();
    let options = nodeproof::GraphOptions::new().keep_self_loops(true).directed(true);
    let other = Graph::with_options(nodes as usize, attributes as usize, &edges, &ones, options).unwrap();
    let other = other.with_kind(graph.kind());
    let labels = graph.node_ids().map(|node| graph.label(node)).collect();
    let other = if graph.has_labels() { other.with_labels(labels).unwrap() } else { other };
    let mut changed = model.clone();
    if let Some(weight) = changed.tensors_mut().flatten().nth(choices[1] % 2) {
        *weight = weight.next_up() + 1e-300;
    }
    [("graph", other, model.clone()), ("model", graph.clone(), changed)].into_iter()
}

#[test]
fn no_tampering_gets_through() {
    let any = prop_oneof![
        problems(TINY),
        problems_of_terms(TINY, 4),
        with_normalised_rows(prop_oneof![problems(TINY), dense_rows()]),
    ];
    let any = (any, prop::collection::vec(0..1_000_000usize, 3));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let tampered_with = std::cell::RefCell::new(&mut counts);
    TestRunner::new(config(1_000))
        .run(&any, |(problem, choices)| {
            let case = Case::new(&problem);
            let text = Case::text(&case.certificates);
            prop_assert_eq!(Case::judge(&text, &case.graph, &case.model), Ok(()), "{}", text);
            for (kind, text, graph, model) in tampered(&case, &choices) {
                prop_assert!(Case::judge(&text, &graph, &model).is_err(), "{kind} gets through: {text}");
                *tampered_with.borrow_mut().entry(kind).or_default() += 1;
            }
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(std::env::var_os("PROPTEST_CASES").is_some() || counts.values().all(|&count| count >= EACH), "{counts:?}");
    assert_eq!(counts.len(), 12, "{counts:?}");
}
