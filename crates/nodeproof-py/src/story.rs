//! The story of a node, in the words of `nodeproof-report`.

use std::ops::ControlFlow;
use std::sync::Arc;

use nodeproof::results::{Certificates, Header, Radii};
use nodeproof::{
    AttributeId, Budget, Certificate, Certifier, CertifySettings, Event, Evidence, Finish, Flip, Network, NodeId,
    Radius, Witness,
};
use nodeproof_report::Attack;
use nodeproof_report::story::{self, Options, Story};
use nodeproof_report::text::{Emphasis, Style};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::budget;
use crate::certificates::PyCertificates;
use crate::errors::{Failure, Raised};
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::radii::PyRadii;
use crate::settings::PySettings;
use crate::work::{self, Watch};

/// A certificate, a radius, logits, and all of it in words.
type Explained<'py> = (PyCertificates, Option<PyRadii>, Bound<'py, PyArray1<f64>>, String);

/// Certifies a node and puts it in words. With `radius`, a node that several flips, or several deletions of edges, change gets the
/// smallest witness that a search for its radius finds.
#[pyfunction]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    graph: &PyGraph,
    model: &PyModel,
    settings: &PySettings,
    node: u32,
    radius: bool,
) -> PyResult<Explained<'py>> {
    let (graph, model, settings) = (Arc::clone(&graph.0), Arc::clone(&model.0), settings.0.clone());
    let node = NodeId(node);
    settings.validate(&graph, &[node]).raised(py)?;
    let (certificates, radii, logits, words) = work::run(py, None, move |watch| {
        let certifier = Certifier::new(&graph, &model)?.settings(settings.clone());
        let mut certificate = certified(&certifier, node, watch)?;
        let several = certificate.witness().is_some_and(|witness| witness.size() > 1);
        // Flips beside deletions have no radius.
        let both = Attack::of(&settings.budget) == Attack::Both;
        if radius && both {
            certifier.leave_out_needless(&mut certificate)?;
        }
        let radius =
            if radius && several && !both { Some(radius_of(&certifier, node, &settings, watch)?) } else { None };
        if let Some(radius) = &radius {
            take_witness(&mut certificate, radius);
        }
        let logits = Network::new(&graph, &model)?.logits_under(node, &[]);
        let mut story = Story::new(&graph, &settings.budget, &certificate, &logits);
        if let Some(radius) = &radius {
            story = story.with_radius(&graph, radius);
        }
        let search = format!("radius(graph, model{}, nodes=[{node}])", larger(&settings.budget));
        let remedy = story::remedy(&settings, story.because, OPTIONS);
        let words = story.in_words(Style::default(), story.hint(remedy, &search).as_deref());
        let header = Header::new(&graph, &model, &settings, 1);
        let radii = radius.map(|radius| {
            let mut radii = Radii::new(header.clone());
            radii.records.push(radius);
            radii
        });
        let mut certificates = Certificates::new(header);
        certificates.records.push(certificate);
        Ok((certificates, radii, logits, words))
    })?;
    Ok((PyCertificates(certificates), radii.map(PyRadii), logits.into_pyarray(py), words))
}

/// The certificate of a node, with margins that tell how close it is to falling.
fn certified(certifier: &Certifier, node: NodeId, watch: &Watch) -> Result<Certificate, Failure> {
    let mut found = None;
    let finish = certifier.certify_each(&[node], |event| {
        if let Event::Certified(certificate) = event {
            found = Some(certificate);
        }
        go_on(watch)
    })?;
    let mut certificate = found.filter(|_| finish == Finish::Complete).ok_or(Failure::Stopped)?;
    match certifier.raise_margins(&mut certificate, || go_on(watch))? {
        Finish::Complete => Ok(certificate),
        _ => Err(Failure::Stopped),
    }
}

fn radius_of(
    certifier: &Certifier,
    node: NodeId,
    settings: &CertifySettings,
    watch: &Watch,
) -> Result<Radius, Failure> {
    let nodes = [node];
    let mut search = certifier.search_radii(&nodes, settings.budget.varied());
    let finish = search.run(|_, _| go_on(watch))?;
    search.radii().pop().filter(|_| finish == Finish::Complete).ok_or(Failure::Stopped)
}

fn go_on(watch: &Watch) -> ControlFlow<()> {
    if watch.tell(0, 1) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The budget of a search for the radius over deletions, as it is typed: twice as many, so that there is something to find.
fn larger(budget: &Budget) -> String {
    let twice = budget.edges().map(|edges| edges.global().max(1).saturating_mul(2));
    twice.map_or(String::new(), |twice| format!(", Budget(0, delete_edges={twice})"))
}

/// Gives the certificate the witness of the radius, if that is smaller.
fn take_witness(certificate: &mut Certificate, radius: &Radius) {
    let size = certificate.witness().map(Witness::size);
    if let Some(smaller) = radius.witness().filter(|witness| Some(witness.size()) < size) {
        certificate.evidence = Evidence::Witness(smaller.clone());
    }
}

/// How options are written here.
const OPTIONS: Options = Options { name: str::to_owned, strongest: "engine=\"complete\"" };

/// A flip as a sentence, seen from `target` if that is given.
#[pyfunction]
pub(crate) fn flip_in_words(graph: &PyGraph, flip: (u32, u32, f64), target: Option<u32>) -> String {
    let (node, attribute, to) = flip;
    let flip = Flip { node: NodeId(node), attribute: AttributeId(attribute), to };
    story::flip_in_words(&graph.0, flip, target.map(NodeId), Emphasis::NONE)
}

/// Deletions of edges as sentences, seen from `target` if that is given.
#[pyfunction]
pub(crate) fn edges_in_words(
    py: Python<'_>,
    graph: &PyGraph,
    edges: Vec<(u32, u32)>,
    target: Option<u32>,
) -> PyResult<Vec<String>> {
    let edges = budget::edges(&edges).raised(py)?;
    let words = |edge| story::edge_in_words(&graph.0, edge, target.map(NodeId), Emphasis::NONE);
    Ok(edges.into_iter().map(words).collect())
}
