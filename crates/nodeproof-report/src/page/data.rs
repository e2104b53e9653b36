//! What the page reads, field by field as in `report/src/data.ts`.

use std::collections::BTreeMap;

use nodeproof::{AttributeId, ClassId, Direction, Engine, Graph, NodeId, TargetClass};
use serde::{Serialize, Serializer};

use super::surroundings::Surroundings;
use super::{ModelResults, Page};
use crate::results::{Certificates, FlipRecord, Radii, Record, ResultBudget, VerdictName};
use crate::shares::Shares;
use crate::structure::{self, Purity};

/// Characters of a name that are kept.
const NAME: usize = 300;
/// Flips of all witnesses of a model's radii together that are kept; with more, none are.
const FLIPS: usize = 200_000;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    format: &'static str,
    version: u32,
    nodeproof: &'static str,
    title: String,
    graph: GraphFacts,
    attributes: BTreeMap<u32, String>,
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
    classes: Vec<String>,
    named: bool,
}

#[derive(Debug, Serialize)]
struct Nodes {
    subjects: usize,
    id: Vec<u32>,
    name: Vec<String>,
    label: Vec<Option<u32>>,
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
    purity: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct BudgetFacts {
    global: u32,
    local: String,
    local_count: u32,
    direction: Direction,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CertificateColumns {
    budget: BudgetFacts,
    engine: Engine,
    target: TargetClass,
    position: Vec<u32>,
    predicted: Vec<u32>,
    class: Vec<u32>,
    verdict: Vec<u8>,
    margins: Vec<Vec<Margin>>,
    witness: Vec<Option<Vec<FlipCell>>>,
    witness_class: Vec<Option<u32>>,
    witness_margin: Vec<Option<f64>>,
    bounds: Vec<Option<(f64, f64)>>,
}

#[derive(Debug, Serialize)]
struct RadiusColumns {
    engine: Engine,
    target: TargetClass,
    direction: Direction,
    notes: Vec<String>,
    scan: bool,
    max_budget: u32,
    local: String,
    local_count: u32,
    position: Vec<u32>,
    class: Vec<Option<u32>>,
    robust_up_to: Vec<Option<u32>>,
    nonrobust_from: Vec<Option<u32>>,
    exact: Vec<bool>,
    witness: Vec<Option<Vec<FlipCell>>>,
    witness_class: Vec<Option<u32>>,
    witness_margin: Vec<Option<f64>>,
    curve: Curve,
}

#[derive(Debug, Serialize)]
struct Curve {
    robust: Vec<usize>,
    nonrobust: Vec<usize>,
}

/// Position of the node, attribute, new value.
type FlipCell = (u32, u32, u8);

/// A lower bound; `?` where numbers overflowed.
#[derive(Debug)]
struct Margin(Option<f64>);

impl Serialize for Margin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(margin) if margin <= f64::MIN => serializer.serialize_str("?"),
            margin => margin.serialize(serializer),
        }
    }
}

impl Report {
    /// The data of `page`, whose results belong together.
    pub(super) fn new(page: &Page) -> Self {
        let graph = page.graph;
        let shown = Surroundings::new(graph, subjects(page), flips(page).map(|flip| flip.node));
        let attributes =
            flips(page).map(|flip| (flip.attribute, name(&graph.attribute_name(AttributeId(flip.attribute)))));
        Self {
            format: "nodeproof-report",
            version: 1,
            nodeproof: env!("CARGO_PKG_VERSION"),
            title: name(&page.title),
            graph: GraphFacts::new(page),
            attributes: attributes.collect(),
            models: page.models.iter().map(|model| ModelData::new(model, graph, &shown)).collect(),
            nodes: Nodes::new(page, shown),
        }
    }
}

/// Nodes with results.
fn subjects(page: &Page) -> Vec<u32> {
    let of_model = |model: &ModelResults| -> Vec<u32> {
        let certified = model.certificates.iter().flat_map(|file| file.records.iter().map(|record| record.node));
        certified.chain(model.radii.iter().flat_map(|file| file.records.iter().map(|record| record.node))).collect()
    };
    page.models.iter().flat_map(of_model).collect()
}

/// Flips that the report tells of.
fn flips<'a>(page: &'a Page) -> impl Iterator<Item = &'a FlipRecord> {
    page.models.iter().flat_map(|model| {
        let certified =
            model.certificates.iter().flat_map(|file| file.records.iter().filter_map(|record| record.witness.as_ref()));
        let kept = model.radii.as_ref().filter(|radii| keeps_witnesses(radii));
        certified.flatten().chain(kept.into_iter().flat_map(radius_flips))
    })
}

fn radius_flips(radii: &Radii) -> impl Iterator<Item = &FlipRecord> {
    let found = radii.records.iter().filter_map(|record| record.found.as_ref());
    found.filter_map(|found| found.witness.as_ref()).flatten()
}

fn keeps_witnesses(radii: &Radii) -> bool {
    radius_flips(radii).count() <= FLIPS
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
        let of_models = page.models.iter().flat_map(|model| model.headers().map(|(_, model)| model.classes));
        let classes = of_models.max().unwrap_or(0).max(graph.classes());
        Self {
            name: name(&page.graph_name),
            fingerprint: graph.fingerprint(),
            nodes: graph.nodes(),
            edges: graph.edges(),
            attributes: graph.attribute_count(),
            classes: (0..classes).map(|class| name(&graph.class_name(ClassId(class as u32)))).collect(),
            named: graph.names().nodes.is_some(),
        }
    }
}

impl Nodes {
    fn new(page: &Page, shown: Surroundings) -> Self {
        let graph = page.graph;
        let ids = || shown.nodes.iter().map(|&node| NodeId(node));
        let part = page.split.map(|split| ids().map(|node| u8::from(split.is_labelled(node))).collect());
        Self {
            subjects: shown.subjects,
            name: ids().map(|node| name(&graph.node_name(node))).collect(),
            label: ids().map(|node| graph.label(node).map(|label| label.0)).collect(),
            part,
            degree: ids().map(|node| structure::degree(graph, node)).collect(),
            id: shown.nodes,
            neighbours: shown.neighbours,
        }
    }
}

impl ModelData {
    fn new(results: &ModelResults, graph: &Graph, shown: &Surroundings) -> Self {
        let header = results.headers().next().map(|(_, model)| model.clone());
        let (fingerprint, layers, propagation) =
            header.map_or_else(Default::default, |model| (model.fingerprint, model.layers, model.propagation));
        let predicted = predictions(results, graph.nodes());
        let mut purity = Purity::new(graph, &predicted);
        Self {
            name: name(&results.name),
            fingerprint,
            layers,
            propagation,
            certificates: results.certificates.as_ref().map(|file| CertificateColumns::new(file, shown)),
            radii: results.radii.as_ref().map(|file| RadiusColumns::new(file, shown)),
            purity: shown.nodes[..shown.subjects].iter().map(|&node| purity.of(NodeId(node))).collect(),
        }
    }
}

/// The predicted class of each node, where it is on file.
fn predictions(results: &ModelResults, nodes: usize) -> Vec<Option<u32>> {
    let mut predicted = vec![None; nodes];
    if let Some(radii) = results.radii.as_ref().filter(|radii| radii.target_class == TargetClass::Predicted) {
        for record in &radii.records {
            predicted[record.node as usize] = record.class();
        }
    }
    for record in results.certificates.iter().flat_map(|file| &file.records) {
        predicted[record.node as usize] = Some(record.predicted);
    }
    predicted
}

impl BudgetFacts {
    fn new(of: &ResultBudget) -> Self {
        let budget = &of.budget;
        Self {
            global: budget.global(),
            local: of.local.clone(),
            local_count: of.local_count,
            direction: budget.allowed(),
            notes: of.exceptions(),
        }
    }
}

fn flip_cells(flips: &[FlipRecord], shown: &Surroundings) -> Vec<FlipCell> {
    flips.iter().map(|flip| (shown.position(flip.node), flip.attribute, flip.to)).collect()
}

impl CertificateColumns {
    fn new(file: &Certificates, shown: &Surroundings) -> Self {
        fn column<T>(file: &Certificates, cell: impl Fn(&Record) -> T) -> Vec<T> {
            file.records.iter().map(cell).collect()
        }
        Self {
            budget: BudgetFacts::new(&file.budget),
            engine: file.engine,
            target: file.target_class,
            position: column(file, |record| shown.position(record.node)),
            predicted: column(file, |record| record.predicted),
            class: column(file, |record| record.class),
            verdict: column(file, |record| match record.verdict {
                VerdictName::Robust => 0,
                VerdictName::Nonrobust => 1,
                VerdictName::Undecided => 2,
            }),
            margins: column(file, |record| record.margins.iter().map(|&margin| Margin(margin)).collect()),
            witness: column(file, |record| record.witness.as_deref().map(|flips| flip_cells(flips, shown))),
            witness_class: column(file, |record| record.witness_class),
            witness_margin: column(file, |record| record.witness_margin),
            bounds: column(file, |record| record.lower.zip(record.upper)),
        }
    }
}

impl RadiusColumns {
    fn new(file: &Radii, shown: &Surroundings) -> Self {
        let keeps_witnesses = keeps_witnesses(file);
        let records = || file.records.iter();
        let found = || records().map(|record| record.found.as_ref());
        let witness = found().map(|found| {
            let flips = found.and_then(|found| found.witness.as_deref()).filter(|_| keeps_witnesses);
            flips.map(|flips| flip_cells(flips, shown))
        });
        let Shares { robust, nonrobust, .. } = Shares::of(file);
        let BudgetFacts { global, local, local_count, direction, notes } = BudgetFacts::new(&file.budget);
        Self {
            engine: file.engine,
            target: file.target_class,
            direction,
            notes,
            scan: file.scan,
            max_budget: global,
            local,
            local_count,
            position: records().map(|record| shown.position(record.node)).collect(),
            class: records().map(|record| record.class()).collect(),
            robust_up_to: records().map(|record| file.proven(record)).collect(),
            nonrobust_from: records().map(|record| record.nonrobust_from()).collect(),
            exact: records().map(|record| record.is_exact()).collect(),
            witness: witness.collect(),
            witness_class: found().map(|found| found.and_then(|found| found.witness_class)).collect(),
            witness_margin: found().map(|found| found.and_then(|found| found.witness_margin)).collect(),
            curve: Curve { robust, nonrobust },
        }
    }
}
