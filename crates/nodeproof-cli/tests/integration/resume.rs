//! Runs that are resumed from files that somebody has changed.
use std::fs;

use nodeproof::results::{Certificates, Header, LineWriter, Radii, Record, Trial};
use nodeproof::{
    AttributeId, Bound, Budget, Certificate, CertifySettings, Engine, Evidence, Flip, Graph, GraphOptions, Model,
    NodeId, Verdict, Witness,
};

use crate::common::{Fixture, Run};

/// The part of the file that a run leaves that was cut off after so many records.
fn cut(fixture: &Fixture, name: &str, records: usize) -> String {
    fixture.read(name).split_inclusive('\n').take(records + 1).collect()
}

fn graph(fixture: &Fixture) -> Graph {
    Graph::read(fixture.path("graph.npz"), GraphOptions::new()).unwrap().0
}

#[track_caller]
fn refused(fixture: &Fixture, run: &Run, words: &str, before: &[(String, Vec<u8>)]) {
    assert!(run.code == 2 && run.stderr.contains(words), "wants: {words}\nsays: {}", run.stderr);
    assert!(run.stderr.starts_with("error: cannot resume out.jsonl.unfinished: "), "{}", run.stderr);
    assert!(run.stderr.contains("start again without --resume"), "{}", run.stderr);
    assert!(fixture.listing() == before, "nothing is changed");
}

/// Continues the run whose unfinished file has this content, which must be refused.
#[track_caller]
fn refused_certificates(fixture: &Fixture, content: &[u8], words: &str) {
    fixture.write("out.jsonl.unfinished", content);
    let before = fixture.listing();
    let run = fixture.certify("--out out.jsonl --csv out.csv --resume --fail-under 1%");
    refused(fixture, &run, words, &before);
}

/// What a run leaves that was cut off after twenty nodes.
fn certificates(fixture: &Fixture) -> Certificates {
    fixture.certify("--out whole.jsonl").succeeded();
    let mut certificates = Certificates::read(fixture.path("whole.jsonl")).unwrap();
    certificates.records.truncate(20);
    certificates
}

fn bytes(certificates: &Certificates) -> Vec<u8> {
    let mut bytes = Vec::new();
    certificates.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn edited_certificates_are_refused() {
    let fixture = Fixture::new();
    let kept = certificates(&fixture);
    let text = cut(&fixture, "whole.jsonl", 20);
    assert_eq!(bytes(&kept), text.as_bytes(), "hashes are recomputed as they were");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let changed = kept.records.iter().position(|record| record.witness().is_some()).unwrap();
    let line = lines[changed + 1];
    let with = |line: &str| {
        let mut lines = lines.clone();
        lines[changed + 1] = line;
        lines.concat()
    };
    let hash = format!("line {} is damaged: its hash does not fit", changed + 2);
    // The verdict alone, and with margins that go with it.
    let robust = line.replace("nonrobust", "robust");
    refused_certificates(&fixture, with(&robust).as_bytes(), &hash);
    let (start, _) = robust.split_once("\"witness\"").unwrap();
    let (_, end) = robust.split_once("\"engine\"").unwrap();
    let plausible = format!("{start}\"engine\"{end}").replace(":[-", ":[").replace(",-", ",");
    assert!(plausible.contains("\"robust\"") && !plausible.contains("witness"), "{plausible}");
    refused_certificates(&fixture, with(&plausible).as_bytes(), &hash);
    // Lines in another order, left out, repeated, without hash.
    let swapped = [&lines[..3], &[lines[4], lines[3]], &lines[5..]].concat().concat();
    refused_certificates(&fixture, swapped.as_bytes(), "line 4 is damaged: its hash does not fit");
    let left_out = [&lines[..3], &lines[4..]].concat().concat();
    refused_certificates(&fixture, left_out.as_bytes(), "line 4 is damaged");
    let repeated = [&lines[..4], &lines[3..]].concat().concat();
    refused_certificates(&fixture, repeated.as_bytes(), "line 5 is damaged");
    let (record, _) = line.split_once(",\"hash\"").unwrap();
    refused_certificates(&fixture, with(&format!("{record}}}\n")).as_bytes(), &hash);
    // Another header.
    refused_certificates(&fixture, &text.as_bytes()[1..], "it is not a file that this command writes");
    refused_certificates(&fixture, text.replacen("{\"format\"", "{ \"format\"", 1).as_bytes(), "line 1 is damaged");
    let settings = text.replacen("\"global\":2", "\"global\":1", 1);
    refused_certificates(&fixture, settings.as_bytes(), "another run (budget.global: 1 there, 2 now)");
    let version = text.replacen("\"version\":2", "\"version\":1", 1);
    refused_certificates(&fixture, version.as_bytes(), "it has version 1 of its format");
    // What is as it was written is taken.
    fixture.write("out.jsonl.unfinished", &text);
    fixture.certify("--out out.jsonl --resume").succeeded();
    assert_eq!(fixture.read("out.jsonl"), fixture.read("whole.jsonl"));
}

/// Changes a certificate and recomputes all hashes; what cannot be true must be refused all the same.
#[track_caller]
fn refused_certificate(fixture: &Fixture, place: usize, words: &str, change: impl FnOnce(&mut Certificate)) {
    let mut kept = certificates(fixture);
    change(&mut kept.records[place]);
    refused_certificates(fixture, &bytes(&kept), words);
}

#[test]
fn certificates_that_cannot_be_true_are_refused_even_with_the_right_hash() {
    let fixture = Fixture::new();
    let (kept, graph) = (certificates(&fixture), graph(&fixture));
    let nonrobust = kept.records.iter().position(|record| record.witness().is_some()).unwrap();
    let robust = kept.records.iter().position(Certificate::is_robust).unwrap();
    let replaced = |certificate: &mut Certificate, flips: Vec<Flip>| {
        let witness = certificate.witness().unwrap();
        certificate.evidence = Evidence::Witness(Witness::new(flips, witness.class, witness.margin));
    };
    refused_certificate(&fixture, nonrobust, "does not overtake under its witness", |certificate| {
        replaced(certificate, Vec::new());
    });
    refused_certificate(&fixture, nonrobust, "its witness is not within the budget", |certificate| {
        let flips = [0, 1].map(|attribute| Flip::of(&graph, certificate.node, AttributeId(attribute)));
        replaced(certificate, flips.to_vec());
    });
    refused_certificate(&fixture, nonrobust, "its witness is not within the budget", |certificate| {
        let mut flips = certificate.witness().unwrap().flips.clone();
        flips[0].to = 1.0 - flips[0].to;
        replaced(certificate, flips);
    });
    refused_certificate(&fixture, nonrobust, "is not as small as -1000", |certificate| {
        let witness = certificate.witness().unwrap();
        certificate.evidence = Evidence::Witness(Witness::new(witness.flips.clone(), witness.class, -1000.0));
    });
    refused_certificate(&fixture, robust, "leads to the class that is certified", |certificate| {
        certificate.evidence = Evidence::Witness(Witness::new(Vec::new(), certificate.class, 0.0));
    });
    refused_certificate(&fixture, robust, "called undecided, but its margins exceed 0", |certificate| {
        certificate.evidence = Evidence::Open { lower: certificate.margin(), upper: None, because: None };
    });
    refused_certificate(&fixture, nonrobust, "above the margin without any flip", |certificate| {
        certificate.evidence = Evidence::Robust;
        certificate.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::AtLeast(100.0));
        certificate.worst_class = nodeproof::certificate::smallest(&certificate.margins).0;
    });
    refused_certificate(&fixture, nonrobust, "called robust, but its margins do not exceed 0", |certificate| {
        certificate.evidence = Evidence::Robust;
    });
    refused_certificate(&fixture, robust, "the model predicts class", |certificate| {
        certificate.predicted = certificate.worst_class;
    });
    refused_certificate(&fixture, robust, "its label is not the graph's", |certificate| certificate.label = None);
    refused_certificate(&fixture, robust, "comes next", |certificate| certificate.node = NodeId(29));
}

const RADIUS: &str = "radius --graph graph.npz --model model.safetensors --max-budget 9 --engine fast --out out.jsonl";

/// The journal of a search that was over, as a killed run would have left it: the search again, verdict by verdict.
fn journal(fixture: &Fixture) -> (Header, Vec<Trial>) {
    let (graph, model) = (graph(fixture), Model::read(fixture.path("model.safetensors")).unwrap());
    let mut settings = CertifySettings::new(Budget::new(9, "1%".parse().unwrap()));
    settings.engine = Engine::Fast;
    let header = Header::new(&graph, &model, &settings, graph.nodes());
    let certifier = nodeproof::Certifier::new(&graph, &model).unwrap().settings(settings);
    let (nodes, mut trials): (Vec<NodeId>, _) = (graph.node_ids().collect(), Vec::new());
    let mut search = certifier.search_radii(&nodes, 9);
    let _ = search.run(|_, event| {
        if let nodeproof::SearchEvent::Verdict(trial) = event {
            trials.push(trial.clone());
        }
        std::ops::ControlFlow::Continue(())
    });
    (header, trials)
}

fn journal_bytes(header: &Header, trials: &[Trial]) -> Vec<u8> {
    let mut lines = LineWriter::begin(Vec::new(), &Trial::header_line(header)).unwrap();
    trials.iter().for_each(|trial| lines.record(&trial.line(header)).unwrap());
    lines.into_inner()
}

#[track_caller]
fn refused_journal(fixture: &Fixture, content: &[u8], words: &str) {
    fixture.write("out.jsonl.unfinished", content);
    let before = fixture.listing();
    let run = fixture.run(&format!("{RADIUS} --resume"));
    refused(fixture, &run, words, &before);
}

#[test]
fn a_search_for_radii_is_resumed_wherever_it_was_cut() {
    let fixture = Fixture::new();
    fixture.run(RADIUS).succeeded();
    let whole = fixture.read("out.jsonl");
    let (header, trials) = journal(&fixture);
    assert!(trials.len() > 60, "{}", trials.len());
    for done in [0, 1, 29, 30, 31, trials.len() - 1, trials.len()] {
        fs::remove_file(fixture.path("out.jsonl")).unwrap();
        let mut journal = journal_bytes(&header, &trials[..done]);
        journal.extend(b"{\"node\":3,\"bud");
        fixture.write("out.jsonl.unfinished", journal);
        let run = fixture.run(&format!("{RADIUS} --resume --json")).succeeded();
        assert_eq!(crate::common::json(&run.stdout)["resumed"], done, "cut after {done}");
        assert_eq!(fixture.read("out.jsonl"), whole, "cut after {done}");
        assert!(!fixture.exists("out.jsonl.unfinished"));
    }
    let text = fixture.run(&format!("{RADIUS} --resume --csv out.csv")).succeeded().stdout;
    assert!(text.contains("all radii were found before"), "{text}");
    assert_eq!((fixture.read("out.jsonl"), fixture.read("out.csv").lines().count()), (whole, 31));
}

#[test]
fn edited_journals_are_refused() {
    let fixture = Fixture::new();
    let (header, trials) = journal(&fixture);
    let text = String::from_utf8(journal_bytes(&header, &trials[..40])).unwrap();
    let verdict = text.replacen("\"verdict\":\"robust\"", "\"verdict\":\"undecided\"", 1);
    refused_journal(&fixture, verdict.as_bytes(), "its hash does not fit");
    let other = text.replacen("\"global\":9", "\"global\":8", 1);
    refused_journal(&fixture, other.as_bytes(), "budget.global: 8 there, 9 now");
    let scan = text.replacen("\"class\":\"predicted\"", "\"scan\":true,\"class\":\"predicted\"", 1);
    refused_journal(&fixture, scan.as_bytes(), "scan: true there, none now");
    // With the right hashes, but not what the search asks for, or not true.
    let mut order = trials[..40].to_vec();
    order.swap(3, 4);
    refused_journal(&fixture, &journal_bytes(&header, &order), "where node 3 under");
    let nonrobust = trials.iter().position(|trial| trial.witness.is_some()).unwrap();
    let mut harmless = trials[..40.max(nonrobust + 1)].to_vec();
    let witness = harmless[nonrobust].witness.clone().unwrap();
    harmless[nonrobust].witness = Some(Witness::new(Vec::new(), witness.class, witness.margin));
    refused_journal(&fixture, &journal_bytes(&header, &harmless), "does not overtake under its witness");
    let mut own_class = trials[..40].to_vec();
    own_class[0].verdict = Verdict::Nonrobust;
    own_class[0].witness = Some(Witness::new(Vec::new(), own_class[0].class, 0.0));
    refused_journal(&fixture, &journal_bytes(&header, &own_class), "leads to the class that is certified");
    // The journal of a search is not a file of certificates, nor the other way round.
    fixture.write("out.jsonl.unfinished", &text);
    let run = fixture.certify("--out out.jsonl --resume");
    assert!(run.code == 2 && run.stderr.contains("not a file that this command writes"), "{}", run.stderr);
}

#[test]
fn a_complete_file_of_other_radii_is_not_resumed() {
    let fixture = Fixture::new();
    fixture.run(RADIUS).succeeded();
    let whole = fixture.read("out.jsonl");
    let refused = |more: &str, words: &str| {
        let before = fixture.listing();
        let run = fixture.run(&format!("{RADIUS} --resume {more}"));
        assert!(run.code == 2 && run.stderr.contains(words), "wants: {words}\nsays: {}", run.stderr);
        assert!(run.stderr.contains("without --resume") && fixture.listing() == before, "{}", run.stderr);
    };
    refused("--add-only", "budget.direction: \"both\" there, \"add-only\" now");
    refused("--nodes 1,0,2-29", "it is about node 0, where node 1 comes next");
    let mut radii = Radii::read(fixture.path("out.jsonl")).unwrap();
    let nonrobust = radii.records.iter_mut().find_map(|record| record.found.as_mut()?.witness.as_mut()).unwrap();
    nonrobust.flips.clear();
    let mut bytes = Vec::new();
    radii.write(&mut bytes).unwrap();
    fixture.write("out.jsonl", bytes);
    refused("", "from another budget on than its witness needs");
    fixture.write("out.jsonl", whole.replacen("\"exact\":true", "\"exact\":false", 1));
    refused("", "its hash does not fit");
    let cut: String = whole.split_inclusive('\n').take(12).collect();
    fixture.write("out.jsonl", cut);
    refused("", "--out has 11 of 30 nodes");
    fixture.write("out.jsonl", "something else\n");
    refused("", "it is not a file that this command writes");
}

#[test]
fn one_flipped_bit_in_a_checkpoint_is_noticed() {
    let fixture = Fixture::new();
    let line = "train --graph graph.npz --method rh --global-budget 2 --train 30% --steps 12 --hidden 4 --out m.safetensors \
                --checkpoint c --quiet";
    fixture.run(line).succeeded();
    let checkpoint = fs::read(fixture.path("c")).unwrap();
    let model = fs::read(fixture.path("m.safetensors")).unwrap();
    let step = (checkpoint.len() / 40).max(1);
    for place in (0..checkpoint.len()).step_by(step).chain([checkpoint.len() - 1]) {
        let mut changed = checkpoint.clone();
        changed[place] ^= 1 << (place % 8);
        fixture.write("c", &changed);
        let run = fixture.run(&format!("{line} --resume"));
        assert_eq!(run.code, 2, "byte {place}: {}", run.stderr);
        assert!(
            run.stderr.contains("c is ") && run.stderr.contains("without resuming"),
            "byte {place}: {}",
            run.stderr
        );
        assert!(fs::read(fixture.path("c")).unwrap() == changed, "byte {place}");
    }
    fixture.write("c", &checkpoint);
    fixture.run(&format!("{line} --resume")).succeeded();
    assert!(fs::read(fixture.path("m.safetensors")).unwrap() == model);
}
