//! The interactive report: one HTML file that needs nothing else.
//!
//! The page itself is made from `report/` at the root of the repository and committed as `assets/report.html`; here the
//! results are put into it as JSON.

mod data;
mod surroundings;

use nodeproof_problem::results::{Certificates, GraphHeader, Header, Radii};
use nodeproof_problem::{Edge, Graph, NodeId, Split, Witness};

/// The page, with a placeholder where the data go.
const TEMPLATE: &str = include_str!("../../assets/report.html");
const PLACEHOLDER: &str = "__NODEPROOF_DATA__";

/// What is known of one model.
#[derive(Debug)]
struct ModelResults {
    name: String,
    certificates: Option<Certificates>,
    radii: Option<Radii>,
}

impl ModelResults {
    fn headers(&self) -> impl Iterator<Item = &Header> {
        let certificates = self.certificates.iter().map(|certificates| &certificates.header);
        certificates.chain(self.radii.iter().map(|radii| &radii.header))
    }

    /// In what certificates and radii differ, but for the number of flips, or of deletions, in all.
    fn difference(&self) -> Option<&'static str> {
        let (certificates, radii) = (&self.certificates.as_ref()?.header, &self.radii.as_ref()?.header);
        let local = |header: &Header| header.budget.clone().with_varied(0);
        if certificates.target_class != radii.target_class {
            Some("classes")
        } else if local(certificates) != local(radii) {
            Some("budgets")
        } else if certificates.margin != radii.margin {
            Some("margins")
        } else if certificates.arithmetic != radii.arithmetic {
            Some("arithmetics")
        } else {
            None
        }
    }

    fn witnesses(&self) -> impl Iterator<Item = &Witness> {
        let certified = self.certificates.iter().flat_map(certificate_witnesses);
        certified.chain(self.radii.iter().flat_map(radius_witnesses))
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
    #[error("there is nothing to show; give certificates or radii")]
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
    /// Certificates and radii of different budgets or classes, or that ask for other margins, under one name.
    #[error(
        "the certificates and the radii of “{model}” are about different {what}; make them with the same options, or give \
         them different names"
    )]
    OtherBudget {
        /// What the model is called.
        model: String,
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
    /// Certificates and radii of different models under one name.
    #[error("the certificates and the radii of “{model}” are of different models; give them different names")]
    OtherModel {
        /// What the model is called.
        model: String,
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
    models: Vec<ModelResults>,
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

    /// Adds a model, with its certificates, its radii, or both.
    pub fn model(mut self, name: &str, certificates: Option<Certificates>, radii: Option<Radii>) -> Self {
        self.models.push(ModelResults { name: name.to_owned(), certificates, radii });
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
        if self.models.iter().all(|model| model.headers().next().is_none()) {
            return Err(PageError::Nothing);
        }
        for model in &self.models {
            let name = || model.name.clone();
            for header in model.headers() {
                if !header.graph.is_same_graph(&expected) {
                    let (expected, found) = (expected.fingerprint, header.graph.fingerprint.clone());
                    return Err(PageError::OtherGraph { model: name(), expected, found });
                }
            }
            let mut models = model.headers().map(|header| &header.model.fingerprint);
            if models.next().is_some_and(|first| models.any(|other| other != first)) {
                return Err(PageError::OtherModel { model: name() });
            }
            if let Some(what) = model.difference() {
                return Err(PageError::OtherBudget { model: name(), what });
            }
            let mut flips = model.witnesses().flat_map(|witness| &witness.flips);
            if let Some(flip) = flips.find(|flip| !flip.is_of(self.graph)) {
                return Err(PageError::NoFlip { model: name(), node: flip.node });
            }
            let mut edges = model.witnesses().flat_map(|witness| &witness.edges);
            if let Some(&edge) = edges.find(|edge| !edge.is_of(self.graph)) {
                return Err(PageError::NoEdge { model: name(), edge });
            }
            let certified = model.certificates.iter().flat_map(|file| file.records.iter().map(|record| record.node));
            let searched = model.radii.iter().flat_map(|file| file.records.iter().map(|record| record.node));
            if let Some(node) = repeated(certified).or_else(|| repeated(searched)) {
                return Err(PageError::Twice { model: name(), node });
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
