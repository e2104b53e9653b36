//! `nodeproof explain`: the story of one node.

use nodeproof::{AttributeId, Certificate, Certifier, ClassId, Engine, Flip, Graph, Network, NodeId, Verdict, Witness};
use nodeproof_report::results::VerdictName;
use serde::Serialize;

use crate::budget::CheckedBudget;
use crate::cli::ExplainArguments;
use crate::engine::Effort;
use crate::inputs::Inputs;
use crate::lists;
use crate::outcome::Outcome;
use crate::terminal::{self, Emphasis, short_class, short_name};

/// Runs the command.
///
/// # Errors
/// If the input is bad.
pub(crate) fn run(arguments: &ExplainArguments) -> anyhow::Result<Outcome> {
    let inputs = Inputs::read(&arguments.graph, &arguments.model, &arguments.budget, arguments.print.quiet)?;
    let node = lists::node(&arguments.node, &inputs.graph)?;
    inputs.check_class(arguments.model.class, &[node])?;
    let certifier = Certifier::new(&inputs.graph, &inputs.model)?
        .budget(inputs.budget.budget().clone())
        .target_class(arguments.model.class.into());
    let effort = Effort::new(&arguments.engine);
    let certifier = effort.apply(certifier);
    let logits = Network::new(&inputs.graph, &inputs.model)?.logits_under(node, &[]);
    for certificate in &certifier.certify(&[node])? {
        let story = Story::new(&inputs, certificate, &logits);
        let text = if arguments.print.json {
            serde_json::to_string_pretty(&story)? + "\n"
        } else {
            story.in_words(&inputs.graph, effort, Emphasis::of_stdout())
        };
        terminal::print(&text)?;
    }
    Ok(Outcome::Done)
}

/// All that is told of a node.
#[derive(Debug, Serialize)]
struct Story<'a> {
    node: NamedNode,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<NamedClass>,
    predicted: NamedClass,
    class: NamedClass,
    budget: &'a CheckedBudget,
    verdict: VerdictName,
    margin: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<f64>,
    engine: Engine,
    branches: u64,
    margins: Vec<Margin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<WitnessStory>,
}

#[derive(Debug, Clone, Serialize)]
struct NamedNode {
    id: NodeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct NamedClass {
    id: ClassId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct NamedAttribute {
    id: AttributeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// The margin to one other class.
#[derive(Debug, Serialize)]
struct Margin {
    class: NamedClass,
    clean: f64,
    lower: f64,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    /// The lower bound is positive.
    Holds,
    /// The lower bound is not positive, but no witness is known for this class.
    MayFall,
    /// The class wins under the witness, or without any flip.
    Falls,
    /// The class is level under the witness: a tie.
    Ties,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::MayFall => "may fall",
            Self::Falls => "falls",
            Self::Ties => "ties",
        }
    }
}

#[derive(Debug, Serialize)]
struct WitnessStory {
    flips: Vec<FlipStory>,
    class: NamedClass,
    before: f64,
    after: f64,
}

#[derive(Debug, Serialize)]
struct FlipStory {
    node: NamedNode,
    attribute: NamedAttribute,
    to: u8,
}

impl NamedNode {
    fn new(graph: &Graph, id: NodeId) -> Self {
        Self { id, name: name_of(graph.names().nodes.as_deref(), id.index()) }
    }
}

impl NamedClass {
    fn new(graph: &Graph, id: ClassId) -> Self {
        Self { id, name: name_of(graph.names().classes.as_deref(), id.index()) }
    }

    /// `Theory (class 3)` or `class 3`.
    fn in_words(&self) -> String {
        match &self.name {
            Some(name) => format!("{} (class {})", short_class(name), self.id),
            None => format!("class {}", self.id),
        }
    }
}

fn name_of(names: Option<&[String]>, index: usize) -> Option<String> {
    names.and_then(|names| names.get(index)).filter(|name| !name.is_empty()).cloned()
}

impl<'a> Story<'a> {
    fn new(inputs: &'a Inputs, certificate: &Certificate, logits: &[f64]) -> Self {
        let graph = &inputs.graph;
        let own = logits[certificate.class.index()];
        let clean = |class: ClassId| own - logits[class.index()];
        let witness = match &certificate.verdict {
            Verdict::Nonrobust { witness } => Some(witness),
            _ => None,
        };
        let status = |class: ClassId, lower: f64| {
            let overtakes = witness.filter(|witness| witness.class == class);
            match lower {
                _ if overtakes.is_some_and(is_tie) => Status::Ties,
                _ if overtakes.is_some() || clean(class) < 0.0 => Status::Falls,
                lower if lower > 0.0 => Status::Holds,
                _ => Status::MayFall,
            }
        };
        let margin = |(class, lower): (usize, &Option<f64>)| {
            let (class, lower) = (ClassId(class as u32), (*lower)?);
            let named = NamedClass::new(graph, class);
            Some(Margin { class: named, clean: clean(class), lower, status: status(class, lower) })
        };
        Self {
            node: NamedNode::new(graph, certificate.node),
            label: certificate.label.map(|label| NamedClass::new(graph, label)),
            predicted: NamedClass::new(graph, certificate.predicted),
            class: NamedClass::new(graph, certificate.class),
            budget: &inputs.budget,
            verdict: VerdictName::of(&certificate.verdict),
            margin: certificate.margin(),
            upper: match certificate.verdict {
                Verdict::Undecided { upper, .. } => Some(upper),
                _ => None,
            },
            engine: certificate.engine,
            branches: certificate.branches,
            margins: certificate.margins.iter().enumerate().filter_map(margin).collect(),
            witness: witness.map(|witness| WitnessStory::new(graph, witness, clean(witness.class))),
        }
    }

    fn in_words(&self, graph: &Graph, effort: Effort, emphasis: Emphasis) -> String {
        let mut facts = Vec::new();
        let id = self.node.id;
        facts.push(match &self.node.name {
            Some(name) => ("node", format!("{} (node {id})", short_name(name))),
            None => ("node", id.to_string()),
        });
        if let Some(label) = &self.label {
            facts.push(("label", label.in_words()));
        }
        let wrong = self.label.as_ref().is_some_and(|label| label.id != self.predicted.id);
        facts.push(("predicted", self.predicted.in_words() + if wrong { ", which is wrong" } else { "" }));
        if self.class.id != self.predicted.id {
            facts.push(("certified", format!("{}, the label", self.class.in_words())));
        }
        facts.push(("budget", self.budget.in_words(graph)));
        facts.push(("verdict", self.verdict_in_words()));
        facts.push(("engine", self.engine_in_words()));
        facts.extend(self.hint(effort).map(|hint| ("hint", hint)));
        // The verdict's line, not a name that happens to contain the word.
        let verdict = |word: &str| format!("\nverdict    {word}");
        let word = self.verdict.word();
        let mut text = terminal::facts(&facts).replacen(&verdict(word), &verdict(&emphasis.strong(word)), 1);
        text += "\n";
        text += &self.margin_table();
        if let Some(witness) = &self.witness {
            text += "\n";
            text += &witness.in_words(id, emphasis);
        }
        text
    }

    fn verdict_in_words(&self) -> String {
        let class = self.class.in_words();
        let flips = self.witness.as_ref().map_or(0, |witness| witness.flips.len());
        let tie = self.witness.as_ref().is_some_and(WitnessStory::is_tie);
        match (self.verdict, self.upper) {
            (VerdictName::Robust, _) => {
                let least = match self.margin {
                    margin if only_positive(margin) => "above 0".to_owned(),
                    margin => format!("at {} or above", bound(margin)),
                };
                format!("robust: no admissible set of flips changes the class; every margin stays {least}")
            }
            (VerdictName::Nonrobust, _) if flips == 0 => {
                let wins = if tie { "is level with" } else { "wins over" };
                format!("nonrobust: another class {wins} {class} without any flip")
            }
            (VerdictName::Nonrobust, _) if tie => {
                let flips = terminal::counted(flips, "flip");
                format!("nonrobust: {flips} can bring another class level, a tie")
            }
            (VerdictName::Nonrobust, _) if flips == 1 => "nonrobust: one flip changes the class".to_owned(),
            (VerdictName::Nonrobust, _) => format!("nonrobust: {flips} flips change the class (fewer may do)"),
            (VerdictName::Undecided, upper) => {
                let (lower, gap) = (bound(self.margin), upper.map_or(f64::NAN, |upper| upper - self.margin));
                let upper = upper.map_or("unknown".to_owned(), number);
                format!(
                    "undecided: neither proved nor refuted; the smallest margin an attacker can reach lies between \
                     {lower} and {upper}, a gap of {}",
                    number(gap)
                )
            }
        }
    }

    /// The engine that settled the node, or the last one that tried.
    fn engine_in_words(&self) -> String {
        let engine = self.engine.name();
        let parts = match self.branches {
            0 => String::new(),
            branches => format!(" after {} of branch and bound", terminal::counted(branches as usize, "part")),
        };
        match self.verdict {
            VerdictName::Undecided => format!("{engine} left it undecided{parts}"),
            _ => format!("settled by {engine}{parts}"),
        }
    }

    /// What would settle an undecided node, if anything.
    fn hint(&self, effort: Effort) -> Option<String> {
        let open = self.verdict == VerdictName::Undecided && self.margin > f64::MIN;
        effort.remedy().filter(|_| open).map(|remedy| format!("{remedy} may settle it"))
    }

    fn margin_table(&self) -> String {
        let header = ["margin over", "as it is", "under attack", "status"].map(str::to_owned).to_vec();
        let row = |margin: &Margin| {
            let lower = match margin.lower {
                lower if only_positive(lower) => "> 0".to_owned(),
                lower => format!("≥ {}", bound(lower)),
            };
            vec![margin.class.in_words(), number(margin.clean), lower, margin.status.word().to_owned()]
        };
        terminal::table("lrrl", Some(header), self.margins.iter().map(row).collect())
    }
}

/// Whether flips only bring a class level.
fn is_tie(witness: &Witness) -> bool {
    witness.margin >= 0.0
}

impl WitnessStory {
    /// Whether the flips only bring a class level.
    fn is_tie(&self) -> bool {
        self.after >= 0.0
    }

    fn new(graph: &Graph, witness: &Witness, before: f64) -> Self {
        Self {
            flips: witness.flips.iter().map(|&flip| FlipStory::new(graph, flip)).collect(),
            class: NamedClass::new(graph, witness.class),
            before,
            after: witness.margin,
        }
    }

    fn in_words(&self, target: NodeId, emphasis: Emphasis) -> String {
        let mut text = String::new();
        if !self.flips.is_empty() {
            text += "witness\n";
            self.flips.iter().for_each(|flip| text += &format!("  {}\n", flip.in_words(target, emphasis)));
            text += "\n";
        }
        let winner = self.class.in_words();
        let (before, after) = (number(self.before), number(self.after));
        text += &terminal::paragraph(&match self.flips.len() {
            0 if self.is_tie() => format!("{winner} is level as it is: the margin over it is {before}"),
            0 => format!("{winner} wins as it is: the margin over it is {before}"),
            _ if self.is_tie() => format!(
                "then {winner} is level: the margin over it goes from {before} to {after}, and nothing says which class \
                 wins"
            ),
            _ => format!("then {winner} wins: the margin over it goes from {before} to {after}"),
        });
        text
    }
}

/// Each of `flips` as a sentence, seen from `target`.
pub(super) fn flips_in_words(graph: &Graph, target: NodeId, flips: &[Flip], emphasis: Emphasis) -> Vec<String> {
    flips.iter().map(|&flip| FlipStory::new(graph, flip).in_words(target, emphasis)).collect()
}

impl FlipStory {
    fn new(graph: &Graph, flip: Flip) -> Self {
        Self {
            node: NamedNode::new(graph, flip.node),
            attribute: NamedAttribute {
                id: flip.attribute,
                name: name_of(graph.names().attributes.as_deref(), flip.attribute.index()),
            },
            to: flip.adds(graph).into(),
        }
    }

    fn in_words(&self, target: NodeId, emphasis: Emphasis) -> String {
        let attribute = match &self.attribute.name {
            Some(name) => format!("“{}”", emphasis.strong(&short_name(name))),
            None => emphasis.strong(&format!("attribute {}", self.attribute.id)),
        };
        let id = self.node.id;
        let node = match &self.node.name {
            Some(name) => format!("{} (node {id})", emphasis.strong(&short_name(name))),
            None => emphasis.strong(&format!("node {id}")),
        };
        let (verb, preposition) = if self.to == 1 { ("add", "to") } else { ("remove", "from") };
        let itself = if id == target { ", the node itself" } else { "" };
        format!("{verb} {attribute} {preposition} {node}{itself}")
    }
}

/// Whether a lower bound is the smallest positive number: proof that a margin is positive, but not by how much.
fn only_positive(lower: f64) -> bool {
    lower > 0.0 && lower < f64::MIN_POSITIVE
}

fn number(value: f64) -> String {
    // Three decimals would show a tiny negative margin as zero, which is the one thing that must be seen.
    match value.abs() {
        size if size.is_nan() || size >= f64::MAX => "unknown".to_owned(),
        size if size >= 1e6 || (size < 0.0005 && size > 0.0) => format!("{value:.1e}"),
        _ => format!("{value:.3}"),
    }
}

/// A lower bound: rounded down, but for the last digits of a double, so that 1 reads 1.000.
fn bound(lower: f64) -> String {
    let down = |unit: f64| (lower / unit + 1e-6).floor() * unit;
    match lower.abs() {
        size if (0.001..1e6).contains(&size) => format!("{:.3}", down(0.001)),
        size if (1e-300..1e300).contains(&size) => format!("{:.1e}", down(10_f64.powf(size.log10().floor() - 1.0))),
        _ => number(lower),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_read_as_sentences_and_cannot_steer_a_terminal() {
        let flip = FlipStory {
            node: NamedNode { id: NodeId(7), name: Some("paper\u{1b}[2J".into()) },
            attribute: NamedAttribute { id: AttributeId(3), name: Some("bayesian".into()) },
            to: 1,
        };
        assert_eq!(flip.in_words(NodeId(1), Emphasis::none()), "add “bayesian” to paper\\u{1b}[2J (node 7)");
        let plain = FlipStory {
            node: NamedNode { id: NodeId(7), name: None },
            attribute: NamedAttribute { id: AttributeId(3), name: None },
            to: 0,
        };
        assert_eq!(plain.in_words(NodeId(7), Emphasis::none()), "remove attribute 3 from node 7, the node itself");
    }

    #[test]
    fn tiny_margins_keep_their_sign() {
        assert_eq!((number(0.5), number(-0.0001), number(0.0)), ("0.500".into(), "-1.0e-4".into(), "0.000".into()));
        assert!(only_positive(5e-324) && !only_positive(0.0) && !only_positive(1e-300));
        assert_eq!((bound(0.9996), bound(-0.5001), bound(0.0125)), ("0.999".into(), "-0.501".into(), "0.012".into()));
        assert_eq!(
            (bound(0.000_798), bound(-1.01e-9), bound(2.99e7)),
            ("7.9e-4".into(), "-1.1e-9".into(), "2.9e7".into())
        );
        assert_eq!((bound(1.0 - 1e-15), bound(0.0), bound(-1.0)), ("1.000".into(), "0.000".into(), "-1.000".into()));
        assert_eq!((number(f64::MIN), number(-1e200)), ("unknown".into(), "-1.0e200".into()));
    }
}
