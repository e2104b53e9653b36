//! The interactive report: one HTML file that needs nothing else.
//!
//! The page itself is made from `report/` at the root of the repository and committed as `assets/report.html`; here the
//! results are put into it as JSON.

mod data;
mod surroundings;

use nodeproof_problem::results::{Certificates, Collectives, GraphHeader, Header, Radii};
use nodeproof_problem::{Edge, Flip, Graph, NodeId, Split, Witness};

/// The page, with a placeholder where the data go.
const TEMPLATE: &str = include_str!("../../assets/report.html");
const PLACEHOLDER: &str = "__NODEPROOF_DATA__";

/// What is known of one model.
#[derive(Debug, Clone, Default)]
pub struct ModelResults {
    /// Verdicts of its nodes.
    pub certificates: Option<Certificates>,
    /// How many flips, or deletions, they withstand.
    pub radii: Option<Radii>,
    /// What one attacker does to all predictions together.
    pub collectives: Option<Collectives>,
}

impl ModelResults {
    /// What each of the results is, and what it is about.
    fn headers(&self) -> impl Iterator<Item = (&'static str, &Header)> {
        let certificates = self.certificates.iter().map(|certificates| ("certificates", &certificates.header));
        let radii = self.radii.iter().map(|radii| ("radii", &radii.header));
        let collectives = self.collectives.iter().map(|found| ("collective certificates", &found.header));
        certificates.chain(radii).chain(collectives)
    }

    /// Which two of the results are of different models, if any.
    fn other_model(&self) -> Option<[&'static str; 2]> {
        let ((first, of), mut others) = (self.headers().next()?, self.headers().skip(1));
        let (other, _) = others.find(|(_, header)| header.model.fingerprint != of.model.fingerprint)?;
        Some([first, other])
    }

    /// Which two of the results differ in what they are about, and in what, but for the number of flips, or of deletions, in all.
    fn difference(&self) -> Option<([&'static str; 2], &'static str)> {
        let (first, of) = self.headers().next()?;
        self.headers().skip(1).find_map(|(other, header)| Some(([first, other], difference(of, header)?)))
    }

    fn witnesses(&self) -> impl Iterator<Item = &Witness> {
        let certified = self.certificates.iter().flat_map(certificate_witnesses);
        certified.chain(self.radii.iter().flat_map(radius_witnesses))
    }

    /// The flips of all attacks on all predictions.
    fn attacks(&self) -> impl Iterator<Item = &Flip> {
        self.collectives.iter().flat_map(|found| found.records.iter().flat_map(|record| &record.flips))
    }
}

/// In what two files differ, but for the number of flips, or of deletions, in all.
fn difference(one: &Header, other: &Header) -> Option<&'static str> {
    if one.target_class != other.target_class {
        Some("classes")
    } else if !one.budget.is_same_but_for_varied(&other.budget) {
        Some("budgets")
    } else if one.margin != other.margin {
        Some("margins")
    } else if one.arithmetic != other.arithmetic {
        Some("arithmetics")
    } else {
        None
    }
}

fn certificate_witnesses(certificates: &Certificates) -> impl Iterator<Item = &Witness> {
    certificates.records.iter().filter_map(|record| record.witness())
}

fn radius_witnesses(radii: &Radii) -> impl Iterator<Item = &Witness> {
    radii.records.iter().filter_map(|record| record.witness())
}

/// Why results cannot be shown together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// There is nothing to show.
    #[error("there is nothing to show; give certificates, radii or collective certificates")]
    Nothing,
    /// The results are about another graph.
    #[error(
        "the results of “{model}” are about another graph, or about this one read with other options (its fingerprint is \
         {expected:.12}…, theirs {found:.12}…)"
    )]
    OtherGraph {
        /// What the model is called.
        model: String,
        /// The graph's fingerprint.
        expected: String,
        /// The one in the results.
        found: String,
    },
    /// Results of different budgets or classes, or that ask for other margins, under one name.
    #[error(
        "the {} and the {} of “{model}” are about different {what}; make them with the same options, or give them \
         different names", kinds[0], kinds[1]
    )]
    OtherBudget {
        /// What the model is called.
        model: String,
        /// Which results.
        kinds: [&'static str; 2],
        /// In what they differ.
        what: &'static str,
    },
    /// The deletion of an edge that is not there.
    #[error("the results of “{model}” delete the edge {edge}, which the graph does not have; create them again")]
    NoEdge {
        /// What the model is called.
        model: String,
        /// The edge.
        edge: Edge,
    },
    /// A flip that leaves an attribute as it is.
    #[error("the results of “{model}” have a flip of node {node} that changes nothing; create them again")]
    NoFlip {
        /// What the model is called.
        model: String,
        /// The node of the flip.
        node: NodeId,
    },
    /// Results of different models under one name.
    #[error("the {} and the {} of “{model}” are of different models; give them different names", kinds[0], kinds[1])]
    OtherModel {
        /// What the model is called.
        model: String,
        /// Which results.
        kinds: [&'static str; 2],
    },
    /// A node comes up twice in one file.
    #[error("the results of “{model}” have node {node} twice; create them again")]
    Twice {
        /// What the model is called.
        model: String,
        /// The node.
        node: NodeId,
    },
    /// The data cannot be written as JSON.
    #[error("cannot write the data of the report: {0}")]
    Json(#[from] serde_json::Error),
}

/// Puts a report together.
#[derive(Debug)]
pub struct Page<'a> {
    graph: &'a Graph,
    graph_name: String,
    title: String,
    split: Option<&'a Split>,
    checked: Option<usize>,
    models: Vec<(String, ModelResults)>,
}

impl<'a> Page<'a> {
    /// A report about `graph`, without any results yet.
    pub fn new(graph: &'a Graph, graph_name: &str) -> Self {
        let title = format!("Robustness on {graph_name}");
        Self { graph, graph_name: graph_name.to_owned(), title, split: None, checked: None, models: Vec::new() }
    }

    /// Sets the title.
    pub fn title(mut self, title: &str) -> Self {
        title.clone_into(&mut self.title);
        self
    }

    /// Says which nodes were labelled in training.
    pub fn split(mut self, split: Option<&'a Split>) -> Self {
        self.split = split;
        self
    }

    /// Says whether a checker has accepted all results, but for so many that are too much to check.
    pub fn checked(mut self, not_checked: Option<usize>) -> Self {
        self.checked = not_checked;
        self
    }

    /// Adds a model, with what is known of it.
    pub fn model(mut self, name: &str, results: ModelResults) -> Self {
        self.models.push((name.to_owned(), results));
        self
    }

    /// The HTML file. The same results give the same bytes.
    ///
    /// # Errors
    /// If there are no results, or they do not belong together.
    pub fn html(&self) -> Result<String, PageError> {
        self.check()?;
        // Within a script element only `<` can mean anything but data.
        let json = serde_json::to_string(&data::Report::new(self))?.replace('<', "\\u003c");
        let (before, after) = TEMPLATE.split_once(PLACEHOLDER).unwrap_or((TEMPLATE, ""));
        Ok([before, &json, after].concat())
    }

    fn check(&self) -> Result<(), PageError> {
        let expected = GraphHeader::new(self.graph);
        if self.models.iter().all(|(_, results)| results.headers().next().is_none()) {
            return Err(PageError::Nothing);
        }
        for (name, results) in &self.models {
            let model = || name.clone();
            for (_, header) in results.headers() {
                if !header.graph.is_same_graph(&expected) {
                    let (expected, found) = (expected.fingerprint, header.graph.fingerprint.clone());
                    return Err(PageError::OtherGraph { model: model(), expected, found });
                }
            }
            if let Some(kinds) = results.other_model() {
                return Err(PageError::OtherModel { model: model(), kinds });
            }
            if let Some((kinds, what)) = results.difference() {
                return Err(PageError::OtherBudget { model: model(), kinds, what });
            }
            let mut flips = results.witnesses().flat_map(|witness| &witness.flips).chain(results.attacks());
            if let Some(flip) = flips.find(|flip| !flip.is_of(self.graph)) {
                return Err(PageError::NoFlip { model: model(), node: flip.node });
            }
            let mut edges = results.witnesses().flat_map(|witness| &witness.edges);
            if let Some(&edge) = edges.find(|edge| !edge.is_of(self.graph)) {
                return Err(PageError::NoEdge { model: model(), edge });
            }
            let certified = results.certificates.iter().flat_map(|file| file.records.iter().map(|record| record.node));
            let searched = results.radii.iter().flat_map(|file| file.records.iter().map(|record| record.node));
            if let Some(node) = repeated(certified).or_else(|| repeated(searched)) {
                return Err(PageError::Twice { model: model(), node });
            }
        }
        Ok(())
    }
}

/// The first node that comes up again.
fn repeated(mut nodes: impl Iterator<Item = NodeId>) -> Option<NodeId> {
    let mut seen = std::collections::HashSet::new();
    nodes.find(|&node| !seen.insert(node))
}

#[cfg(test)]
mod tests;
