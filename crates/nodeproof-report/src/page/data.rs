//! What the page reads, field by field as in `report/src/data.ts`.

use std::collections::BTreeMap;

use nodeproof_problem::results::{Certificates, Collectives, Header, Radii};
use nodeproof_problem::settings::asked_in_words;
use nodeproof_problem::{
    AttributeId, Bound, Certificate, ClassId, Collective, Engine, Evidence, Flip, Graph, NodeId, Radius, TargetClass,
    Verdict, Witness,
};
use serde::{Serialize, Serializer};

use super::surroundings::Surroundings;
use super::{ModelResults, Page, certificate_witnesses, radius_witnesses};
use crate::attack::Attack;
use crate::shares::Shares;
use crate::structure::{self, Purity};

/// Characters of a name that are kept.
const NAME: usize = 300;
/// Flips and deletions of all witnesses of a model's radii together that are kept, and flips of its attacks with the nodes that they
/// change; with more, none are.
const CHANGES: usize = 200_000;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    format: &'static str,
    version: u32,
    nodeproof: &'static str,
    title: String,
    /// Whether a checker has accepted everything, but for so many results that it did not check.
    checked: bool,
    not_checked: usize,
    graph: GraphFacts,
    attributes: BTreeMap<AttributeId, String>,
    nodes: Nodes,
    models: Vec<ModelData>,
}

#[derive(Debug, Serialize)]
struct GraphFacts {
    name: String,
    fingerprint: String,
    nodes: usize,
    edges: usize,
    attributes: usize,
    /// What networks read of them, in words, beyond plain bits.
    kind: &'static str,
    /// How many of their values were neither 0 nor 1 before they were counted as one of these.
    binarised: usize,
    classes: Vec<String>,
    named: bool,
}

#[derive(Debug, Serialize)]
struct Nodes {
    subjects: usize,
    id: Vec<NodeId>,
    name: Vec<String>,
    label: Vec<Option<ClassId>>,
    part: Option<Vec<u8>>,
    degree: Vec<usize>,
    neighbours: Vec<Vec<u32>>,
}

#[derive(Debug, Serialize)]
struct ModelData {
    name: String,
    fingerprint: String,
    layers: usize,
    propagation: String,
    certificates: Option<CertificateColumns>,
    radii: Option<RadiusColumns>,
    collectives: Option<CollectiveData>,
    purity: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct BudgetFacts {
    attack: Attack,
    global: u32,
    in_words: String,
    limits_in_words: String,
}

#[derive(Debug, Serialize)]
struct CertificateColumns {
    budget: BudgetFacts,
    engine: Engine,
    arithmetic: &'static str,
    target: TargetClass,
    position: Vec<u32>,
    predicted: Vec<ClassId>,
    class: Vec<ClassId>,
    verdict: Vec<u8>,
    margins: Vec<Vec<Option<BoundCell>>>,
    bounds: Vec<Option<(BoundCell, Option<f64>)>>,
    #[serde(flatten)]
    witnesses: WitnessColumns,
}

#[derive(Debug, Serialize)]
struct RadiusColumns {
    budget: BudgetFacts,
    engine: Engine,
    arithmetic: &'static str,
    target: TargetClass,
    scan: bool,
    position: Vec<u32>,
    class: Vec<Option<ClassId>>,
    robust_up_to: Vec<Option<u32>>,
    nonrobust_from: Vec<Option<u32>>,
    exact: Vec<bool>,
    /// Only of results about deletions of edges: whether the node withstands any number of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    withstands_any: Option<Vec<bool>>,
    #[serde(flatten)]
    witnesses: WitnessColumns,
    curve: Curve,
}

#[derive(Debug, Serialize)]
struct WitnessColumns {
    witness: Vec<Option<Vec<FlipCell>>>,
    /// Only of results about deletions of edges: positions of their two ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_edges: Option<Vec<Option<Vec<[u32; 2]>>>>,
    witness_class: Vec<Option<ClassId>>,
    witness_margin: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct CollectiveData {
    budget: BudgetFacts,
    target: TargetClass,
    answers: Vec<Answer>,
}

/// What one attacker with a global budget does to all predictions together.
#[derive(Debug, Serialize)]
struct Answer {
    global: u32,
    predictions: usize,
    at_most: usize,
    at_least: usize,
    by_radii: usize,
    alone: usize,
    seconds: Option<f64>,
    flips: Option<Vec<FlipCell>>,
    changed: Option<Vec<u32>>,
}

#[derive(Debug, Serialize)]
struct Curve {
    robust: Vec<usize>,
    nonrobust: Vec<usize>,
}

/// Position of the node, attribute, new value, and where attributes are real values, the old one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum FlipCell {
    Bit(u32, AttributeId, u8),
    Value(u32, AttributeId, f64, f64),
}

impl FlipCell {
    fn new(flip: &Flip, graph: &Graph, shown: &Surroundings) -> Self {
        let position = shown.position(flip.node);
        match graph.values() {
            None => Self::Bit(position, flip.attribute, u8::from(flip.adds())),
            Some(values) => Self::Value(position, flip.attribute, flip.to, values.get(flip.node, flip.attribute)),
        }
    }
}

/// A lower bound: a number, `positive` or `unknown`.
#[derive(Debug)]
struct BoundCell(Bound);

impl Serialize for BoundCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Bound::Unknown => serializer.serialize_str("unknown"),
            bound => bound.serialize(serializer),
        }
    }
}

impl Report {
    /// The data of `page`, whose results belong together.
    pub(super) fn new(page: &Page) -> Self {
        let graph = page.graph;
        let flips = || {
            let attacks = attacks(page).flat_map(|record| &record.flips);
            witnesses(page).flat_map(|witness| &witness.flips).chain(attacks)
        };
        let unlinked = witnesses(page).flat_map(|witness| &witness.edges).flat_map(|edge| edge.ends());
        let attacked = attacks(page).flat_map(|record| record.changed.iter().copied());
        let named = flips().map(|flip| flip.node).chain(unlinked).chain(attacked);
        let shown = Surroundings::new(graph, subjects(page), named);
        let attributes = flips().map(|flip| (flip.attribute, name(&graph.attribute_name(flip.attribute))));
        Self {
            format: "nodeproof-report",
            version: 2,
            nodeproof: env!("CARGO_PKG_VERSION"),
            title: name(&page.title),
            checked: page.checked.is_some(),
            not_checked: page.checked.unwrap_or(0),
            graph: GraphFacts::new(page),
            attributes: attributes.collect(),
            models: page
                .models
                .iter()
                .map(|(called, results)| ModelData::new(called, results, graph, &shown))
                .collect(),
            nodes: Nodes::new(page, shown),
        }
    }
}

/// Nodes with results of their own.
fn subjects(page: &Page) -> Vec<NodeId> {
    let of_model = |results: &ModelResults| -> Vec<NodeId> {
        let certified = results.certificates.iter().flat_map(|file| file.records.iter().map(|record| record.node));
        certified.chain(results.radii.iter().flat_map(|file| file.records.iter().map(|record| record.node))).collect()
    };
    page.models.iter().flat_map(|(_, results)| of_model(results)).collect()
}

/// Witnesses that the report shows.
fn witnesses<'a>(page: &'a Page) -> impl Iterator<Item = &'a Witness> {
    page.models.iter().flat_map(|(_, results)| {
        let certified = results.certificates.iter().flat_map(certificate_witnesses);
        certified.chain(results.radii.iter().filter(|radii| keeps_witnesses(radii)).flat_map(radius_witnesses))
    })
}

/// Collective certificates whose attacks the report shows.
fn attacks<'a>(page: &'a Page) -> impl Iterator<Item = &'a Collective> {
    let found = page.models.iter().filter_map(|(_, results)| results.collectives.as_ref());
    found.filter(|found| keeps_attacks(found)).flat_map(|found| &found.records)
}

fn keeps_attacks(found: &Collectives) -> bool {
    found.records.iter().map(|record| record.flips.len() + record.changed.len()).sum::<usize>() <= CHANGES
}

fn keeps_witnesses(radii: &Radii) -> bool {
    radius_witnesses(radii).map(Witness::size).sum::<usize>() <= CHANGES
}

/// A name as it is kept: not endless.
fn name(text: &str) -> String {
    match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl GraphFacts {
    fn new(page: &Page) -> Self {
        let graph = page.graph;
        let headers = || page.models.iter().flat_map(|(_, results)| results.headers().map(|(_, header)| header));
        let classes = headers().map(|header| header.model.classes).max().unwrap_or(0).max(graph.classes());
        Self {
            name: name(&page.graph_name),
            fingerprint: graph.fingerprint(),
            nodes: graph.nodes(),
            edges: graph.edges(),
            attributes: graph.attribute_count(),
            kind: graph.kind().in_addition(),
            binarised: headers().map(|header| header.graph.binarised).max().unwrap_or(0),
            classes: (0..classes).map(|class| name(&graph.class_name(ClassId(class as u32)))).collect(),
            named: graph.names().nodes.is_some(),
        }
    }
}

impl Nodes {
    fn new(page: &Page, shown: Surroundings) -> Self {
        let graph = page.graph;
        let ids = || shown.nodes.iter().copied();
        let part = page.split.map(|split| ids().map(|node| u8::from(split.is_labelled(node))).collect());
        Self {
            subjects: shown.subjects,
            name: ids().map(|node| name(&graph.node_name(node))).collect(),
            label: ids().map(|node| graph.label(node)).collect(),
            part,
            degree: ids().map(|node| structure::degree(graph, node)).collect(),
            id: shown.nodes,
            neighbours: shown.neighbours,
        }
    }
}

impl ModelData {
    fn new(called: &str, results: &ModelResults, graph: &Graph, shown: &Surroundings) -> Self {
        let header = results.headers().next().map(|(_, header)| header.model.clone());
        let (fingerprint, layers, propagation) =
            header.map_or_else(Default::default, |model| (model.fingerprint, model.layers, model.propagation));
        let predicted = predictions(results, graph.nodes());
        let mut purity = Purity::new(graph, &predicted);
        Self {
            name: name(called),
            fingerprint,
            layers,
            propagation,
            certificates: results.certificates.as_ref().map(|file| CertificateColumns::new(file, (graph, shown))),
            radii: results.radii.as_ref().map(|file| RadiusColumns::new(file, (graph, shown))),
            collectives: results.collectives.as_ref().map(|file| CollectiveData::new(file, (graph, shown))),
            purity: shown.nodes[..shown.subjects].iter().map(|&node| purity.of(node)).collect(),
        }
    }
}

/// The predicted class of each node, where it is on file.
fn predictions(results: &ModelResults, nodes: usize) -> Vec<Option<ClassId>> {
    let mut predicted = vec![None; nodes];
    if let Some(radii) = results.radii.as_ref().filter(|radii| radii.header.target_class == TargetClass::Predicted) {
        for record in &radii.records {
            predicted[record.node.index()] = record.class();
        }
    }
    for record in results.certificates.iter().flat_map(|file| &file.records) {
        predicted[record.node.index()] = Some(record.predicted);
    }
    predicted
}

impl BudgetFacts {
    fn new(header: &Header) -> Self {
        let budget = &header.budget;
        let limits = budget.limits_in_words(header.graph.attributes);
        let limits = if limits.is_empty() { limits } else { format!(", {limits}") };
        Self {
            attack: Attack::of(budget),
            global: budget.varied(),
            in_words: header.budget_in_words(),
            limits_in_words: limits + &asked_in_words(header.margin, header.arithmetic),
        }
    }
}

impl WitnessColumns {
    /// One entry a record of results about `header`; without flips and deletions if they are not kept.
    fn new<'w>(
        header: &Header,
        witnesses: impl Iterator<Item = Option<&'w Witness>> + Clone,
        are_kept: bool,
        (graph, shown): (&Graph, &Surroundings),
    ) -> Self {
        let cells = |witness: &Witness| witness.flips.iter().map(|flip| FlipCell::new(flip, graph, shown)).collect();
        let ends =
            |witness: &Witness| witness.edges.iter().map(|edge| edge.ends().map(|node| shown.position(node))).collect();
        let kept = || witnesses.clone().map(|witness| witness.filter(|_| are_kept));
        Self {
            witness: kept().map(|witness| witness.map(cells)).collect(),
            witness_edges: header.budget.edges().map(|_| kept().map(|witness| witness.map(ends)).collect()),
            witness_class: witnesses.clone().map(|witness| witness.map(|witness| witness.class)).collect(),
            witness_margin: witnesses.map(|witness| witness.map(|witness| witness.margin)).collect(),
        }
    }
}

impl CertificateColumns {
    fn new(file: &Certificates, (graph, shown): (&Graph, &Surroundings)) -> Self {
        fn column<T>(file: &Certificates, cell: impl Fn(&Certificate) -> T) -> Vec<T> {
            file.records.iter().map(cell).collect()
        }
        let bounds = |record: &Certificate| match record.evidence {
            Evidence::Open { lower, upper, .. } => Some((BoundCell(lower), upper)),
            _ => None,
        };
        Self {
            budget: BudgetFacts::new(&file.header),
            arithmetic: file.header.arithmetic.name(),
            engine: file.header.engine,
            target: file.header.target_class,
            position: column(file, |record| shown.position(record.node)),
            predicted: column(file, |record| record.predicted),
            class: column(file, |record| record.class),
            verdict: column(file, |record| match record.verdict() {
                Verdict::Robust => 0,
                Verdict::Nonrobust => 1,
                Verdict::Undecided => 2,
            }),
            margins: column(file, |record| record.margins.iter().map(|margin| margin.map(BoundCell)).collect()),
            bounds: column(file, bounds),
            witnesses: WitnessColumns::new(
                &file.header,
                file.records.iter().map(Certificate::witness),
                true,
                (graph, shown),
            ),
        }
    }
}

impl RadiusColumns {
    fn new(file: &Radii, (graph, shown): (&Graph, &Surroundings)) -> Self {
        fn column<T>(file: &Radii, cell: impl Fn(&Radius) -> T) -> Vec<T> {
            file.records.iter().map(cell).collect()
        }
        let Shares { robust, nonrobust, .. } = Shares::of(file);
        Self {
            budget: BudgetFacts::new(&file.header),
            engine: file.header.engine,
            arithmetic: file.header.arithmetic.name(),
            target: file.header.target_class,
            scan: file.header.scan,
            position: column(file, |record| shown.position(record.node)),
            class: column(file, Radius::class),
            robust_up_to: column(file, |record| file.proven(record)),
            nonrobust_from: column(file, Radius::nonrobust_from),
            exact: column(file, Radius::is_exact),
            withstands_any: file.header.budget.edges().map(|_| structure::withstand_any(graph, file)),
            witnesses: WitnessColumns::new(
                &file.header,
                file.records.iter().map(Radius::witness),
                keeps_witnesses(file),
                (graph, shown),
            ),
            curve: Curve { robust, nonrobust },
        }
    }
}

impl CollectiveData {
    fn new(file: &Collectives, place: (&Graph, &Surroundings)) -> Self {
        let are_kept = keeps_attacks(file);
        Self {
            budget: BudgetFacts::new(&file.header),
            target: file.header.target_class,
            answers: file.records.iter().map(|record| Answer::new(record, are_kept, place)).collect(),
        }
    }
}

impl Answer {
    /// Without the attack if that is not kept.
    fn new(of: &Collective, is_kept: bool, (graph, shown): (&Graph, &Surroundings)) -> Self {
        let flips = || of.flips.iter().map(|flip| FlipCell::new(flip, graph, shown)).collect();
        let changed = || of.changed.iter().map(|&node| shown.position(node)).collect();
        Self {
            global: of.global,
            predictions: of.targets,
            at_most: of.at_most,
            at_least: of.at_least(),
            by_radii: of.by_radii,
            alone: of.alone,
            seconds: of.time.map(|time| time.as_secs_f64()),
            flips: is_kept.then(flips),
            changed: is_kept.then(changed),
        }
    }
}
