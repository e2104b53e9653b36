//! Whole stories.

use nodeproof_problem::radius::Found;
use nodeproof_problem::{AttributeId, Edge, EdgeBudget, Flip, LocalBudget, Names, Witness};
use serde_json::Value;

use super::*;
use crate::text::Emphasis;

fn graph() -> Graph {
    let words = |words: &str| Some(words.split(' ').map(str::to_owned).collect());
    let names =
        Names { nodes: words("ash elm oak"), attributes: words("leaf bark root"), classes: words("tree bush herb") };
    let labels = [0, 1, 0].map(|label| Some(ClassId(label))).to_vec();
    Graph::new(3, 3, &[(0, 1)], &[(1, 0)]).unwrap().with_labels(labels).unwrap().with_names(names).unwrap()
}

fn budget() -> Budget {
    Budget::new(5, LocalBudget::Count(2))
}

/// A witness of so many flips, by which “bush” overtakes.
fn witness(flips: u32, margin: f64) -> Witness {
    let flip = |i: u32| Flip::of(&graph(), NodeId(i / 3), AttributeId(i % 3));
    Witness::new((0..flips).map(flip).collect(), ClassId(1), margin)
}

fn certificate(evidence: Evidence, lower: Bound) -> Certificate {
    let margins = vec![None, Some(lower), Some(Bound::AtLeast(0.25))];
    let mut certificate = Certificate::new(NodeId(0), ClassId(0), ClassId(0), evidence, margins);
    certificate.label = Some(ClassId(0));
    certificate
}

fn story(evidence: Evidence, lower: Bound) -> Story {
    Story::new(&graph(), &budget(), &certificate(evidence, lower), &[2.0, 1.0, 0.5])
}

fn nonrobust(flips: u32, margin: f64) -> Story {
    story(Evidence::Witness(witness(flips, margin)), Bound::AtLeast(-0.75))
}

fn radius(robust_up_to: Option<u32>, smallest: Option<Witness>) -> Radius {
    let mut found = Found::of_class(Some(ClassId(0)));
    found.nonrobust_from = smallest.as_ref().map(|witness| witness.size() as u32);
    found.witness = smallest;
    Radius::new(NodeId(0), &graph(), robust_up_to, Some(found))
}

#[test]
fn a_nonrobust_node_comes_with_its_witness() {
    assert_eq!(
        nonrobust(2, -0.5).in_words(Style::default(), Some("look at the margins")),
        "node       ash (node 0)\n\
         label      tree (class 0)\n\
         predicted  tree (class 0)\n\
         budget     at most 5 flips, 2 at one node\n\
         verdict    nonrobust: 2 flips change the class; fewer may do\n\
         engine     settled by fast\n\
         hint       look at the margins\n\
         \n\
         margin over     as it is  under attack  status\n\
         ──────────────────────────────────────────────\n\
         bush (class 1)     1.000      ≥ -0.750  falls\n\
         herb (class 2)     1.500       ≥ 0.250  holds\n\
         \n\
         witness\n\
         \u{20} add “leaf” to ash (node 0), the node itself\n\
         \u{20} add “bark” to ash (node 0), the node itself\n\
         \n\
         then bush (class 1) wins: the margin over it goes from 1.000 to -0.500\n"
    );
}

#[test]
fn what_is_known_of_smaller_witnesses_is_said() {
    let told = |story: Story, radius: Radius| story.with_radius(&graph(), &radius).verdict_in_words();
    let change = |flips: u32, radius: Radius| told(nonrobust(flips, -0.5), radius);
    assert_eq!(change(1, radius(Some(0), None)), "nonrobust: one flip changes the class");
    assert_eq!(change(2, radius(Some(1), None)), "nonrobust: 2 flips change the class, and no single one does");
    assert_eq!(change(3, radius(Some(2), None)), "nonrobust: 3 flips change the class, and no 2 do");
    assert_eq!(change(4, radius(Some(0), None)), "nonrobust: 4 flips change the class; fewer may do");
    let between = "nonrobust: 4 flips change the class; no 2 do, and sizes between are undecided";
    assert_eq!(change(4, radius(Some(2), None)), between);
    let smaller = radius(Some(2), Some(witness(3, -0.25)));
    assert_eq!(change(4, smaller.clone()), "nonrobust: 3 flips change the class, and no 2 do");
    let tie = "nonrobust: 3 flips can bring another class level, a tie, and no 2 do";
    assert_eq!(told(nonrobust(3, 0.0), radius(Some(2), None)), tie);
    let story = nonrobust(4, -0.5).with_radius(&graph(), &smaller);
    assert_eq!(story.witness.as_ref().map(|witness| (witness.flips.len(), witness.before)), Some((3, 1.0)));
    assert!(!story.in_words(Style::default(), None).contains("radius"), "the verdict says it");
}

/// What is asked about deletions, beside so many flips.
fn deletions(flips: u32) -> Budget {
    Budget::new(flips, LocalBudget::Count(2)).delete_edges(EdgeBudget::new(3).at_node(2).keep_one(true))
}

fn edges(pairs: &[(u32, u32)]) -> Vec<Edge> {
    pairs.iter().filter_map(|&(a, b)| Edge::between(NodeId(a), NodeId(b))).collect()
}

/// The story of a witness of so many flips and these deletions.
fn unlinked(budget: &Budget, flips: u32, pairs: &[(u32, u32)]) -> Story {
    let evidence = Evidence::Witness(witness(flips, -0.5).with_edges(edges(pairs)));
    Story::new(&graph(), budget, &certificate(evidence, Bound::AtLeast(-0.75)), &[2.0, 1.0, 0.5])
}

#[test]
fn deletions_come_with_the_nodes_to_unlink() {
    let text = unlinked(&deletions(0), 0, &[(0, 1), (1, 2)]).in_words(Style::default(), None);
    assert!(text.contains("budget     at most 3 edges deleted (2 at one node), each node keeps one\n"), "{text}");
    assert!(text.contains("verdict    nonrobust: 2 deletions change the class; fewer may do\n"), "{text}");
    let witness = "\nwitness\n  unlink elm (node 1) from ash (node 0), the node itself\n  unlink elm (node 1) from oak (node 2)\n\n\
         then bush (class 1) wins: the margin over it goes from 1.000 to -0.500\n";
    assert!(text.ends_with(witness), "{text}");
    let json = serde_json::to_value(unlinked(&deletions(0), 0, &[(0, 1)])).unwrap();
    assert_eq!(json["witness"]["edges"], serde_json::json!([[{"id": 0, "name": "ash"}, {"id": 1, "name": "elm"}]]));
    assert_eq!((&json["witness"]["flips"], &json["budget"]["edges"]["at_node"]), (&serde_json::json!([]), &2.into()));
}

#[test]
fn verdicts_name_what_the_budget_allows() {
    let words = |budget: &Budget, evidence| {
        let certificate = certificate(evidence, Bound::Positive);
        Story::new(&graph(), budget, &certificate, &[2.0, 1.0, 0.5]).verdict_in_words()
    };
    let robust = |many| format!("robust: no admissible set of {many} changes the class; every margin stays above 0");
    assert_eq!(words(&deletions(0), Evidence::Robust), robust("deletions"));
    assert_eq!(words(&deletions(1), Evidence::Robust), robust("flips and deletions"));
    assert_eq!(
        words(&deletions(0), Evidence::Witness(witness(0, 0.0))),
        "nonrobust: another class is level with tree (class 0) without any deletion"
    );
    let told = |flips, edges| unlinked(&deletions(2), flips, edges).verdict_in_words();
    assert_eq!(told(0, &[(0, 1)]), "nonrobust: one deletion changes the class");
    assert_eq!(told(1, &[]), "nonrobust: one flip changes the class");
    assert_eq!(told(2, &[(0, 1)]), "nonrobust: 2 flips and 1 deletion change the class; fewer may do");
    let between = unlinked(&deletions(0), 0, &[(0, 1), (0, 2), (1, 2)]);
    let smaller = witness(0, -0.25).with_edges(edges(&[(0, 1), (0, 2)]));
    let told = between.with_radius(&graph(), &radius(Some(1), Some(smaller)));
    assert_eq!(told.verdict_in_words(), "nonrobust: 2 deletions change the class, and no single one does");
    assert_eq!(told.witness.map(|witness| witness.size()), Some(2));
}

#[test]
fn hints_name_what_is_withstood() {
    let robust = |budget: &Budget| {
        let story = Story::new(&graph(), budget, &certificate(Evidence::Robust, Bound::Positive), &[2.0, 1.0, 0.5]);
        story.hint(None, "a search")
    };
    assert_eq!(robust(&budget()).unwrap(), "a search finds how many flips it withstands");
    assert_eq!(robust(&deletions(0)).unwrap(), "a search finds how many deletions it withstands");
    assert_eq!(robust(&deletions(1)), None, "flips beside deletions have no radius");
    let story = unlinked(&deletions(0), 0, &[(0, 1), (0, 2)]).with_radius(&graph(), &radius(Some(0), None));
    let fewer = "more time may find fewer deletions, or prove that there are none";
    assert_eq!(story.hint(Some("more time".to_owned()), "").unwrap(), fewer);
}

#[test]
fn other_verdicts_are_told_with_what_is_known() {
    let words = |evidence, lower| story(evidence, lower).verdict_in_words();
    let robust = "robust: no admissible set of flips changes the class; every margin stays";
    assert_eq!(words(Evidence::Robust, Bound::Positive), format!("{robust} above 0"));
    assert_eq!(words(Evidence::Robust, Bound::AtLeast(0.1)), format!("{robust} at 0.100 or above"));
    let open = |lower, upper, because| words(Evidence::Open { lower, upper, because }, lower);
    let undecided = "undecided: neither proven nor refuted; the smallest margin an attacker can reach";
    let both = format!("{undecided} lies between -0.500 and 0.250, a gap of 0.750");
    assert_eq!(open(Bound::AtLeast(-0.5), Some(0.25), Some(Obstacle::Time)), both);
    assert_eq!(open(Bound::AtLeast(-0.5), None, None), format!("{undecided} is at least -0.500"));
    let overflow = Some(Obstacle::Overflow);
    assert_eq!(open(Bound::Unknown, None, overflow), "undecided: numbers overflow, and nothing is known");
    assert_eq!(open(Bound::Unknown, None, None), "undecided: nothing is known");
    let text = story(Evidence::Robust, Bound::Positive).in_words(Style::default(), None);
    assert!(text.contains("bush (class 1)     1.000           > 0  holds\n"), "{text}");
    let without = nonrobust(0, -0.5).in_words(Style::default(), None);
    assert!(without.contains("another class wins over tree (class 0) without any flip"), "{without}");
    assert!(without.ends_with("\nbush (class 1) wins as it is: the margin over it is 1.000\n"), "{without}");
}

#[test]
fn a_radius_has_a_line_where_the_verdict_does_not_say_it() {
    let robust = |radius: Radius| {
        let story = story(Evidence::Robust, Bound::AtLeast(0.1)).with_radius(&graph(), &radius);
        story.radius_in_words().unwrap()
    };
    assert_eq!(robust(radius(Some(5), None)), "at least 5");
    assert_eq!(robust(radius(Some(5), Some(witness(6, -1.0)))), "5: 6 flips can change the class");
    assert_eq!(robust(radius(Some(5), Some(witness(8, -1.0)))), "at least 5 and below 8");
}

#[test]
fn branch_and_bound_says_how_far_it_went() {
    let words = |because| {
        let lower = Bound::AtLeast(-1.0);
        let mut certificate = certificate(Evidence::Open { lower, upper: None, because }, lower);
        (certificate.engine, certificate.branches) = (Engine::Complete, 12);
        Story::new(&graph(), &budget(), &certificate, &[2.0, 1.0, 0.5]).engine_in_words()
    };
    let left = "complete left it undecided after 12 subproblems of branch and bound";
    assert_eq!(words(None), left);
    assert_eq!(words(Some(Obstacle::Time)), format!("{left}; time was up"));
    assert_eq!(words(Some(Obstacle::Memory)), format!("{left}; memory was used up"));
}

#[test]
fn only_the_verdict_and_names_are_emphasised() {
    let bold = Style { emphasis: Emphasis { bold: true }, ..Style::default() };
    let (plain, text) = (Style::default(), nonrobust(2, -0.5).in_words(bold, None));
    assert!(text.contains("\nverdict    \u{1b}[1mnonrobust\u{1b}[0m: 2 flips"), "{text}");
    let without = text.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert_eq!(without, nonrobust(2, -0.5).in_words(plain, None));
}

#[test]
fn json_has_every_fact() {
    let json = serde_json::to_value(nonrobust(2, -0.5)).unwrap();
    let expected = serde_json::json!({
        "node": {"id": 0, "name": "ash"},
        "label": {"id": 0, "name": "tree"},
        "predicted": {"id": 0, "name": "tree"},
        "class": {"id": 0, "name": "tree"},
        "budget": {"global": 5, "local": "2", "direction": "both", "local_count": 2},
        "verdict": "nonrobust",
        "margin": -0.75,
        "engine": "fast",
        "branches": 0,
        "margins": [
            {"class": {"id": 1, "name": "bush"}, "clean": 1.0, "lower": -0.75, "status": "falls"},
            {"class": {"id": 2, "name": "herb"}, "clean": 1.5, "lower": 0.25, "status": "holds"},
        ],
        "witness": {
            "flips": [
                {"node": {"id": 0, "name": "ash"}, "attribute": {"id": 0, "name": "leaf"}, "to": 1},
                {"node": {"id": 0, "name": "ash"}, "attribute": {"id": 1, "name": "bark"}, "to": 1},
            ],
            "class": {"id": 1, "name": "bush"},
            "before": 1.0,
            "after": -0.5,
        },
    });
    assert_eq!(json, expected);
    let open = story(
        Evidence::Open { lower: Bound::Unknown, upper: Some(0.5), because: Some(Obstacle::Memory) },
        Bound::Unknown,
    );
    let json = serde_json::to_value(open.with_radius(&graph(), &radius(Some(1), None))).unwrap();
    assert_eq!((&json["margin"], &json["upper"], &json["witness"]), (&Value::Null, &0.5.into(), &Value::Null));
    assert_eq!(json["because"], "memory");
    assert_eq!(json["radius"], serde_json::json!({"robust_up_to": 1, "nonrobust_from": null}));
}
