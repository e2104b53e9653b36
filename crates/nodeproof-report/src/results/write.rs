//! Writing results as the command line writes them.

use std::io::{self, Write};

use nodeproof::{Budget, Engine, TargetClass};
use serde::Serialize;
use serde_json::Value;

use super::read::{CERTIFICATES, RADII, VERSION};
use super::{Certificates, GraphHeader, ModelHeader, Radii, ResultBudget};

#[derive(Serialize)]
struct BudgetFields<'a> {
    #[serde(flatten)]
    budget: &'a Budget,
    local_count: u32,
}

impl<'a> BudgetFields<'a> {
    fn of(budget: &'a ResultBudget) -> Self {
        Self { budget: &budget.budget, local_count: budget.local_count }
    }
}

#[derive(Serialize)]
struct CertificatesHeader<'a> {
    format: &'static str,
    version: u64,
    nodeproof: &'static str,
    engine: Engine,
    class: TargetClass,
    graph: &'a GraphHeader,
    model: &'a ModelHeader,
    budget: BudgetFields<'a>,
    nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timings: bool,
}

#[derive(Serialize)]
struct RadiiHeader<'a> {
    format: &'static str,
    version: u64,
    nodeproof: &'static str,
    engine: Engine,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    scan: bool,
    class: TargetClass,
    graph: &'a GraphHeader,
    model: &'a ModelHeader,
    budget: Value,
    max_budget: u32,
    nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timings: bool,
}

impl Certificates {
    /// Writes the certificates as JSON Lines, a header first, as `nodeproof certify --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let header = CertificatesHeader {
            format: CERTIFICATES,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine: self.engine,
            class: self.target_class,
            graph: &self.graph,
            model: &self.model,
            budget: BudgetFields::of(&self.budget),
            nodes: self.records.len(),
            timings: self.records.iter().any(|record| record.seconds.is_some()),
        };
        line(out, &header)?;
        self.records.iter().try_for_each(|record| line(out, record))
    }
}

impl Radii {
    /// Writes the radii as JSON Lines, a header first, as `nodeproof radius --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut budget = serde_json::to_value(BudgetFields::of(&self.budget))?;
        budget.as_object_mut().and_then(|fields| fields.remove("global"));
        let header = RadiiHeader {
            format: RADII,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine: self.engine,
            scan: self.scan,
            class: self.target_class,
            graph: &self.graph,
            model: &self.model,
            budget,
            max_budget: self.budget.budget.global(),
            nodes: self.records.len(),
            timings: self.records.iter().any(|record| record.found.as_ref().is_some_and(|f| f.seconds.is_some())),
        };
        line(out, &header)?;
        self.records.iter().try_for_each(|record| line(out, record))
    }
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::ops::ControlFlow;

    use nodeproof::{Certifier, Graph, Layer, LocalBudget, Matrix, Model, NodeId, Propagation};

    use super::*;

    /// Two nodes, one of which can be tampered with as much as it takes.
    fn problem() -> (Graph, Model, Budget) {
        let graph = Graph::new(3, 2, &[(0, 1)], &[(0, 0), (1, 0), (2, 1)]).unwrap();
        let layer = Layer::new(Matrix::from_values(2, 2, vec![1.0, -1.0, -0.7, 0.6]), vec![0.1, 0.0]);
        let model = Model::new(vec![layer], Propagation::SymmetricGcn).unwrap();
        let budget = Budget::new(1, LocalBudget::Count(1)).local_at(NodeId(0), 2).protect_nodes([NodeId(1)]);
        (graph, model, budget)
    }

    #[test]
    fn written_results_read_back() {
        let (graph, model, budget) = problem();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let certifier = Certifier::new(&graph, &model).unwrap().budget(budget.clone());
        let (engine, class) = (Engine::Fast, TargetClass::Predicted);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");

        let certificates = certifier.certify(&nodes).unwrap();
        let certificates = Certificates::of(&certificates, (&graph, &model), &budget, engine, class);
        let mut bytes = Vec::new();
        certificates.write(&mut bytes).unwrap();
        fs::write(&path, bytes).unwrap();
        assert_eq!(Certificates::read(&path).unwrap(), certificates);

        let most = budget.clone().with_global(7);
        let radii = certifier.radii(&nodes, 7, |_, _, _| ControlFlow::Continue(())).unwrap().unwrap();
        let radii = Radii::of(&radii, (&graph, &model), &most, engine, class);
        let mut bytes = Vec::new();
        radii.write(&mut bytes).unwrap();
        fs::write(&path, bytes).unwrap();
        assert_eq!(Radii::read(&path).unwrap(), radii);
    }
}
