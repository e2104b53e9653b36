//! The story of one node: its verdict, its margins, and the flips or deletions of edges that change its class, in words and as JSON.
//!
//! ```
//! use nodeproof_problem::{Bound, Budget, Certificate, ClassId, Evidence, Graph, LocalBudget, NodeId};
//! use nodeproof_report::story::Story;
//! use nodeproof_report::text::Style;
//!
//! let graph = Graph::new(2, 2, &[(0, 1)], &[(0, 0), (1, 0)])?;
//! let budget = Budget::new(1, LocalBudget::Count(1));
//! let margins = vec![None, Some(Bound::AtLeast(1.0))];
//! let certificate = Certificate::new(NodeId(0), ClassId(0), ClassId(0), Evidence::Robust, margins);
//! let story = Story::new(&graph, &budget, &certificate, &[2.0, 0.0]);
//! assert_eq!(
//!     story.in_words(Style::default(), None),
//!     "node       0\n\
//!      predicted  class 0\n\
//!      budget     at most 1 flip, 1 at one node\n\
//!      verdict    robust: no admissible set of flips changes the class; every margin\n\
//!      \u{20}          stays at 1.000 or above\n\
//!      engine     settled by fast\n\
//!      \n\
//!      margin over  as it is  under attack  status\n\
//!      ───────────────────────────────────────────\n\
//!      class 1         2.000       ≥ 1.000  holds\n"
//! );
//! # Ok::<(), nodeproof_problem::GraphError>(())
//! ```

mod margin;
mod named;
mod number;
mod remedy;
mod witness;

use nodeproof_problem::results::BudgetFields;
use nodeproof_problem::{
    Bound, Budget, Certificate, ClassId, Engine, Evidence, Graph, NodeId, Obstacle, Radius, Verdict,
};
use serde::Serialize;

use crate::attack::{Attack, changes};
use crate::text::{self, Style, counted};

pub use margin::{Margin, Status};
pub use named::Named;
pub use number::{bound, number, value};
pub use remedy::{Options, remedy};
pub use witness::{EdgeStory, FlipStory, RowStory, WitnessStory, edge_in_words, flip_in_words};

/// All there is to say of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Story {
    /// The node.
    pub node: Named<NodeId>,
    /// Its label, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Named<ClassId>>,
    /// The class that the model predicts on the graph as it is.
    pub predicted: Named<ClassId>,
    /// The class that is certified.
    pub class: Named<ClassId>,
    /// What the attacker may change, as the header of a file of certificates has it.
    pub budget: BudgetFields,
    /// The verdict.
    pub verdict: Verdict,
    /// The smallest margin over all admissible sets is at least this.
    pub margin: Bound,
    /// Undecided only: the smallest margin that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Undecided only: what kept it from being decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Obstacle>,
    /// The engine that settled the node, or the last one that tried.
    pub engine: Engine,
    /// Subproblems that branch and bound looked at.
    pub branches: u64,
    /// The margins over all other classes.
    pub margins: Vec<Margin>,
    /// Nonrobust only: flips, or deletions of edges, that change the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<WitnessStory>,
    /// How many flips, or deletions of edges, the prediction withstands, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius: Option<RadiusStory>,
    #[serde(skip)]
    budget_in_words: String,
    #[serde(skip)]
    attack: Attack,
}

/// How many flips, or deletions of edges, a prediction withstands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RadiusStory {
    /// The largest global budget under which the node is proven robust; `None` if it is under none.
    pub robust_up_to: Option<u32>,
    /// The smallest global budget under which a witness is known; `None` if it is under none that was tried.
    pub nonrobust_from: Option<u32>,
    /// Whether no budget is left undecided.
    #[serde(skip)]
    pub exact: bool,
}

impl Story {
    /// The story of `certificate`, about a node of `graph` under `budget`; `logits` are those of the node on the graph as it
    /// is.
    ///
    /// # Panics
    /// If there are not as many logits as classes, or the graph does not have the node.
    pub fn new(graph: &Graph, budget: &Budget, certificate: &Certificate, logits: &[f64]) -> Self {
        let class = |id: ClassId| Named::class(graph, id);
        let clean = |id: ClassId| logits[certificate.class.index()] - logits[id.index()];
        let witness = certificate.witness();
        let margins = (0..).map(ClassId).zip(&certificate.margins);
        let margins = margins.filter_map(|(id, lower)| Some(Margin::new(class(id), clean(id), (*lower)?, witness)));
        Self {
            node: Named::node(graph, certificate.node),
            label: certificate.label.map(class),
            predicted: class(certificate.predicted),
            class: class(certificate.class),
            budget: BudgetFields::new(budget, graph.attribute_count()),
            verdict: certificate.verdict(),
            margin: certificate.margin(),
            upper: match certificate.evidence {
                Evidence::Open { upper, .. } => upper,
                _ => None,
            },
            because: certificate.undecided_because(),
            engine: certificate.engine,
            branches: certificate.branches,
            margins: margins.collect(),
            witness: witness.map(|witness| WitnessStory::new(graph, witness, clean(witness.class))),
            radius: None,
            budget_in_words: graph.budget_in_words(budget),
            attack: Attack::of(budget),
        }
    }

    /// Adds what is known of the radius of the same node, under the same local budget: how much the prediction
    /// withstands and, of a nonrobust node, the smallest witness that is known and whether a smaller one exists.
    pub fn with_radius(mut self, graph: &Graph, radius: &Radius) -> Self {
        let (robust_up_to, nonrobust_from) = (radius.robust_up_to, radius.nonrobust_from());
        self.radius = Some(RadiusStory { robust_up_to, nonrobust_from, exact: radius.is_exact() });
        let size = self.witness.as_ref().map(WitnessStory::size);
        if let Some(witness) = radius.witness().filter(|witness| Some(witness.size()) < size)
            && let Some(margin) = self.margins.iter_mut().find(|margin| margin.class.id == witness.class)
        {
            margin.overtaken(witness);
            self.witness = Some(WitnessStory::new(graph, witness, margin.clean));
        }
        self
    }

    /// What the reader might try next, if anything: `remedy` may decide what is open, and `search` finds radii.
    pub fn hint(&self, remedy: Option<String>, search: &str) -> Option<String> {
        let many = self.attack.in_plural();
        match self.verdict {
            // What is withstood beside something else is no radius.
            Verdict::Robust if self.attack == Attack::Both => None,
            Verdict::Robust => Some(format!("{search} finds how many {many} it withstands")),
            Verdict::Undecided if self.because == Some(Obstacle::Overflow) => None,
            Verdict::Undecided => Some(format!("{} may settle it", remedy?)),
            Verdict::Nonrobust if self.radius.is_none_or(|radius| radius.exact) => None,
            Verdict::Nonrobust => Some(format!("{} may find fewer {many}, or prove that there are none", remedy?)),
        }
    }

    /// The story in words: facts, a table of margins, and the witness. `hint` is [`Story::hint`].
    pub fn in_words(&self, style: Style, hint: Option<&str>) -> String {
        // The verdict's line, not a name that happens to contain the word.
        let verdict = |word: &str| format!("\nverdict    {word}");
        let word = self.verdict.name();
        let facts = text::facts(&self.facts(hint), style.width);
        let facts = facts.replacen(&verdict(word), &verdict(&style.emphasis.strong(word)), 1);
        let witness = self.witness.as_ref().map(|witness| format!("\n{}", witness.in_words(self.node.id, style)));
        format!("{facts}\n{}{}", margin::table(&self.margins), witness.unwrap_or_default())
    }

    fn facts(&self, hint: Option<&str>) -> Vec<(&'static str, String)> {
        let mut facts = vec![("node", self.node.in_words())];
        if let Some(label) = &self.label {
            facts.push(("label", label.in_words()));
        }
        let wrong = self.label.as_ref().is_some_and(|label| label.id != self.predicted.id);
        facts.push(("predicted", self.predicted.in_words() + if wrong { ", which is wrong" } else { "" }));
        if self.class.id != self.predicted.id {
            facts.push(("certified", format!("{}, the label", self.class.in_words())));
        }
        facts.push(("budget", self.budget_in_words.clone()));
        facts.push(("verdict", self.verdict_in_words()));
        facts.extend(self.radius_in_words().map(|radius| ("radius", radius)));
        facts.push(("engine", self.engine_in_words()));
        facts.extend(hint.map(|hint| ("hint", hint.to_owned())));
        facts
    }

    /// The verdict as a sentence that begins with its name.
    pub fn verdict_in_words(&self) -> String {
        let many = self.attack.in_plural();
        match (self.verdict, &self.witness) {
            (Verdict::Robust, _) => {
                let least = match self.margin {
                    Bound::AtLeast(least) => format!("at {} or above", bound(least)),
                    Bound::Positive | Bound::Unknown => "above 0".to_owned(),
                };
                format!("robust: no admissible set of {many} changes the class; every margin stays {least}")
            }
            (Verdict::Nonrobust, Some(witness)) => self.attack_in_words(witness),
            (Verdict::Nonrobust, None) => format!("nonrobust: {many} that change the class exist"),
            (Verdict::Undecided, _) => self.gap_in_words(),
        }
    }

    fn attack_in_words(&self, witness: &WitnessStory) -> String {
        let (class, size) = (self.class.in_words(), witness.size());
        let (all, any) = (changes(witness.flips.len(), witness.edges.len()), self.attack.noun());
        if witness.comes_close() {
            return format!("nonrobust: with {all} the margin is {}, less than was asked for", number(witness.after));
        }
        let one = if witness.edges.is_empty() { "flip" } else { "deletion" };
        match (size, witness.is_tie()) {
            (0, true) => format!("nonrobust: another class is level with {class} without any {any}"),
            (0, false) => format!("nonrobust: another class wins over {class} without any {any}"),
            (1, true) => format!("nonrobust: one {one} can bring another class level, a tie"),
            (1, false) => format!("nonrobust: one {one} changes the class"),
            (size, true) => format!("nonrobust: {all} can bring another class level, a tie{}", self.fewer(size)),
            (size, false) => format!("nonrobust: {all} change the class{}", self.fewer(size)),
        }
    }

    /// What is known of sets that are smaller than a witness of this size.
    fn fewer(&self, size: usize) -> String {
        let none_of = |size: usize| if size == 1 { "no single one does".to_owned() } else { format!("no {size} do") };
        match self.radius.and_then(|radius| radius.robust_up_to).map_or(0, |proven| proven as usize) {
            0 => "; fewer may do".to_owned(),
            proven if proven + 1 < size => format!("; {}, and sizes between are undecided", none_of(proven)),
            _ => format!(", and {}", none_of(size - 1)),
        }
    }

    fn gap_in_words(&self) -> String {
        let undecided = "undecided: neither proven nor refuted; the smallest margin an attacker can reach";
        match (self.margin, self.upper) {
            (Bound::Unknown, _) if self.because == Some(Obstacle::Overflow) => {
                "undecided: numbers overflow, and nothing is known".to_owned()
            }
            (Bound::Unknown, _) => "undecided: nothing is known".to_owned(),
            (lower, None) => format!("{undecided} is at least {}", bound(lower.value())),
            (lower, Some(upper)) => {
                let (lower, gap) = (bound(lower.value()), number(upper - lower.value()));
                format!("{undecided} lies between {lower} and {}, a gap of {gap}", number(upper))
            }
        }
    }

    /// The radius, unless the verdict says it.
    fn radius_in_words(&self) -> Option<String> {
        let radius = self.radius.filter(|_| self.verdict != Verdict::Nonrobust)?;
        match (radius.robust_up_to, radius.nonrobust_from) {
            (Some(robust), Some(from)) if from == robust.saturating_add(1) => {
                Some(format!("{robust}: {} can change the class", counted(from as usize, self.attack.noun())))
            }
            (Some(robust), Some(from)) => Some(format!("at least {robust} and below {from}")),
            (Some(robust), None) => Some(format!("at least {robust}")),
            (None, Some(from)) => Some(format!("below {from}")),
            (None, None) => None,
        }
    }

    /// The engine that settled the node, or the last one that tried.
    fn engine_in_words(&self) -> String {
        let engine = self.engine.name();
        let effort = match self.branches {
            0 => String::new(),
            branches => format!(" after {} of branch and bound", counted(branches as usize, "subproblem")),
        };
        let why = match self.because {
            Some(Obstacle::Time) => "; time was up",
            Some(Obstacle::Memory) => "; memory was used up",
            Some(Obstacle::Arithmetic) => {
                "; it holds without rounding, but may change in the arithmetic that was asked about"
            }
            Some(Obstacle::Values) => "; values between the ends of their ranges, which no attack tries, may matter",
            _ => "",
        };
        match self.verdict {
            Verdict::Undecided => format!("{engine} left it undecided{effort}{why}"),
            _ => format!("settled by {engine}{effort}"),
        }
    }
}

#[cfg(test)]
mod tests;
