//! Files as they are written now, and as version 1 wrote them.

use super::*;
use crate::budget::{Budget, LocalBudget};
use crate::certificate::{Bound, Evidence, Obstacle};
use crate::graph::Graph;
use crate::ids::ClassId;
use crate::matrix::Matrix;
use crate::model::{Model, Propagation};
use crate::radius::Found;
use crate::settings::CertifySettings;

/// A header for tests, of two nodes with three attributes, two classes, and a budget of one flip.
pub(crate) fn header() -> Header {
    let graph = Graph::new(2, 3, &[(0, 1)], &[(0, 0)]).unwrap();
    let layer = (Matrix::zeros(3, 2), vec![0.0, 1.0]);
    let model = Model::gcn(vec![layer], Propagation::SymmetricGcn).unwrap();
    Header::new(&graph, &model, &CertifySettings::new(Budget::new(1, LocalBudget::Count(1))), 2)
}

/// Lines of version 1.
const CERTIFICATE_LINES: [&str; 2] = [
    r#"{"format":"nodeproof-certificates","version":1,"nodeproof":"0.1.0","engine":"fast","class":"predicted","graph":{"fingerprint":"95","nodes":24,"edges":38,"attributes":30},"model":{"fingerprint":"98","layers":2,"propagation":"symmetric-gcn","classes":3},"budget":{"global":4,"local":"2","direction":"both","local_at":{"3":1},"local_count":2},"nodes":1}"#,
    r#"{"node":9,"label":1,"predicted":1,"class":1,"verdict":"nonrobust","margins":[0.28,null,-0.54],"worst_class":2,"witness":[{"node":9,"attribute":11,"to":0}],"witness_class":2,"witness_margin":-0.33,"engine":"fast"}"#,
];
const RADIUS_LINES: [&str; 2] = [
    r#"{"format":"nodeproof-radii","version":1,"nodeproof":"0.1.0","engine":"complete","class":"predicted","graph":{"fingerprint":"95","nodes":24,"edges":38,"attributes":30},"model":{"fingerprint":"98","layers":2,"propagation":"symmetric-gcn","classes":3},"budget":{"direction":"both","local":"2","local_count":2},"max_budget":100,"nodes":1}"#,
    r#"{"node":9,"label":1,"robust_up_to":2,"nonrobust_from":3,"exact":true,"class":1,"verdicts":5,"branches":0}"#,
];

fn read(text: &str) -> Result<Results, String> {
    Results::read_from(text.as_bytes(), "results.jsonl").map_err(|error| error.to_string())
}

fn lines(lines: [&str; 2]) -> String {
    lines.map(|line| format!("{line}\n")).concat()
}

fn refused(text: &str, why: &str) {
    let error = read(text).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn each_kind_of_version_1_is_recognised() {
    let Results::Certificates(certificates) = read(&lines(CERTIFICATE_LINES)).unwrap() else {
        panic!("no certificates")
    };
    assert_eq!(certificates.header.budget.global(), 4);
    assert_eq!(certificates.records[0].witness().unwrap().class, ClassId(2));
    let Results::Radii(radii) = read(&lines(RADIUS_LINES)).unwrap() else { panic!("no radii") };
    assert_eq!((radii.max_budget(), radii.records[0].nonrobust_from()), (100, Some(3)));
    let log = r#"{"format":"nodeproof-training-log","version":1,"graph":{"fingerprint":"95","nodes":24,"edges":38,"attributes":30},"options":{"method":"rh-u","labelled_margin":2.19,"unlabelled_margin":0.4}}
{"step":1,"phase":"all","loss":1.5,"cross_entropy":1.2,"robust_loss":0.3,"labelled_margin":null,"unlabelled_margin":-0.5,"robust_share":0.25,"validation_loss":null,"learning_rate":0.01,"gradient_norm":2.0}
"#;
    let Results::Training(log) = read(log).unwrap() else { panic!("no log") };
    assert_eq!((log.method.as_str(), log.steps[0].unlabelled_margin), ("rh-u", Some(-0.5)));
}

#[test]
fn written_results_read_back() {
    let margins = |bound| vec![Some(bound), None];
    let mut certificates = Certificates::new(header());
    for (node, evidence, bound) in [
        (0, Evidence::Robust, Bound::Positive),
        (
            1,
            Evidence::Open { lower: Bound::AtLeast(-0.5), upper: Some(0.25), because: Some(Obstacle::Time) },
            Bound::AtLeast(-0.5),
        ),
    ] {
        let record = Certificate::new(NodeId(node), ClassId(1), ClassId(0), evidence, margins(bound));
        certificates.records.push(record);
    }
    let mut bytes = Vec::new();
    certificates.write(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(read(&text).unwrap(), Results::Certificates(certificates));
    refused(&text.replace("undecided", "nonrobust"), "line 3 is damaged: its hash does not fit");

    let mut radii = Radii::new(header());
    for node in 0..2 {
        let found = Found { exact: true, ..Found::of_class(Some(ClassId(0))) };
        radii.records.push(Radius { node: NodeId(node), label: None, robust_up_to: Some(1), found: Some(found) });
    }
    let mut bytes = Vec::new();
    radii.write(&mut bytes).unwrap();
    assert_eq!(read(&String::from_utf8(bytes).unwrap()).unwrap(), Results::Radii(radii));
}

#[test]
fn the_header_says_what_the_file_is_about() {
    let line = serde_json::to_string(&Certificate::header_line(&header())).unwrap();
    assert!(line.starts_with(r#"{"format":"nodeproof-certificates","version":2,"nodeproof":""#), "{line}");
    assert!(line.contains(r#""budget":{"global":1,"local":"1","direction":"both","local_count":1}"#), "{line}");
    assert!(line.ends_with(r#""nodes":2}"#), "{line}");
}

#[test]
fn what_is_not_ours_or_not_whole_is_refused() {
    refused("", "is not a file of certificates");
    refused("hello\n", "is not a file of certificates");
    refused("{\"format\":\"other\"}\n", "is not a file of certificates");
    let whole = lines(CERTIFICATE_LINES);
    refused(&whole.replace("\"version\":1", "\"version\":3"), "has version 3");
    refused(&whole.replace("\"version\":1", "\"version\":2"), "its hash does not fit");
    refused(&whole.replace("\"nodes\":1}", "\"nodes\":2}"), "has 1 of 2 nodes");
    refused(&whole[..whole.len() - 1], "has 0 of 1 nodes");
    refused(&(whole.clone() + "{\"node\":1}"), "line 3 is damaged: the file has all of its nodes, and goes on");
    refused(&whole.replace("\"global\":4,", ""), "line 1 is damaged: missing field `global`");
}

#[test]
fn what_cannot_be_true_is_refused() {
    let whole = lines(CERTIFICATE_LINES);
    for (old, new, why) in [
        ("{\"node\":9,\"label\"", "{\"node\":24,\"label\"", "line 2 is damaged: there is no node 24"),
        ("[{\"node\":9", "[{\"node\":99", "there is no node 99"),
        ("\"attribute\":11", "\"attribute\":30", "there is no attribute 30"),
        ("\"predicted\":1", "\"predicted\":3", "there is no class 3"),
        ("\"label\":1", "\"label\":3", "there is no class 3"),
        ("[0.28,null,-0.54]", "[0.28,null]", "2 margins for 3 classes"),
        ("\"to\":0", "\"to\":2", "there is no value 2"),
        ("\"verdict\":\"nonrobust\"", "\"verdict\":\"robust\"", "a witness belongs to the verdict nonrobust"),
        ("\"verdict\":\"nonrobust\"", "\"verdict\":\"undecided\"", "a witness belongs to the verdict nonrobust"),
        ("\"classes\":3", "\"classes\":4000000000", "no model has 4000000000 classes"),
        ("\"worst_class\":2", "\"worst_class\":0", "its worst class is 2, not 0"),
        ("\"witness_margin\":-0.33", "\"witness_margin\":0.33", "the margin under its witness is larger than 0"),
        ("\"global\":4", "\"global\":0", "has 1 flips, more than the budget"),
        ("\"witness_class\":2,", "", "one is missing"),
    ] {
        let changed = whole.replace(old, new);
        assert_ne!(changed, whole);
        refused(&changed, why);
    }
    let witness = r#""witness":[{"node":9,"attribute":11,"to":0}],"witness_class":2,"witness_margin":-0.33,"#;
    let without = whole.replace(witness, "");
    refused(&without, "a witness belongs to the verdict nonrobust");
    refused(&without.replace("\"nonrobust\"", "\"robust\""), "its margins do not exceed 0");
    let radii = lines(RADIUS_LINES);
    refused(&radii.replace("\"max_budget\":100", "\"max_budget\":4000000000"), "exceeds the number of flips");
    refused(&radii.replace("\"robust_up_to\":2", "\"robust_up_to\":3"), "robust and nonrobust under the same budget");
    refused(&(radii.clone() + RADIUS_LINES[1] + "\n"), "node 9 comes up twice");
    let more = RADIUS_LINES[1].replace("\"node\":9", "\"node\":8") + "\n";
    refused(&(radii.clone() + &more), "this is one more");
    refused(&radii.replace("\"class\":1", "\"class\":7"), "there is no class 7");
    refused(&radii.replace("\"verdicts\":5", "\"verdicts\":\"many\""), "does not say what is known from above");
}

#[test]
fn radii_can_be_cut_off() {
    let Results::Radii(radii) = read(&lines(RADIUS_LINES)).unwrap() else { panic!("no radii") };
    let [two, three, same] = [2, 3, 900].map(|most| radii.clone().up_to(most));
    assert_eq!((two.max_budget(), two.records[0].nonrobust_from()), (2, None));
    assert_eq!((two.records[0].robust_up_to, two.records[0].is_exact()), (Some(2), true));
    assert_eq!((three.records[0].robust_up_to, three.records[0].nonrobust_from()), (Some(2), Some(3)));
    assert_eq!(same, radii);
}

#[test]
fn another_kind_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    std::fs::write(&path, lines(RADIUS_LINES)).unwrap();
    let error = Certificates::read(&path).unwrap_err().to_string();
    assert!(error.contains("has radii, not certificates") && error.contains("certify --out"), "{error}");
    assert!(TrainingLog::read(&path).is_err() && Radii::read(&path).is_ok());
}
