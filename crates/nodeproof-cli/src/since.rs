//! Certificates of an earlier run, and which of them still hold.

use std::path::PathBuf;

use anyhow::anyhow;
use nodeproof::results::{EarlierCertificates, Header, Mismatch, PlainRecord, SinceFields};
use nodeproof::{Before, Certificate, Certifier, Graph, Model, Touched};
use nodeproof_report::text::counted;

use crate::cli::{GraphFlags, SinceArguments};
use crate::inputs::{self, Question};
use crate::{terminal, words};

/// An earlier run: what it found, and what it was about, where that is not what is asked about now.
pub(crate) struct Since {
    path: PathBuf,
    certificates: EarlierCertificates,
    graph: Option<Graph>,
    model: Option<Model>,
}

impl Since {
    /// Reads what the arguments name; the graph as the flags say.
    ///
    /// # Errors
    /// If a file is unreadable.
    pub(crate) fn read(arguments: &SinceArguments, flags: &GraphFlags) -> anyhow::Result<Option<Self>> {
        let SinceArguments { since, since_graph, since_model } = arguments;
        let Some(path) = since else { return Ok(None) };
        inputs::check_readable(path, "--since")?;
        if let Some(graph) = since_graph {
            graph.check_readable("--since-graph")?;
        }
        if let Some(model) = since_model {
            inputs::check_readable(model, "--since-model")?;
        }
        let graph = since_graph.as_ref().map(|graph| inputs::read_graph(graph, flags)).transpose()?;
        Ok(Some(Self {
            path: path.clone(),
            certificates: EarlierCertificates::read(path)?,
            graph: graph.map(|(graph, _)| graph),
            model: since_model.as_deref().map(inputs::read_model).transpose()?,
        }))
    }

    /// What of it answers `question`, whose results have this `header`.
    ///
    /// # Errors
    /// If it is about something else than it is said to be, or was asked something else.
    pub(crate) fn carried(
        &self,
        question: &Question,
        certifier: &Certifier,
        header: &Header,
    ) -> anyhow::Result<Carried<'_>> {
        let (graph, model) =
            (self.graph.as_ref().unwrap_or(&question.graph), self.model.as_ref().unwrap_or(&question.model));
        self.check(header.clone())?;
        let before = Before { graph, model, budget: self.certificates.budget() };
        let touched = certifier.touched_since(before).map_err(words::certifying)?;
        let places = touched.places(&self.certificates, &question.nodes);
        let count = places.iter().flatten().count();
        let because = match touched {
            Touched::All(everything) => format!(", because {}", everything.in_words()),
            Touched::Nodes(_) => String::new(),
        };
        Ok(Carried { since: self, places, count, because })
    }

    /// Checks that it was asked what this run is asked, about the graph and the model that are said to be its own.
    fn check(&self, header: Header) -> anyhow::Result<()> {
        let checked = self.certificates.check(header, self.graph.as_ref(), self.model.as_ref());
        checked.map_err(|error| {
            let remedy = match error.of {
                Mismatch::Graph => "give the graph that it is about as --since-graph, read with the same options",
                Mismatch::Model => "give the model that it is about as --since-model",
                _ => "certify with its settings, or without --since",
            };
            let differences = error.differences.join("; ");
            anyhow!("--since: {} was asked something else: {differences}; {remedy}", terminal::shown(&self.path))
        })
    }
}

/// Which certificates of an earlier run answer a question.
pub(crate) struct Carried<'s> {
    since: &'s Since,
    /// For each node that is asked about the place of its record, if that still holds.
    places: Vec<Option<usize>>,
    count: usize,
    /// Why there are none, if all had to be made again.
    because: String,
}

impl<'s> Carried<'s> {
    /// What a header says of it.
    pub(crate) fn fields(&self) -> SinceFields {
        self.since.certificates.since(self.count)
    }

    /// The record that answers the question about the node that was asked for at this place, if there is one.
    pub(crate) fn at(&self, turn: usize) -> Option<CarriedRecord<'s>> {
        self.places[turn].map(|place| CarriedRecord { since: self.since, place })
    }

    /// How many there are, and of what.
    pub(crate) fn in_words(&self) -> String {
        let again = counted(self.places.len() - self.count, "node");
        let from = terminal::shown(&self.since.path);
        format!("{} carried over from {from}, {again} certified again{}", self.count, self.because)
    }
}

/// A record of an earlier run.
pub(crate) struct CarriedRecord<'s> {
    since: &'s Since,
    place: usize,
}

impl<'s> CarriedRecord<'s> {
    /// Its bytes.
    pub(crate) fn record(&self) -> PlainRecord<'s> {
        self.since.certificates.record(self.place)
    }

    /// What counts are made from.
    pub(crate) fn outline(&self) -> &'s nodeproof::certificate::Outline {
        self.since.certificates.outline(self.place)
    }

    /// The certificate.
    ///
    /// # Errors
    /// If it cannot be one.
    pub(crate) fn certificate(&self) -> anyhow::Result<Certificate> {
        let (path, node) = (terminal::shown(&self.since.path), self.outline().node);
        let certificate = self.since.certificates.certificate(self.place);
        certificate.map_err(|problem| {
            anyhow!("{path}: the record of node {node} is damaged: {problem}; certify without --since")
        })
    }
}
