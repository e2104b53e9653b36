//! Writing results, for the command line and for others as it writes them.

use std::io::{self, Write};

use nodeproof::{Budget, Engine, TargetClass};
use serde::Serialize;
use serde_json::Value;

use super::read::{CERTIFICATES, RADII, VERSION};
use super::{Certificates, GraphHeader, ModelHeader, Radii, ResultBudget};

/// A budget as a header has it.
#[derive(Debug, Clone, Serialize)]
struct BudgetFields {
    #[serde(flatten)]
    budget: Budget,
    local_count: u32,
}

impl BudgetFields {
    fn of(budget: &ResultBudget) -> Self {
        Self { budget: budget.budget.clone(), local_count: budget.local_count }
    }

    /// The budget without the number of flips in all.
    fn without_global(&self) -> serde_json::Result<Value> {
        let mut fields = serde_json::to_value(self)?;
        fields.as_object_mut().and_then(|fields| fields.remove("global"));
        Ok(fields)
    }
}

/// The first line of a file of certificates.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CertificatesHeader {
    format: &'static str,
    version: u64,
    nodeproof: &'static str,
    engine: Engine,
    class: TargetClass,
    graph: GraphHeader,
    model: ModelHeader,
    budget: BudgetFields,
    /// Nodes that were asked for.
    pub nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timings: bool,
}

/// The first line of a file of radii.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RadiiHeader {
    format: &'static str,
    version: u64,
    nodeproof: &'static str,
    engine: Engine,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    scan: bool,
    class: TargetClass,
    graph: GraphHeader,
    model: ModelHeader,
    budget: Value,
    /// The largest global budget that was tried.
    pub max_budget: u32,
    nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timings: bool,
}

impl Certificates {
    /// The first line of a file of `nodes` certificates such as these, with the time of each or without.
    pub fn header(&self, nodes: usize, timings: bool) -> CertificatesHeader {
        CertificatesHeader {
            format: CERTIFICATES,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine: self.engine,
            class: self.target_class,
            graph: self.graph.clone(),
            model: self.model.clone(),
            budget: BudgetFields::of(&self.budget),
            nodes,
            timings,
        }
    }

    /// Writes the certificates as JSON Lines, a header first, as `nodeproof certify --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let timings = self.records.iter().any(|record| record.seconds.is_some());
        lines(out, &self.header(self.records.len(), timings), &self.records)
    }
}

impl Radii {
    /// The first line of a file of `nodes` radii such as these, with the time of each or without.
    ///
    /// # Errors
    /// If the budget cannot be written as JSON.
    pub fn header(&self, nodes: usize, timings: bool) -> serde_json::Result<RadiiHeader> {
        Ok(RadiiHeader {
            format: RADII,
            version: VERSION,
            nodeproof: env!("CARGO_PKG_VERSION"),
            engine: self.engine,
            scan: self.scan,
            class: self.target_class,
            graph: self.graph.clone(),
            model: self.model.clone(),
            budget: BudgetFields::of(&self.budget).without_global()?,
            max_budget: self.budget.budget.global(),
            nodes,
            timings,
        })
    }

    /// Writes the radii as JSON Lines, a header first, as `nodeproof radius --out` does.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let timings = self.records.iter().any(|record| record.found.as_ref().is_some_and(|f| f.seconds.is_some()));
        lines(out, &self.header(self.records.len(), timings)?, &self.records)
    }
}

fn lines(out: &mut impl Write, header: &impl Serialize, records: &[impl Serialize]) -> io::Result<()> {
    line(out, header)?;
    records.iter().try_for_each(|record| line(out, record))
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
